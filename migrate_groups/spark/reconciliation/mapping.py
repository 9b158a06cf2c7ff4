"""Find the group that is to have each committed offset after a migration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from migrate_groups.errors import InvalidInput
from migrate_groups.spark.local_rows import local_table
from migrate_groups.text import some

TOPIC_MAPPING = StructType(
    [
        StructField("source_group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
    ]
)
"""The columns of a mapping made from a split spec: the target group for each topic of a source group."""

MAPPING = StructType(
    [*TOPIC_MAPPING.fields[:2], StructField("partition", IntegerType(), nullable=False), TOPIC_MAPPING.fields[2]]
)
"""The columns of a mapping made from a split file: the target group for each partition of a source group."""

_MOST_NAMES = 6


@dataclass(frozen=True, slots=True)
class SplitMapping:
    """A split spec: which topics of a source group go to which target group.

    cover: takes all topics of the source group, and returns the topics of each target group. It raises `InvalidInput`
    if the spec does not cover a topic.
    """

    source: str
    cover: Callable[[Sequence[str]], Mapping[str, Sequence[str]]]


def expected(before: DataFrame, mapping: DataFrame | None) -> DataFrame:
    """Return the rows of ``before``, each with the group that is to have the offset after the migration.

    before: a snapshot from before the migration. mapping: the target group of each topic or partition of a source
    group; None: all rows are returned unchanged.

    With a mapping, rows that have a ``source_group`` are not changed. All other rows get the target group; their old
    group becomes the ``source_group``. Rows without a target group are left out.
    """
    if mapping is None:
        return before
    handed_over = before.where(F.col("source_group").isNotNull())
    mapped = (
        before.where(F.col("source_group").isNull())
        .withColumn("source_group", F.col("group"))
        .drop("group")
        .join(mapping, [name for name in mapping.columns if name != "group"])
    )
    return handed_over.unionByName(mapped)


def split_mapping(split: DataFrame) -> DataFrame:
    """Return the target group of each partition of a source group, from a snapshot that the command ``split`` wrote.

    Columns: source_group, topic, partition, group (the target group).
    """
    return split.where(F.col("source_group").isNotNull()).select(*MAPPING.names).distinct()


def spec_mapping(before: DataFrame, split: SplitMapping) -> DataFrame:
    """Return the target group of each topic of a source group, from a split spec.

    Columns: source_group, topic, group (the target group). before: the snapshot from before the migration.

    Raises:
        InvalidInput: ``before`` has no row of the source group, or its rows have a ``source_group`` already; the spec
            does not cover a topic.
    """
    topics = (
        before.where(F.col("group") == split.source)
        .groupBy("topic")
        .agg(F.count("source_group").alias("split"))
        .orderBy("topic")
        .collect()
    )
    if not topics:
        raise InvalidInput(
            f"BEFORE has no rows of source group {split.source!r}; it has {_groups(before)}: pass its snapshot"
        )
    if any(row["split"] for row in topics):
        raise InvalidInput(
            f"BEFORE has been split already: rows of {split.source!r} have a source_group; pass no split"
        )
    targets = split.cover([row["topic"] for row in topics])
    rows = [(split.source, topic, group) for group, of_group in targets.items() for topic in of_group]
    return local_table(before.sparkSession, rows, TOPIC_MAPPING)


def _groups(rows: DataFrame) -> str:
    found = rows.select("group").where(F.col("group").isNotNull()).distinct().orderBy("group").limit(_MOST_NAMES)
    return some([row["group"] for row in found.collect()]) or "no group"
