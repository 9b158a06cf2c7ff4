"""Reset files: the CSV of ``kafka-consumer-groups --reset-offsets --from-file``, without a header.

The columns are ``topic,partition,offset`` for one group, ``group,topic,partition,offset`` for several. It is an error
if a row is truncated, or if two rows have the same group, topic and partition.
"""

# Kafka's tool reads a truncated row as offset 0. If a partition has two rows, the tool uses the last one
# (docs/kafka-behaviour.md#kafkas-own-tool).

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from migrate_groups.errors import InvalidInput
from migrate_groups.files.rules import rule
from migrate_groups.files.snapshots import csv_text
from migrate_groups.schema import RESET
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, named

_RULES = {column.name: rule(column) for column in RESET}
_COLUMNS = tuple(_RULES)


def read(data: bytes, name: str, first: Sequence[str]) -> pa.Table:
    """Return the table in a CSV file for ``kafka-consumer-groups --reset-offsets``.

    name: the file's name, for errors. first: the cells of the first row. Raises `InvalidInput` if the
    file is not valid. Duplicate rows are not detected here.
    """
    columns = len(first)
    if columns not in (3, 4):
        raise InvalidInput(
            f"{name}, line 1: {counted(columns, 'column')}; expected a snapshot's header, or topic,partition,offset, "
            "or group,topic,partition,offset"
        )
    if not any(map(str.isdecimal, first)):
        raise InvalidInput(
            f"{name}, line 1: {','.join(first):.60} is not a snapshot's header, and a CSV of kafka-consumer-groups has "
            "none: remove the line"
        )
    present = _COLUMNS[-columns:]
    # Kafka's own --export ends in an empty line (docs/kafka-behaviour.md#kafkas-own-tool).
    data = data.removesuffix(b"\n") if data.endswith(b"\n\n") else data
    return csv_text.read_columns(data, name, _RULES, present=present, has_header=False)


def to_bytes(snapshot: SnapshotTable) -> tuple[bytes, int]:
    """Return a snapshot as a CSV file for ``kafka-consumer-groups``, and the number of partitions left out.

    Partitions without a committed offset are left out. Raises `InvalidInput` if only some rows have a group, if a
    partition of a group has several rows, if ``kafka-consumer-groups`` could not read a group's name, or if it would
    make a consumer group of a share group.
    """
    table = snapshot.at_one_moment().table
    is_share = pc.equal(table["group_type"], "share")
    if shares := sorted({str(group) for group in table.filter(is_share)["group"].to_pylist()}):
        raise InvalidInput(
            f"{named('share group', shares)}: kafka-consumer-groups would make a consumer group of it, so hand over "
            "with migrate or apply"
        )
    snapshot.refuse_some_without_group()
    groups = snapshot.groups()
    # Kafka's tool reads the file line by line, also within quotes. If a group's name has a line feed or a NUL, the tool
    # applies no row of the file.
    broken = [group for group in groups if group is not None and re.search("[\n\0]", group)] if len(groups) > 1 else []
    if broken:
        raise InvalidInput(
            f"{named('group', broken)} with a line feed or a NUL in the name, which kafka-consumer-groups can't read "
            "from a file of several groups: select each group with filter --group, and export it alone"
        )
    committed = table.filter(pc.is_valid(table["offset"]))
    columns = list(_COLUMNS if len(groups) > 1 else _COLUMNS[1:])
    file = io.BytesIO()
    if len(committed):
        csv_text.write_rows(committed.select(columns), file)
    return file.getvalue(), len(table) - len(committed)
