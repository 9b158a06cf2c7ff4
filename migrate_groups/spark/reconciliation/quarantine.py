"""Write invalid snapshot rows to a CSV file instead of failing the job. Each row has its file, line and reason."""

from __future__ import annotations

from collections import defaultdict

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import LongType, StringType, StructField, StructType

from migrate_groups.spark.failures import PROBLEM_FIELDS, Cell, first_lines, local_file
from migrate_groups.spark.files import write_whole_cells
from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.reconciliation.cells import PROBLEM
from migrate_groups.spark.reconciliation.snapshots import SNAPSHOT

MAX_LINES = 1000
"""The largest number of different invalid cells whose line is looked up. The driver reads the files for it."""

_FIELDS = StructType([StructField(name, StringType()) for name in PROBLEM_FIELDS])
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_LINES = StructType([*_FIELDS.fields[:3], StructField("line", LongType())])


def right(rows: DataFrame) -> DataFrame:
    """Return the valid rows of a snapshot, without the column `PROBLEM`, which says why a row is invalid."""
    return rows.where(F.col(PROBLEM).isNull()).drop(PROBLEM)


def set_aside(before: DataFrame, after: DataFrame, folder: str) -> tuple[int, int]:
    """Write the invalid rows of two snapshots as CSV to a new folder, and return the number of rows from each snapshot.

    before, after: rows with the column `cells.PROBLEM` (why a row is invalid, or null). Columns of the CSV: side
    (``BEFORE`` or ``AFTER``), file, line, column, value, expected, row (the readable cells as JSON). If the row has the
    wrong number of cells, column is null, and value is the row's text.
    """
    wrong = _wrong(before, "BEFORE").unionByName(_wrong(after, "AFTER")).persist()
    try:
        counts = {row["side"]: row["count"] for row in wrong.groupBy("side").count().collect()}
        lines = _lines(wrong)
        place = [F.col(f"wrong.{name}").eqNullSafe(F.col(f"lines.{name}")) for name in _LINES.names[:3]]
        found = wrong.alias("wrong").join(F.broadcast(lines).alias("lines"), place, "left")
        columns = ("side", _shown("wrong.file"), "line", "wrong.column", "wrong.value", "expected", "row")
        write_whole_cells(found.select(*columns).sort("side", "file", "line"), folder)
    finally:
        wrong.unpersist()
    return counts.get("BEFORE", 0), counts.get("AFTER", 0)


def _wrong(rows: DataFrame, side: str) -> DataFrame:
    return (
        rows.where(F.col(PROBLEM).isNotNull())
        .withColumn("problem", F.from_json(PROBLEM, _FIELDS))
        .select(F.lit(side).alias("side"), "problem.*", F.to_json(F.struct(*SNAPSHOT.names), _JSON).alias("row"))
    )


def _lines(wrong: DataFrame) -> DataFrame:
    by_file: dict[str, list[Cell]] = defaultdict(list)
    for row in wrong.select(*_LINES.names[:3]).distinct().limit(MAX_LINES).collect():
        by_file[row["file"]].append((row["column"], row["value"]))
    places = [
        (file, *cell, line)
        for file, cells in by_file.items()
        for cell, line in first_lines(local_file(file), cells).items()
    ]
    return local_table(wrong.sparkSession, places, _LINES)


def _shown(uri: str) -> Column:
    """Return a column of file URIs as messages show them: a ``file:`` URI as a path, any other URI unchanged."""
    path = F.url_decode(F.replace(F.regexp_replace(uri, "^file:(//)?", ""), F.lit("+"), F.lit("%2B")))
    return F.when(F.startswith(F.col(uri), F.lit("file:")), path).otherwise(F.col(uri)).alias("file")
