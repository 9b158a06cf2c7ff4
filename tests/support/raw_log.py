"""A copied log of the offsets topic as a DataFrame, from records of a test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.offsets_topic.offsets_log import RAW


def raw_log(spark: SparkSession, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Return a table with the columns of `RAW`. A row without the last column, producer_id, is in no transaction."""
    return local_table(spark, ((*row, None)[: len(RAW)] for row in rows), RAW)
