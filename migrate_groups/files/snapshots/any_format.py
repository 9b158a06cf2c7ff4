"""Load and save snapshots of committed offsets as CSV or Parquet. The extension of a file decides the format.

CSV with a header is for people, pull requests and spreadsheets; Parquet, with the same columns, for Spark and large
groups.
"""

from __future__ import annotations

import io
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from migrate_groups import schema
from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.files.kinds import SNAPSHOT, mistaken
from migrate_groups.files.parquet import metadata_of, read_table, write_table
from migrate_groups.files.read import if_missing, read_bytes, status
from migrate_groups.files.rules import rule
from migrate_groups.files.safe_write import write_whole
from migrate_groups.files.snapshots import csv_text, reset_csv
from migrate_groups.snapshots.snapshot import COLUMNS, OLDEST_UNCONSUMED, SCHEMA, SnapshotTable
from migrate_groups.text import named, shell_command

_PARQUET_MAGIC = b"PAR1"
_EXTENSIONS = (".csv", ".parquet")
_PLAN = b"migrate-groups.plan"
_RULES = {column.name: rule(column) for column in (*schema.SNAPSHOT, schema.OLDEST_UNCONSUMED)}


def load(path: Path, *, stream: BinaryIO | None = None) -> SnapshotTable:
    """Return the snapshot in a CSV or Parquet file, or in ``stream`` if that is given.

    A file's extension or a stream's first bytes tell the format. A CSV without a header must be a file for
    ``kafka-consumer-groups --reset-offsets``. Raises `InvalidInput` if there is no valid snapshot.
    """
    name = "standard input" if stream else str(path)
    if not stream and path.suffix.lower() not in _EXTENSIONS and status(path) is None:
        snapshot = shell_command("snapshot", [name], "-o before.csv")
        raise InvalidInput(
            f"{name} does not exist: {if_missing(path) or 'name a .csv or .parquet file'}; if it is a group, run "
            f"migrate-groups {snapshot} first, or pass in place of the file "
            f"--from-group {shlex.quote(name)} --to-group NEW to apply, or --group {shlex.quote(name)} to rewind"
        )
    data = stream.read() if stream else read_bytes(path)
    is_parquet = data.startswith(_PARQUET_MAGIC) if stream else _is_parquet(path)
    try:
        return _snapshot_of(_read_parquet(data, name) if is_parquet else _read_csv(data, name), name)
    except InvalidInput as error:
        raise mistaken(data, name, SNAPSHOT) or error from None


def check_extension(path: Path) -> None:
    """Raise `UsageError` if the extension of the path is not ``.csv`` or ``.parquet``."""
    if path.suffix.lower() not in _EXTENSIONS:
        raise UsageError(f"{path}: unknown file extension; expected .csv or .parquet")


def save(snapshot: SnapshotTable, path: Path, *, replace: bool = False) -> None:
    """Write the snapshot to a file, as CSV or Parquet by the file's extension.

    Raises `UsageError` for another extension; `InvalidInput` if the file can't be written, or if it exists and
    ``replace`` is false.
    """
    check_extension(path)
    write = write_parquet if _is_parquet(path) else _write_csv
    write_whole(path, lambda file: write(snapshot, file), replace=replace)


def to_csv(snapshot: SnapshotTable) -> bytes:
    """Return the snapshot as the bytes of a CSV file with a header."""
    buffer = io.BytesIO()
    _write_csv(snapshot, buffer)
    return buffer.getvalue()


def write_parquet(snapshot: SnapshotTable, file: BinaryIO, *, plan: str = "") -> None:
    """Write the snapshot as Parquet, with a checksum for each page.

    plan: the hash of the plan of the run that the file belongs to (`plan_of`); empty: it belongs to no run.
    """
    write_table(snapshot.table.replace_schema_metadata({_PLAN: plan} if plan else None), file)


def plan_of(path: Path) -> str:
    """Return the hash of the plan of the run that a snapshot in a Parquet file belongs to; empty if it names none.

    Raises `InvalidInput` if the file is missing, damaged, or can't be read.
    """
    return metadata_of(path).get(_PLAN, b"").decode(errors="replace")


def _read_csv(data: bytes, name: str) -> pa.Table:
    header = csv_text.first_row(data, name)
    # A reset file (the CSV of kafka-consumer-groups) has no header: its first row has the number of a partition.
    if "topic" in header and "partition" in header and not any(map(str.isdecimal, header)):
        _check_names(header, schema.REQUIRED, f"{name}, line 1")
        return csv_text.read_columns(data, name, _RULES, present=header, has_header=True)
    return reset_csv.read(data, name, header)


def _write_csv(snapshot: SnapshotTable, file: BinaryIO) -> None:
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


def _read_parquet(data: bytes, name: str) -> pa.Table:
    """Return the table of a snapshot in a Parquet file.

    name: the file's name, for errors. Raises `InvalidInput` if the file is damaged or a value is invalid. The message
    names the column and the expected value.
    """
    table = read_table(data, name)
    _check_names(table.column_names, COLUMNS, name)
    fields = SCHEMA.append(OLDEST_UNCONSUMED) if OLDEST_UNCONSUMED.name in table.column_names else SCHEMA
    for field in fields:
        _check_values(table[field.name], field, name)
    return table


def _snapshot_of(table: pa.Table, name: str) -> SnapshotTable:
    """Return the table of a file as a snapshot. In columns that the file lacks, cells are null, or empty texts.

    name: the file's name, for errors. Raises `InvalidInput` for duplicate rows.
    """
    for field in SCHEMA:
        if field.name not in table.column_names:
            values = pa.nulls(table.num_rows, field.type) if field.nullable else pa.repeat("", table.num_rows)
            table = table.append_column(field, values)
    try:
        return SnapshotTable.of(table)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def _check_values(column: pa.ChunkedArray, field: pa.Field, name: str) -> None:
    if column.type != field.type:
        raise InvalidInput(f"{name}: column {field.name} has type {column.type}; expected {field.type}")
    valid = _RULES[field.name]
    index = valid.first_wrong(column)
    if index is not None:
        found = column[index].cast(pa.string()).as_py()  # as text, because Python has no datetime for some times
        raise InvalidInput(
            f"{name}, row {index + 1}: {field.name} is {found!r:.60}; expected {valid.column.form.expected}"
        )


def _check_names(present: Sequence[str], required: Collection[str], where: str) -> None:
    """Raise `InvalidInput` if a column of a snapshot file is unknown, missing or repeated.

    present: the column names of the file. where: the beginning of the error message, such as ``a.csv, line 1``.
    """
    unknown = [column for column in present if column not in _RULES]
    missing = [column for column in required if column not in present]
    twice = [column for column, count in Counter(present).items() if count > 1]
    cure = ", or install the version that wrote the file"
    for complaint, names, more in (("unknown", unknown, cure), ("missing", missing, ""), ("repeated", twice, "")):
        if names:
            raise InvalidInput(f"{where}: {named(f'{complaint} column', names)}; expected {','.join(COLUMNS)}{more}")


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
