"""Save ``translated_offsets.parquet``, the result of the command ``compare``.

For each partition it has a group's committed offset, and the offset at which the group must continue in a mirror's
copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from migrate_groups.files.parquet import write_table
from migrate_groups.files.safe_write import write_whole

SCHEMA = pa.schema(
    [
        pa.field("source_cluster", pa.string(), nullable=False),
        pa.field("target_cluster", pa.string(), nullable=False),
        pa.field("taken_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("committed_offset", pa.int64()),
        pa.field("target_topic", pa.string()),
        pa.field("translated_offset", pa.int64()),
        pa.field("reread_at_most", pa.int64(), nullable=False),
        pa.field("target_committed_offset", pa.int64()),
        pa.field("read_again", pa.int64()),
        pa.field("skipped", pa.int64()),
        pa.field("copies", pa.int64(), nullable=False),
        pa.field("aborted", pa.int64(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("method", pa.string(), nullable=False),
        pa.field("compared", pa.int64(), nullable=False),
        pa.field("mirrored_to", pa.int64()),
        pa.field("fingerprint_before", pa.string()),
        pa.field("fingerprint_after", pa.string()),
    ]
)
"""The columns: those of the JSON document of ``compare``, and the two clusters and the time of the comparison."""


def save(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the result of the command ``compare`` to a new Parquet file, with one row for each partition.

    rows: each a dict from column names to values. Raises `InvalidInput` if the file exists or can't be written.
    """
    table = pa.Table.from_pylist([dict(each) for each in rows], schema=SCHEMA)
    write_whole(path, lambda file: write_table(table, file))
