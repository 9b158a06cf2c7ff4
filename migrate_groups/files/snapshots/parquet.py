"""Snapshots of committed offsets as Parquet, for Spark and large groups: the same columns as in CSV, with types."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from migrate_groups.errors import InvalidInput
from migrate_groups.files.parquet import metadata_of, read_table, write_table
from migrate_groups.files.snapshots.columns import RULES, check_names
from migrate_groups.snapshots.snapshot import COLUMNS, OLDEST_UNCONSUMED, SCHEMA, SnapshotTable

_PLAN = b"migrate-groups.plan"


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


def write(snapshot: SnapshotTable, file: BinaryIO, *, plan: str = "") -> None:
    """Write the snapshot as Parquet, with a checksum for each page.

    plan: the hash of the plan of the run that the file belongs to (`plan_of`); empty: it belongs to no run.
    """
    write_table(snapshot.table.replace_schema_metadata({_PLAN: plan} if plan else None), file)


def plan_of(path: Path) -> str:
    """Return the hash of the plan of the run that a snapshot in a Parquet file belongs to; empty if it names none.

    Raises `InvalidInput` if the file is missing, damaged, or can't be read.
    """
    return metadata_of(path).get(_PLAN, b"").decode(errors="replace")


def _check(column: pa.ChunkedArray, field: pa.Field, name: str) -> None:
    if column.type != field.type:
        raise InvalidInput(f"{name}: column {field.name} has type {column.type}; expected {field.type}")
    rule = RULES[field.name]
    index = rule.first_wrong(column)
    if index is not None:
        found = column[index].cast(pa.string()).as_py()  # as text, because Python has no datetime for some times
        raise InvalidInput(f"{name}, row {index + 1}: {field.name} is {found!r:.60}; expected {rule.expected}")
