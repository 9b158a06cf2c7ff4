"""Make a DataFrame of rows in the memory of this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def local_table(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: StructType) -> DataFrame:
    """Return a DataFrame of these rows.

    They are sent to Spark as Arrow, because Spark would read tuples with a Python worker, which takes a second to
    start. Without pyarrow, which a driver on a cluster may lack, they are sent as tuples.
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
