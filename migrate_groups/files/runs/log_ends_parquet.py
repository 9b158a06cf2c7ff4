"""Log end offsets of partitions at several times, as a Parquet file that Spark reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("taken_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("log_end_offset", pa.int64()),
    ]
)
"""The columns: the log end offset of a partition at the time ``taken_at``; null if it is not known. The Spark job of
`history` reads them (`spark.offsets_topic.history.LOG_ENDS`)."""

_ROWS = 100_000


def save(rows: Iterable[tuple[str, int, datetime, int | None]], path: Path) -> None:
    """Write log end offsets, with the time of each, to a Parquet file.

    rows: topic, partition number, time, and the log end offset at that time or None if it is not known.
    """
    with pq.ParquetWriter(path, SCHEMA, write_page_checksum=True) as writer:
        # 100,000 rows at a time, so that memory does not grow with their number.
        for piece in _pieces(iter(rows)):
            columns = zip(*piece, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA))


def _pieces(rows: Iterator[tuple[str, int, datetime, int | None]]) -> Iterator[list[tuple[object, ...]]]:
    while piece := list(islice(rows, _ROWS)):
        yield [*piece]
