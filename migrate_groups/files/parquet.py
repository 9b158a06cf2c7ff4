"""Make tables, write them to Parquet files with a checksum for each page, and read such files whole."""

# ``pyarrow.parquet`` is imported inside the functions, because few commands need it, and it imports pyarrow's file
# systems too.

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from migrate_groups.errors import InvalidInput
from migrate_groups.files.read import status


def table_of(rows: Iterable[Sequence[object]], schema: pa.Schema) -> pa.Table:
    """Return a table with these rows. Each row has a value for each column of the schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_table(table: pa.Table, file: BinaryIO) -> None:
    """Write a table with page checksums, so that `read_table` detects a page that is damaged later."""
    import pyarrow.parquet as pq

    pq.write_table(table, file, write_page_checksum=True)


def metadata_of(path: Path) -> dict[bytes, bytes]:
    """Return the metadata in the schema of a Parquet file.

    Raises `InvalidInput` if the file is missing, damaged, or can't be read.
    """
    import pyarrow.parquet as pq

    if status(path) is None:
        raise InvalidInput(f"{path} does not exist: restore it")
    try:
        return dict(pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{path} is not a complete Parquet file: {' '.join(str(error).split())}") from error


def read_table(data: bytes, name: str) -> pa.Table:
    """Return the table in a Parquet file. Raises `InvalidInput` if the file is truncated or damaged.

    data: the bytes of the file. name: its name, for the error.
    """
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(data), pre_buffer=False, page_checksum_verification=True)
        # With Arrow's threads the process sometimes aborts when it ends, and its exit code is then wrong
        # (docs/kafka-behaviour.md#other-libraries).
        table = file.read(use_threads=False)
        table.validate(full=True)  # because a string column may hold bytes that are not UTF-8
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{name} is not a complete Parquet file: {' '.join(str(error).split())}") from error
    return table
