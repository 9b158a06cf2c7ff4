"""Parquet files read whole."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from migrate_groups.errors import InvalidInput


def read_table(data: bytes, name: str) -> pa.Table:
    """Return the table in a Parquet file. Raises `InvalidInput` where it is not whole.

    Without threads: where Arrow has just started them, a process that ends is aborted by them now and then, 19 times of
    240 on a busy machine (measured, pyarrow 26), after all its work and with another exit code.
    """
    try:
        table = pq.ParquetFile(io.BytesIO(data), pre_buffer=False).read(use_threads=False)
        table.validate(full=True)  # a text may be no UTF-8
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{name} is not a whole Parquet file: {' '.join(str(error).split())}") from error
    return table
