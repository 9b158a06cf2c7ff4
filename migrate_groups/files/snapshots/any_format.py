"""Load and save snapshots of committed offsets as CSV or Parquet. The extension of a file decides the format."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import BinaryIO

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.files.kinds import SNAPSHOT, mistaken
from migrate_groups.files.read import if_missing, read_bytes, status
from migrate_groups.files.safe_write import write_whole
from migrate_groups.files.snapshots import csv as snapshot_csv
from migrate_groups.files.snapshots import csv_text, reset_csv
from migrate_groups.files.snapshots import parquet as snapshot_parquet
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import shell_command

_PARQUET_MAGIC = b"PAR1"
_EXTENSIONS = (".csv", ".parquet")


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
            f"migrate-groups {snapshot} first, or pass --group {shlex.quote(name)} in place of the file to apply (with "
            "--to-group) or rewind"
        )
    data = stream.read() if stream else read_bytes(path)
    is_parquet = data.startswith(_PARQUET_MAGIC) if stream else _is_parquet(path)
    try:
        return snapshot_parquet.read(data, name) if is_parquet else _read_csv(data, name)
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
    if _is_parquet(path):
        write_whole(path, lambda file: snapshot_parquet.write(snapshot, file), replace=replace)
    else:
        write_whole(path, lambda file: snapshot_csv.write(snapshot, file), replace=replace)


def to_csv(snapshot: SnapshotTable) -> bytes:
    """Return the snapshot as the bytes of a CSV file with a header."""
    buffer = io.BytesIO()
    snapshot_csv.write(snapshot, buffer)
    return buffer.getvalue()


def _read_csv(data: bytes, name: str) -> SnapshotTable:
    header = csv_text.first_row(data, name)
    if snapshot_csv.is_header(header):
        return snapshot_csv.read(data, name, header)
    return reset_csv.read(data, name, len(header))


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
