"""Snapshots of committed offsets as Parquet, for Spark and large groups: the same columns as in CSV, with types."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

from migrate_groups.errors import InvalidInput
from migrate_groups.files.parquet import read_table, write_table
from migrate_groups.files.snapshots.columns import RULES, check_names
from migrate_groups.snapshots.snapshot import COLUMNS, OLDEST_UNCONSUMED, SCHEMA, SnapshotTable


def read(data: bytes, name: str) -> SnapshotTable:
    """Return the snapshot in a Parquet file.

    name: the file's name, for errors. Raises `InvalidInput` if the file is damaged or a value is invalid. The message
    names the column and the expected value.
    """
    table = read_table(data, name)
    check_names(table.column_names, COLUMNS, name)
    schema = SCHEMA.append(OLDEST_UNCONSUMED) if OLDEST_UNCONSUMED.name in table.column_names else SCHEMA
    for field in schema:
        _check(table[field.name], field, name)
    try:
        return SnapshotTable.of(table)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def write(snapshot: SnapshotTable, file: BinaryIO) -> None:
    """Write the snapshot as Parquet, with a checksum for each page."""
    write_table(snapshot.table, file)


def _check(column: pa.ChunkedArray, field: pa.Field, name: str) -> None:
    if column.type != field.type:
        raise InvalidInput(f"{name}: column {field.name} has type {column.type}; expected {field.type}")
    rule = RULES[field.name]
    index = rule.first_wrong(column)
    if index is not None:
        found = column[index].cast(pa.string()).as_py()  # as text, because Python has no datetime for some times
        raise InvalidInput(f"{name}, row {index + 1}: {field.name} is {found!r:.60}; expected {rule.expected}")
