"""Load and save snapshots as CSV or Parquet. The extension of a file decides the format."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

from migrate_groups.errors import UsageError
from migrate_groups.files.read import read_bytes
from migrate_groups.files.safe_write import write_whole
from migrate_groups.files.snapshots import csv as snapshot_csv
from migrate_groups.files.snapshots import csv_text, reset_csv
from migrate_groups.files.snapshots import parquet as snapshot_parquet
from migrate_groups.snapshots.snapshot import Snapshot

_PARQUET_MAGIC = b"PAR1"


def load(path: Path, *, stream: BinaryIO | None = None) -> Snapshot:
    """Return the snapshot in a file, or in ``stream`` if that is given: CSV with a header, Parquet, or a reset file.

    A reset file is the CSV of ``kafka-consumer-groups``, without a header. The extension decides whether a file is
    Parquet, the first bytes decide whether a stream is. Raises `InvalidInput` if the content is not a valid snapshot.
    """
    name = "standard input" if stream else str(path)
    data = stream.read() if stream else read_bytes(path)
    if data.startswith(_PARQUET_MAGIC) if stream else _is_parquet(path):
        return snapshot_parquet.read(data, name)
    header = csv_text.first_row(data, name)
    if snapshot_csv.is_header(header):
        return snapshot_csv.read(data, name, header)
    return reset_csv.read(data, name, len(header))


def check_extension(path: Path) -> None:
    """Raise `UsageError` if the extension is neither .csv nor .parquet."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"{path}: the extension picks the format; expected .csv or .parquet")


def save(snapshot: Snapshot, path: Path, *, replace: bool = False) -> None:
    """Write the snapshot in the format of the extension. Raises as `check_extension` and `write_whole`."""
    check_extension(path)
    if _is_parquet(path):
        write_whole(path, lambda file: snapshot_parquet.write(snapshot, file), replace=replace)
    else:
        write_whole(path, lambda file: snapshot_csv.write(snapshot, file), replace=replace)


def to_csv(snapshot: Snapshot) -> bytes:
    """Return the bytes of the snapshot as a CSV file, to be written to a pipe."""
    buffer = io.BytesIO()
    snapshot_csv.write(snapshot, buffer)
    return buffer.getvalue()


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
