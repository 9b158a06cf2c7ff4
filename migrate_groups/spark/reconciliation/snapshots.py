"""Read snapshot files as a DataFrame, with a fixed schema, so that no invalid cell silently becomes null."""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Collection, Sequence
from functools import reduce
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePath
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from migrate_groups import schema
from migrate_groups.errors import InvalidInput
from migrate_groups.schema import Kind
from migrate_groups.spark.failures import local_file, readable_failures, shown
from migrate_groups.spark.files import CHECKED, files_of, literal, spark_path
from migrate_groups.spark.reconciliation.cells import BROKEN, PROBLEM, of_csv, of_parquet, selected
from migrate_groups.text import MISQUOTED, misquoted

_TYPES = {
    Kind.NAME: StringType(),
    Kind.TOPIC: StringType(),
    Kind.TEXT: StringType(),
    Kind.INT32: IntegerType(),
    Kind.INT64: LongType(),
    Kind.TIMESTAMP: TimestampType(),
}


def field(column: schema.Column) -> StructField:
    """Return the Spark field for a column: its name and type."""
    # Nullable even if the column is required, because Spark makes every column of a file so; the rows are checked.
    return StructField(column.name, _TYPES[column.kind], nullable=column.kind is not Kind.TEXT)


SNAPSHOT = StructType([field(column) for column in schema.SNAPSHOT])
"""The columns of a snapshot file, in the file's order. Rows with a null ``topic`` or ``partition`` are invalid."""

OLDEST_UNCONSUMED = field(schema.OLDEST_UNCONSUMED)
"""An optional column, from which the time lag is computed: the timestamp of the oldest record that the group has not
read."""

_HEADLESS = [column.name for column in schema.RESET]


