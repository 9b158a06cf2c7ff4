"""Spark expressions that convert the cells of a snapshot file to their types, and that find invalid rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import IntegerType, LongType, StringType, StructField

from migrate_groups import schema
from migrate_groups.schema import Kind
from migrate_groups.spark.failures import PROBLEM_FIELDS
from migrate_groups.text import ESCAPES, GUARDED

PROBLEM = "_problem"
"""The column with the reason why a row is invalid, as JSON with the keys `failures.PROBLEM_FIELDS`; null if valid."""

BROKEN = "_broken"
"""The column in which Spark's CSV reader puts a row with the wrong number of cells."""

_NUMBER = "_number"
_TEXT = "_text_"

# Longer texts are cut off, because a quote without an end turns the rest of the file into one row.
_MOST_SHOWN = 1000

# Types for which Spark accepts more texts than the schema allows.
_FORMS = {
    "timestamp": schema.FORMS[Kind.TIMESTAMP],
    "integer": schema.FORMS[Kind.INT32],
    "long": schema.FORMS[Kind.INT64],
}

Selection = Sequence[Column | str]
"""The columns to select from a table."""


def selected(rows: DataFrame, selections: Iterable[Selection]) -> DataFrame:
    """Call ``select`` with each list of columns, one call after another, and return the result."""
    return reduce(lambda selected, columns: selected.select(*columns), selections, rows)


@lru_cache(maxsize=8)
def of_csv(
    spark: SparkSession, fields: tuple[StructField, ...], names: tuple[str, ...], *, headless: bool
) -> tuple[Selection, ...]:
    """Return the ``select`` steps that convert the text cells of a CSV snapshot to their types, and find invalid rows.

    Run the steps with `selected`. The last step adds the column `PROBLEM`: why a row is invalid, or null.

    spark: the session; the result is cached for each, because columns belong to one session. fields: the columns of the
    result. names: the columns of the file. headless: whether the file has no header.
    """
    # The result is cached for further files, because PySpark makes hundreds of calls to Java for it.
    escapes = [(F.lit(escaped), F.lit(plain)) for plain, escaped in reversed(ESCAPES)]
    beginning = F.left(F.col(BROKEN), F.lit(_MOST_SHOWN))
    checks = [_Check(F.col(BROKEN).isNotNull(), f"a row of {len(names)} cells", None, beginning)]
    columns = [F.col(BROKEN)]
    for field in fields:
        if field.name not in names:
            columns.append(F.lit(None).cast(field.dataType).alias(field.name))
            continue
        cell = F.nullif(F.col(field.name), F.lit(""))
        if isinstance(field.dataType, StringType):
            if not headless:
                cell = F.regexp_replace(cell, GUARDED, "$1")
                for escaped, plain in escapes:
                    cell = F.replace(cell, escaped, plain)
            columns.append(cell.alias(field.name))
            continue
        columns.append(cell.try_cast(field.dataType).alias(field.name))
        form, written = _FORMS[field.dataType.typeName()], F.col(_TEXT + field.name)
        columns.append(cell.alias(_TEXT + field.name))
        wrong = written.isNotNull() & (F.col(field.name).isNull() | _is_other(written, form))
        checks.append(_Check(wrong, form.expected, field.name, written))
    if headless:  # because Kafka's own tool reads a missing offset as offset 0
        checks.append(_Check(F.col("offset").isNull(), "an offset", "offset", F.col("offset")))
    return columns, *_examining(fields, checks)


def of_parquet(fields: Sequence[StructField]) -> tuple[Selection, ...]:
    """Return the ``select`` steps that find invalid rows of a Parquet snapshot.

    Run the steps with `selected`. The last step adds the column `PROBLEM`: why a row is invalid, or null.
    """
    checks = [
        _Check(F.col(field.name) < 0, _FORMS[field.dataType.typeName()].expected, field.name, F.col(field.name))
        for field in fields
        if isinstance(field.dataType, IntegerType | LongType)
    ]
    return _examining(fields, checks)


class _Check(NamedTuple):
    """A check of a row, and what the error says if the check fails.

    wrong: whether the row is invalid. column: the invalid column; None: the row as a whole. value: the invalid value.
    """

    wrong: Column
    expected: str
    column: str | None
    value: Column


def _examining(fields: Sequence[StructField], checks: list[_Check]) -> tuple[Selection, Selection]:
    """Return two ``select`` steps that add the column `PROBLEM`: the first check that a row fails, or null.

    fields: the columns of the rows. checks: the checks for this file format. The checks for all formats are added here.
    """
    checks = [*checks, *(_of_any_file(field.name) for field in fields if field.name in schema.REQUIRED)]
    topic = F.col("topic")
    form = schema.FORMS[Kind.TOPIC]
    checks.append(_Check(_is_other(topic, form), form.expected, "topic", topic))
    for name in ("group", "source_group"):
        checks.append(_Check(F.contains(F.col(name), F.lit("\ufffd")), "text in UTF-8", name, F.col(name)))
    text = F.col("metadata")
    too_long = F.octet_length(text) > schema.MOST_TEXT
    checks.append(_Check(too_long, schema.FORMS[Kind.TEXT].expected, "metadata", F.left(text, F.lit(_MOST_SHOWN))))
    # The first step adds the number of the failed check, and the second one makes the text from this number. If each
    # check made its text, Spark would generate a method of more than 8000 bytes, which a JVM does not compile.
    number = F.col(_NUMBER)
    cells = (
        F.input_file_name(),  # not the column _metadata, because Spark would compute all its fields for every row
        F.element_at(F.array(*(F.lit(check.column) for check in checks)), number),
        F.element_at(F.array(*(check.value.cast(StringType()) for check in checks)), number),
        F.element_at(F.array(*(F.lit(check.expected) for check in checks)), number),
    )
    problem = F.to_json(F.struct(*(cell.alias(key) for cell, key in zip(cells, PROBLEM_FIELDS, strict=True))))
    found = F.coalesce(*(F.when(check.wrong, F.lit(at)) for at, check in enumerate(checks, start=1)))
    # An empty topic id is not known, so that it must not equal another one.
    cleaned = {"metadata": F.coalesce("metadata", F.lit("")), "topic_id": F.nullif(F.col("topic_id"), F.lit(""))}
    columns = (cleaned.get(field.name, F.col(field.name)).alias(field.name) for field in fields)
    return ["*", found.alias(_NUMBER)], [*columns, F.when(number.isNotNull(), problem).alias(PROBLEM)]


def _of_any_file(name: str) -> _Check:
    return _Check(F.col(name).isNull(), f"a {name}", name, F.col(name))


def _is_other(column: Column, form: schema.Form) -> Column:
    return ~column.rlike(f"\\A(?:{form.pattern})\\z")  # \z, because $ also matches before a last line end
