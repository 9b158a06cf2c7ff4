"""Load and save ``stop_checkpoints.parquet``: log end offsets of ``__consumer_offsets`` after the source group stopped.

The command ``audit`` reads ``__consumer_offsets`` from these offsets on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from migrate_groups.errors import InvalidInput
from migrate_groups.files.parquet import read_table, table_of, write_table
from migrate_groups.files.read import read_bytes, status
from migrate_groups.files.safe_write import write_whole
from migrate_groups.model.offsets_topic import StopCheckpoint

SCHEMA = pa.schema(
    [
        pa.field("plan", pa.string(), nullable=False),
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("taken_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("end_offset", pa.int64()),
    ]
)


def load(path: Path) -> dict[str, list[StopCheckpoint]]:
    """Return the log end offsets of ``__consumer_offsets`` in a file, a `StopCheckpoint` for each cluster of each run.

    The keys are the hashes of the plans that the runs then wrote (`Plan.content`), the earliest run first. The result
    is empty if the file does not exist. Raises `InvalidInput` if the file is damaged or has other columns.
    """
    if status(path) is None:
        return {}
    table = read_table(read_bytes(path), str(path))
    if not table.schema.equals(SCHEMA):
        raise InvalidInput(
            f"{path} is not a file of stop checkpoints, which has the columns {', '.join(SCHEMA.names)}: restore the "
            "original file, install the version that wrote it, or move it away"
        )
    ends: dict[tuple[str, str, datetime], dict[int, int | None]] = {}
    for plan, cluster_id, taken_at, number, end in zip(*(column.to_pylist() for column in table.columns), strict=True):
        ends.setdefault((plan, cluster_id, taken_at), {})[number] = end
    found: dict[str, list[StopCheckpoint]] = {}
    for (plan, cluster_id, taken_at), of in ends.items():
        found.setdefault(plan, []).append(StopCheckpoint(cluster_id=cluster_id, taken_at=taken_at, ends=of))
    return found


def save(checkpoints: Mapping[str, Iterable[StopCheckpoint]], path: Path) -> None:
    """Write log end offsets of ``__consumer_offsets`` to a file, which is replaced if it exists.

    checkpoints: as `load` returns them. Raises `InvalidInput` if the file can't be written.
    """
    rows = [
        (plan, checkpoint.cluster_id, checkpoint.taken_at, *end)
        for plan, of in checkpoints.items()
        for checkpoint in of
        for end in sorted(checkpoint.ends.items())
    ]
    write_whole(path, lambda file: write_table(table_of(rows, SCHEMA), file), replace=True)
