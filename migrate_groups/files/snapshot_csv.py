"""Snapshots as CSV with a header: for people, pull requests and spreadsheets."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from migrate_groups.errors import InvalidInput
from migrate_groups.files import csv_text
from migrate_groups.offsets.snapshot import COLUMNS, OLDEST_UNCONSUMED, SCHEMA, Snapshot
from migrate_groups.text import some

_FORMATS = {
    "cluster_id": csv_text.name(nullable=True),
    "taken_at": csv_text.timestamp(nullable=True),
    "group": csv_text.name(nullable=True),
    "source_group": csv_text.name(nullable=True),
    "group_state": csv_text.name(nullable=True),
    "group_type": csv_text.name(nullable=True),
    "topic": csv_text.topic(),
    "topic_id": csv_text.name(nullable=True),
    "partition": csv_text.number(bits=32, nullable=False),
    "offset": csv_text.number(bits=64, nullable=True),
    "leader_epoch": csv_text.number(bits=32, nullable=True),
    "metadata": csv_text.free_text(),
    "log_start_offset": csv_text.number(bits=64, nullable=True),
    "log_end_offset": csv_text.number(bits=64, nullable=True),
    OLDEST_UNCONSUMED.name: csv_text.timestamp(nullable=True),
}
_REQUIRED = ("cluster_id", "taken_at", "group_state", "group_type", "topic", "partition", "metadata")


def is_header(cells: list[str]) -> bool:
    """Return whether a first row is meant as a snapshot's header: a reset file's partition is never ``partition``."""
    return "topic" in cells and "partition" in cells


def read(data: bytes, name: str, header: list[str]) -> Snapshot:
    """Return the snapshot in a CSV file. Raises `InvalidInput` naming line, column and what was expected."""
    unknown = [column for column in header if column not in _FORMATS]
    missing = [column for column in _REQUIRED if column not in header]
    twice = {column for column in header if header.count(column) > 1}
    for complaint, columns in (("unknown", unknown), ("missing", missing), ("twice there:", twice)):
        if columns:
            raise InvalidInput(f"{name}, line 1: {complaint} column {some(columns)}; expected {','.join(COLUMNS)}")
    table = csv_text.read_columns(data, name, _FORMATS, present=header, has_header=True)
    for field in SCHEMA:
        if field.name not in header:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    try:
        return Snapshot.of(table)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def write(snapshot: Snapshot, file: BinaryIO) -> None:
    """Write the snapshot; times as RFC 3339 with ``Z``, cells quoted only where they must be, formulas guarded."""
    table = snapshot.table
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            # Most moments are the same: those that differ are written out, which is most of the time otherwise.
            encoded = table[field.name].combine_chunks().dictionary_encode()
            different = pc.strftime(encoded.dictionary, format="%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(index, field.name, different.take(encoded.indices))
    file.write((",".join(table.column_names) + "\n").encode())
    csv_text.write_rows(csv_text.guarded(table), file)
