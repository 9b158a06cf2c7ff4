"""Take a snapshot of groups at a moment of the past, from the log of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from migrate_groups.clock import Clock
from migrate_groups.errors import Undetermined
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.migration.events import Events
from migrate_groups.migration.offsets_topic.copied import OpenLog, copy_offsets_log
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.topics import is_still
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import COLUMNS, SnapshotTable
from migrate_groups.snapshots.times import milliseconds_of, rfc_3339
from migrate_groups.text import counted, named, some

if TYPE_CHECKING:
    from migrate_groups.spark.session import OpenSpark


class MomentRequest(NamedTuple):
    """The input of `snapshot_at`.

    log: the folder for the copied log of ``__consumer_offsets``. at: the moment; None: now. known_only: leave out
    partitions whose committed offset is not known, in place of an error.
    """

    groups: Collection[str]
    log: Path
    at: datetime | None = None
    known_only: bool = False


class NotKnown(NamedTuple):
    """A partition whose committed offset at the moment is not known.

    evidence: ``unknown``, or ``pending`` if a transaction was open. reason: why.
    """

    group: str
    topic: str
    partition: int
    evidence: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOffsets:
    """The committed offsets of groups at a moment.

    snapshot: the known ones; ``taken_at`` is ``at``, the moment. not_known: the partitions that are left out. remarks:
    what the reader of the snapshot must know.
    """

    at: datetime
    snapshot: SnapshotTable
    not_known: Sequence[NotKnown]
    remarks: Sequence[str]


def snapshot_at(
    asked: MomentRequest, open_log: OpenLog, open_spark: OpenSpark, clock: Clock, events: Events
) -> PastOffsets:
    """Return the committed offsets of groups at a moment, from the log of ``__consumer_offsets``. Asks no coordinator.

    Raises `Undetermined` if the log has no commit of a group, or if an offset is not known and ``known_only`` is not
    set; and the errors of `copy_offsets_log`.
    """
    with open_log() as clients:
        copied = copy_offsets_log(clients, asked.groups, asked.log, clock, events, followers=True)
        with open_spark(copied.offsets) as spark:
            from migrate_groups.spark.offsets_topic.offsets_at import KNOWN, offsets_at
            from migrate_groups.spark.offsets_topic.offsets_log import copied_log

            log = copied_log(spark, str(copied.folder))
            found = offsets_at(log, copied.for_spark, asked.at, asked.groups).collect()
        at = asked.at or copied.copied_at or clock.now()
        snapshot = SnapshotTable.of_rows(_row(each, at) for each in found if each["evidence"] == KNOWN)
        remarks = [*_hidden(found), *_of_followers(found, copied), *_recreated(clients.reader, snapshot)]
    others = (NotKnown(*(each[name] for name in NotKnown._fields)) for each in found if each["evidence"] != KNOWN)
    not_known = sorted(others)
    _refuse(asked, found, not_known)
    return PastOffsets(at=at, snapshot=snapshot, not_known=not_known, remarks=remarks)


def _row(found: Any, taken_at: datetime) -> Row:
    return Row(**{name: found[name] for name in COLUMNS} | {"taken_at": taken_at})


def _refuse(asked: MomentRequest, found: Sequence[Any], not_known: Sequence[NotKnown]) -> None:
    when = f"at {rfc_3339(milliseconds_of(asked.at))}" if asked.at else "now"
    if absent := {*asked.groups} - {each["group"] for each in found}:
        raise Undetermined(
            f"the log has no commit of {named('group', absent)}: check the name; its commits may be compacted away"
        )
    if not_known and (len(not_known) == len(found) or not asked.known_only):
        examples = some([f"{each.group} {each.topic}-{each.partition} ({each.reason})" for each in not_known], most=3)
        left = "" if len(not_known) == len(found) else "; pass --known-only to leave them out"
        raise Undetermined(
            f"the committed offset {when} is not known for {len(not_known):,} of {counted(len(found), 'partition')}: "
            f"{examples}{left}"
        )


def _hidden(found: Sequence[Any]) -> list[str]:
    missing = {each["log_partition"]: each["missing"] for each in found}
    if not any(missing.values()):
        return []
    gone = counted(sum(missing.values()), "offset")
    return [
        f"Kafka had compacted {gone} of {OFFSETS_TOPIC} away before they were copied; "
        "partitions of which no record is left are not listed"
    ]


def _of_followers(found: Sequence[Any], copied: CopiedLog) -> list[str]:
    last = {each["log_partition"]: each["last_time"].astimezone(UTC) for each in found if each["last_time"]}
    return [
        f"the leader of partition {number} of {OFFSETS_TOPIC} does not answer: read from broker {broker} up to its "
        f"high watermark {copied.ends[number]}, of {rfc_3339(milliseconds_of(last[number]))}; later commits may exist"
        for number, broker in sorted(copied.followers.items())
        if number in last
    ]


def _recreated(reader: GroupReader, snapshot: SnapshotTable) -> list[str]:
    ids = {row.topic: row.topic_id for row in snapshot.rows() if row.topic_id}
    described = reader.describe_topics([*ids])
    gone = [topic for topic, topic_id in ids.items() if is_still(topic_id, described.get(topic)) is False]
    if not gone:
        return []
    return [f"{named('topic', gone)} deleted or created again since: these offsets are of other records"]
