"""Make a DataFrame from Python tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType


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
