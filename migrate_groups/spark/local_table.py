"""Make a DataFrame of rows that this process has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def local_table(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: StructType) -> DataFrame:
    """Return a DataFrame of these rows.

    They are sent as Arrow. Spark would send tuples through a Python worker, which takes a second to start. A driver on
    a cluster may lack pyarrow; the rows are then sent as tuples.
    """
    given = [*rows]
    try:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema
    except ImportError:
        return spark.createDataFrame(given, schema)

    columns = [*zip(*given, strict=True)] or [()] * len(schema)
    fields = to_arrow_schema(schema, timezone="UTC")
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=fields), schema)
