"""Snapshots as Parquet: the same columns as the CSV, typed, for Spark and for large groups."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from migrate_groups.errors import InvalidInput
from migrate_groups.files.parquet import read_table
from migrate_groups.offsets.snapshot import COLUMNS, OLDEST_UNCONSUMED, SCHEMA, Snapshot
from migrate_groups.text import some


def read(data: bytes, name: str) -> Snapshot:
    """Return the snapshot in a Parquet file. Raises `InvalidInput` where its columns or types are others."""
    table = read_table(data, name)
    schema = SCHEMA.append(OLDEST_UNCONSUMED) if OLDEST_UNCONSUMED.name in table.column_names else SCHEMA
    unknown = [column for column in table.column_names if column not in schema.names]
    missing = [column for column in COLUMNS if column not in table.column_names]
    for complaint, columns in (("unknown", unknown), ("missing", missing)):
        if columns:
            raise InvalidInput(f"{name}: {complaint} column {some(columns)}; expected {', '.join(COLUMNS)}")
    for field in schema:
        column = table[field.name]
        if column.type != field.type:
            raise InvalidInput(f"{name}: column {field.name} has type {column.type}; expected {field.type}")
        if not field.nullable and column.null_count:
            raise InvalidInput(f"{name}: column {field.name} has nulls; expected none")
    for name_of, least in (("partition", 0), ("offset", 0), ("leader_epoch", 0)):
        _refuse_below(table, name, name_of, least)
    try:
        return Snapshot.of(table)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def write(snapshot: Snapshot, file: BinaryIO) -> None:
    """Write the snapshot."""
    pq.write_table(snapshot.table, file)


def _refuse_below(table: pa.Table, name: str, column: str, least: int) -> None:
    smallest = pa.compute.min(table[column]).as_py()
    if smallest is not None and smallest < least:
        raise InvalidInput(f"{name}: {column} {smallest} is negative; expected a whole number from {least}")
