"""Parquet files written with checksums of their pages, and read whole."""

from __future__ import annotations

import io
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from migrate_groups.errors import InvalidInput


def write_table(table: pa.Table, file: BinaryIO) -> None:
    """Write a table; of a page that is damaged later, a checksum tells."""
    pq.write_table(table, file, write_page_checksum=True)


def read_table(data: bytes, name: str) -> pa.Table:
    """Return the table in a Parquet file. Raises `InvalidInput` where it is not whole.

    Without threads: where Arrow has just started them, a process that ends is aborted by them now and then, 19 times of
    240 on a busy machine (docs/kafka-behaviour.md#other-libraries), after all its work and with another exit code.
    """
    try:
        file = pq.ParquetFile(io.BytesIO(data), pre_buffer=False, page_checksum_verification=True)
        table = file.read(use_threads=False)
        table.validate(full=True)  # a text may be no UTF-8
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{name} is not a whole Parquet file: {' '.join(str(error).split())}") from error
    return table
