"""Load and save ``fence.parquet``, the offsets from which `audit` reads ``__consumer_offsets``.

A fence is the log end offset of each partition of ``__consumer_offsets``. A run of `migrate` reads the fence of each of
its clusters just before it reads the final committed offsets of the source group. The file has a row for each partition
of each fence. The fences of the latest run are last.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa

from migrate_groups.errors import InvalidInput
from migrate_groups.files.parquet import read_table, write_table
from migrate_groups.files.read import read_bytes, status
from migrate_groups.files.safe_write import write_whole
from migrate_groups.model.fence import Fence

SCHEMA = pa.schema(
    [
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("taken_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("end_offset", pa.int64()),
    ]
)


def load(path: Path) -> list[Fence]:
    """Return the fences in a file, one for each run and cluster, the earliest first; none if there is no such file.

    A fence is the log end offset of each partition of ``__consumer_offsets``, from just before the final committed
    offsets of the source group were read. Raises `InvalidInput` if the file is damaged or has other columns.
    """
    if status(path) is None:
        return []
    table = read_table(read_bytes(path), str(path))
    if not table.schema.equals(SCHEMA):
        raise InvalidInput(
            f"{path} is not a fence file, which has the columns {', '.join(SCHEMA.names)}: restore the original file, "
            "or move it away"
        )
    ends: dict[tuple[str, datetime], dict[int, int | None]] = {}
    for cluster_id, taken_at, partition, end in zip(*(column.to_pylist() for column in table.columns), strict=True):
        ends.setdefault((cluster_id, taken_at), {})[partition] = end
    return [Fence(cluster_id=cluster_id, taken_at=taken_at, ends=of) for (cluster_id, taken_at), of in ends.items()]


def save(fences: list[Fence], path: Path) -> None:
    """Write fences to a file, which is replaced if it exists. Raises `InvalidInput` if it can't be written.

    A fence is the log end offset of each partition of ``__consumer_offsets``, from just before the final committed
    offsets of the source group were read.
    """
    rows = [(fence.cluster_id, fence.taken_at, *end) for fence in fences for end in sorted(fence.ends.items())]
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    write_whole(path, lambda file: write_table(table, file), replace=True)
