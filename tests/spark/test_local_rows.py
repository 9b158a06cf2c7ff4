"""`local_table` makes a DataFrame of rows from this process, with and without pyarrow."""

from __future__ import annotations

import sys

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from migrate_groups.spark.local_rows import local_table

SCHEMA = StructType([StructField("group", StringType()), StructField("ours", ArrayType(LongType()))])


@pytest.mark.parametrize("rows", [[], [("größe", [1, 2**62]), (None, []), ("b", None)]], ids=["none", "some"])
@pytest.mark.parametrize("has_arrow", [True, False], ids=["pyarrow", "no pyarrow"])
def test_rows_are_the_same_with_and_without_pyarrow(spark: SparkSession, monkeypatch, rows, has_arrow) -> None:
    """The DataFrame that `local_table` makes has the given rows and schema, even on a driver without pyarrow."""
    if not has_arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)  # so that importing it is an ImportError
    table = local_table(spark, rows, SCHEMA)
    assert table.schema == SCHEMA
    assert [tuple(row) for row in table.collect()] == rows