def read_snapshots(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return the rows of all snapshot files at some paths, with the columns of `SNAPSHOT`.

    A path is a ``.csv`` or ``.parquet`` file, or a folder or glob with files of one kind. CSV columns are found by the
    names in the header, and an empty cell is null. A CSV file without a header must have the columns
    ``group,topic,partition,offset``. If a file has the column `OLDEST_UNCONSUMED`, the result has it too.

    Raises:
        InvalidInput: there is no file; a file is not ``.csv`` or ``.parquet``; a folder has both; a file has wrong
            columns. An invalid cell is found only while a job runs, so run the job within `readable_failures`.
    """
    return strict(examined(spark, paths))


def examined(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return all rows of the snapshot files at some paths, valid or not.

    Columns: `SNAPSHOT`, and `cells.PROBLEM` (why a row is invalid; null if it is valid).

    Raises `InvalidInput` if there is no file, a file is not ``.csv`` or ``.parquet``, a folder has both, or a file has
    wrong columns.
    """
    with readable_failures():
        return reduce(with_rows, [_read(spark, path) for path in paths])


def with_rows(rows: DataFrame, more: DataFrame) -> DataFrame:
    """Return the rows of both tables. A column that only one table has is null in the rows of the other."""
    return rows.unionByName(more, allowMissingColumns=True)


def strict(rows: DataFrame) -> DataFrame:
    """Return the rows without the column `PROBLEM` (why a row is invalid, or null).

    A job over the result fails at the first invalid row.
    """
    # The check is a filter, because Spark would not compute a column that nothing selects. The filter is
    # nondeterministic, because Spark may apply a later filter before a deterministic one, and remove an invalid row
    # before the check.
    problem, always = F.col(PROBLEM), F.monotonically_increasing_id() >= 0
    return rows.where(F.when(problem.isNull(), always).otherwise(F.raise_error(problem))).drop(PROBLEM)


def _read(spark: SparkSession, path: str) -> DataFrame:
    location = spark_path(path)
    files = files_of(spark, path, location)
    kinds = {PurePath(shown(file)).suffix for file in files}
    if kinds == {".csv"}:
        for file in files:
            _require_whole(local_file(file))
        rows = _from_csv(spark, path, files, location)
    elif kinds == {".parquet"}:
        rows = _from_parquet(spark, files, location)
    else:
        raise InvalidInput(f"{path}: pass .csv files or .parquet files, and not both in one folder")
    return rows


def _require_whole(path: Path | None) -> None:
    if path is None:
        return
    with path.open("rb") as file:
        if file.read(len(BOM_UTF8)) == BOM_UTF8:
            raise InvalidInput(f"{path}: it starts with a byte order mark: save it as plain UTF-8")
        file.seek(-1, 2)
        if file.read() != b"\n":
            raise InvalidInput(f"{path}: the last line has no line end, so the file was cut short: write it again")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            line = misquoted(content)
        if line:
            raise InvalidInput(f"{path}, line {line}: {MISQUOTED}")


def _from_csv(spark: SparkSession, path: str, files: Sequence[str], location: str) -> DataFrame:
    # RAISE_ERROR: a cell that begins with a quote and does not end with one fails the job. Files on this machine have
    # been checked for this by `_require_whole`; other files have not.
    # With columnPruning, a row that is cut short would be filled up with nulls. PySpark 4.3 turns it off for multiLine.
    reader = spark.read.options(
        multiLine=True, escape='"', enforceSchema=False, columnPruning=False, recursiveFileLookup=True
    ).option("unescapedQuoteHandling", "RAISE_ERROR")
    # The header is read as text, because the CSV reader would infer a schema from it, and can't open a file name with a
    # colon or a bracket.
    header = next(csv.reader([_first_line(spark, files, location)]), [])
    headless = len(header) == len(_HEADLESS) and all(cell.isdecimal() for cell in header[2:])
    names = _HEADLESS if headless else _known_columns(path, header)
    text = StructType([StructField(name, StringType()) for name in [*names, BROKEN]])
    cells = reader.schema(text).csv(location, header=not headless, columnNameOfCorruptRecord=BROKEN)
    return selected(cells, of_csv(spark, _fields(names), tuple(names), headless=headless))


def _first_line(spark: SparkSession, files: Sequence[str], location: str) -> str:
    """Return the first line of one of the files, without its line end."""
    here = local_file(files[0])
    if here is None:
        first = spark.read.text(location, recursiveFileLookup=True).first()
        return first.value if first else ""
    with here.open(encoding="utf-8", errors="replace") as file:
        return file.readline().rstrip("\n")


def _fields(present: Collection[str]) -> tuple[StructField, ...]:
    return (*SNAPSHOT, *([OLDEST_UNCONSUMED] if OLDEST_UNCONSUMED.name in present else []))


def _known_columns(path: str, names: list[str]) -> list[str]:
    if not names:
        raise InvalidInput(f"{path}: the file has no header: write the snapshot again")
    for name in names:
        if name not in (*SNAPSHOT.names, OLDEST_UNCONSUMED.name):
            raise InvalidInput(
                f"{path}: unknown column {name!r}: remove it, or install the version that wrote the file; "
                f"a snapshot has {', '.join(SNAPSHOT.names)}"
            )
        if names.count(name) > 1:
            raise InvalidInput(f"{path}: the column {name!r} appears twice: remove one")
    for name in schema.REQUIRED:
        if name not in names:
            raise InvalidInput(f"{path}: the column {name!r} is missing: add it")
    return names


def _from_parquet(spark: SparkSession, files: list[str], location: str) -> DataFrame:
    # Each file is checked, because Spark fills a column that a file lacks with nulls.
    by_file = {shown(file): _parquet_columns(spark, file) for file in files}
    fields = _fields({name for found in by_file.values() for name in found})
    wanted = {field.name: field.dataType.simpleString() for field in fields}
    for file, found in by_file.items():
        for name in [*found, *wanted]:
            if found.get(name) != wanted.get(name):
                unknown = "no column of this name: install the version that wrote the file"
                raise InvalidInput(
                    f"{file}: the column {name!r} is {found.get(name, 'missing')}, expected {wanted.get(name, unknown)}"
                )
    reader = spark.read.options(recursiveFileLookup=True, **CHECKED)
    return selected(reader.schema(StructType([*fields])).parquet(location), of_parquet(fields))


def _parquet_columns(spark: SparkSession, file: str) -> dict[str, str]:
    with readable_failures(shown(file)):
        found = spark.read.parquet(literal(unquote(file))).schema
    return {field.name: field.dataType.simpleString() for field in found}
