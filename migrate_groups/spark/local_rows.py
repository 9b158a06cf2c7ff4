"""Make a DataFrame from Python tuples, and named tuples from a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType

MAX_ROWS = 1000
"""The largest number of rows of a table that a job returns. The tables that it writes have all rows."""


def plain_rows(table: DataFrame, kind: Any) -> tuple[Any, ...]:
    """Return the first `MAX_ROWS` rows of a table as named tuples of the class ``kind``, with times in UTC."""

    def value(each: Any) -> Any:
        return each.astimezone(UTC) if isinstance(each, datetime) else each

    return tuple(kind._make(map(value, row)) for row in table.select(*kind._fields).limit(MAX_ROWS).collect())


def local_table(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: StructType) -> DataFrame:
    """Return a DataFrame with these rows."""
    given = [*rows]
    # Arrow, because Spark would read tuples with a Python worker, which takes a second to start. A driver on a cluster
    # may lack pyarrow.
    try:
        import pyarrow as pa
    except ImportError:
        return spark.createDataFrame(given, schema)

    columns = [*zip(*given, strict=True)] or [()] * len(schema)
    arrays = [pa.array(column, _arrow(field.dataType)) for column, field in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, names=schema.names), schema)


def _arrow(kind: DataType) -> Any:
    """Return the Arrow type of a Spark type."""
    # PySpark's own function for this takes other arguments in each version.
    import pyarrow as pa

    if isinstance(kind, ArrayType):
        return pa.list_(_arrow(kind.elementType))
    return {
        "string": pa.string(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }[kind.typeName()]
