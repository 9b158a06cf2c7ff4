"""Load and save ``fence.parquet``: log end offsets of ``__consumer_offsets``, read after the source group stopped.

The command ``audit`` reads ``__consumer_offsets`` from these offsets on.
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
    """Return the log end offsets of ``__consumer_offsets`` in a file, one `Fence` for each run and cluster.

    The earliest run is first. The list is empty if the file does not exist. Raises `InvalidInput` if the file is
    damaged or has other columns.
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
    """Write log end offsets of ``__consumer_offsets`` to a file, which is replaced if it exists.

    Raises `InvalidInput` if the file can't be written.
    """
    rows = [(fence.cluster_id, fence.taken_at, *end) for fence in fences for end in sorted(fence.ends.items())]
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    write_whole(path, lambda file: write_table(table, file), replace=True)
