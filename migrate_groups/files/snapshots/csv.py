"""Snapshots of committed offsets as CSV with a header: for people, pull requests and spreadsheets."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from migrate_groups.errors import InvalidInput
from migrate_groups.files.snapshots import columns as snapshot_columns
from migrate_groups.files.snapshots import csv_text
from migrate_groups.schema import REQUIRED
from migrate_groups.snapshots.snapshot import SCHEMA, SnapshotTable


def is_header(cells: list[str]) -> bool:
    """Return whether the first row of a CSV file is the header of a snapshot."""
    # A reset file (the CSV of kafka-consumer-groups) has no header: its first row has the number of a partition.
    return "topic" in cells and "partition" in cells and not any(map(str.isdecimal, cells))


def read(data: bytes, name: str, header: list[str]) -> SnapshotTable:
    """Return the snapshot in a CSV file with a header.

    data: the bytes of the whole file. name: the file's name, for errors. header: the column names in the first line.
    Raises `InvalidInput`, which names the line, if a column or a cell is invalid.
    """
    snapshot_columns.check_names(header, REQUIRED, f"{name}, line 1")
    table = csv_text.read_columns(data, name, snapshot_columns.RULES, present=header, has_header=True)
    for field in SCHEMA:
        if field.name not in header:
            values = pa.nulls(table.num_rows, field.type) if field.nullable else pa.repeat("", table.num_rows)
            table = table.append_column(field, values)
    try:
        return SnapshotTable.of(table)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def write(snapshot: SnapshotTable, file: BinaryIO) -> None:
    """Write the snapshot as CSV with a header. Times are RFC 3339 with ``Z``.

    NULs are escaped. A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    table = snapshot.table
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            # Each distinct time is formatted once, because formatting every row would take most of the time.
            encoded = table[field.name].combine_chunks().dictionary_encode()
            different = pc.strftime(encoded.dictionary, format="%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(index, field.name, different.take(encoded.indices))
    file.write((",".join(table.column_names) + "\n").encode())
    csv_text.write_rows(csv_text.guarded(table), file)
