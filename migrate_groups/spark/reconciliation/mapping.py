"""Where each offset of BEFORE is expected afterwards: in a group that took it over, or where it was.

- A row with a ``source_group`` (a file that ``split`` wrote) is expected in its ``group``;
- else, with a mapping, in the group that the mapping has for its group and topic (and partition, where the mapping
  goes by that); rows that the mapping does not name stay where they are and are left out;
- else in its own group: the same group at two moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from migrate_groups.errors import InvalidInput
from migrate_groups.text import some

TOPIC_MAPPING = StructType(
    [
        StructField("source_group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
    ]
)
"""What a split spec says: whose offsets of a topic go to which group."""

MAPPING = StructType(
    [*TOPIC_MAPPING.fields[:2], StructField("partition", IntegerType(), nullable=False), TOPIC_MAPPING.fields[2]]
)
"""What a split file says: the same by partition."""

_MOST_NAMES = 6


@dataclass(frozen=True, slots=True)
class SplitMapping:
    """A split spec: the old group, and what turns its topics into those of each new group.

    ``cover`` raises `InvalidInput` where the spec does not cover the topics.
    """

    source: str
    cover: Callable[[Sequence[str]], Mapping[str, Sequence[str]]]


def expected(before: DataFrame, mapping: DataFrame | None) -> DataFrame:
    """The rows of BEFORE under the group where their offset is expected afterwards (see the module).

    Both have the columns of a snapshot. ``source_group`` is set on what was handed over, null where a group is compared
    with itself. ``mapping`` has the columns of `MAPPING` or of `TOPIC_MAPPING`.
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
    """The mapping (columns of `MAPPING`) that a snapshot written by ``split`` stands for."""
    return split.where(F.col("source_group").isNotNull()).select(*MAPPING.names).distinct()


def spec_mapping(before: DataFrame, split: SplitMapping) -> DataFrame:
    """The mapping (columns of `TOPIC_MAPPING`) that a spec stands for. One job; the driver holds topics, never rows.

    Raises:
        InvalidInput: the old group is not in BEFORE or was split before; as ``split.cover``.
    """
    topics = (
        before.where(F.col("group") == split.source)
        .groupBy("topic")
        .agg(F.count("source_group").alias("split"))
        .orderBy("topic")
        .collect()
    )
    if not topics:
        raise InvalidInput(f"source group {split.source!r} is not in BEFORE; it has {_groups(before)}")
    if any(row["split"] for row in topics):
        raise InvalidInput(f"rows of {split.source!r} have a source_group: BEFORE has been split already")
    targets = split.cover([row["topic"] for row in topics])
    rows = [(split.source, topic, group) for group, of_group in targets.items() for topic in of_group]
    return before.sparkSession.createDataFrame(rows, TOPIC_MAPPING)


def _groups(rows: DataFrame) -> str:
    found = rows.select("group").where(F.col("group").isNotNull()).distinct().orderBy("group").limit(_MOST_NAMES)
    return some([row["group"] for row in found.collect()]) or "no group"
