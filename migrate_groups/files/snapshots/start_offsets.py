"""Start offsets as JSON: ``startingOffsets`` of Spark's Kafka source, and the offsets of a sink of Kafka Connect."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import count
from typing import Literal

from migrate_groups.errors import InvalidInput
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, named, some

Reset = Literal["refuse", "earliest", "latest"]

# Spark resolves these when the query starts (docs/kafka-behaviour.md#spark).
_OFFSETS = {"earliest": -2, "latest": -1}


def spark(snapshot: SnapshotTable, on_uncommitted: Reset) -> tuple[bytes, int]:
    """Return a snapshot as ``{"TOPIC": {"PARTITION": OFFSET}}``, and 0, the number of partitions left out.

    on_uncommitted: where a partition without a committed offset starts. Raises `InvalidInput` if there is such a
    partition and it is ``refuse``, if the snapshot lacks a partition of a topic, or if it has several groups.
    """
    found: dict[str, dict[int, int | None]] = defaultdict(dict)
    for row in _of_one_group(snapshot, "spark"):
        found[row.topic][row.partition] = row.offset
    for topic, has in found.items():
        if len(has) <= max(has):
            first = TopicPartition(topic, next(number for number in count() if number not in has))
            raise InvalidInput(
                f"the file lacks {first}, and Spark needs each partition of a topic: take a snapshot of the whole group"
            )
    uncommitted = [
        TopicPartition(topic, number) for topic, has in found.items() for number in has if has[number] is None
    ]
    if uncommitted and on_uncommitted == "refuse":
        raise InvalidInput(
            f"{counted(len(uncommitted), 'partition')} without a committed offset: {some(uncommitted)}; pass "
            "--on-uncommitted earliest, or latest if the group's applications have auto.offset.reset=latest"
        )
    for topic, number in uncommitted:
        found[topic][number] = _OFFSETS[on_uncommitted]
    return _encoded(found), 0


def connect(snapshot: SnapshotTable) -> tuple[bytes, int]:
    """Return a snapshot as the body of ``PATCH /connectors/NAME/offsets``, and the number of partitions left out.

    Partitions without a committed offset are left out (KIP-875). Raises `InvalidInput` for several groups.
    """
    rows = _of_one_group(snapshot, "connect")
    offsets = [
        {
            "partition": {"kafka_topic": row.topic, "kafka_partition": row.partition},
            "offset": {"kafka_offset": row.offset},
        }
        for row in rows
        if row.offset is not None
    ]
    return _encoded({"offsets": offsets}), len(rows) - len(offsets)


def _of_one_group(snapshot: SnapshotTable, tool: str) -> list[Row]:
    groups = [group for group in snapshot.groups() if group is not None]
    snapshot.refuse_some_without_group()
    if len(groups) > 1:
        raise InvalidInput(
            f"offsets of {named('group', groups)}, and {tool} takes those of one: select it with filter --group"
        )
    return list(snapshot.at_one_moment().rows())


def _encoded(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"
