"""Lag over time, where there are more moments than before and after.

A line belongs to an expected group (`mapping.expected`) and a topic. It begins with the history that the group took
over, the old group's offsets in BEFORE, until the group's own first commit in the topic; from then on it is its own.
So a line goes on across the hand-over, and ``source_group`` says whose offsets a point is made of.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StringType

from migrate_groups.spark.reconciliation.mapping import expected
from migrate_groups.spark.reconciliation.snapshots import with_rows

_LINE = ["cluster_id", "group", "topic"]
_PARTITION = [*_LINE, "partition"]


def lag_timeline(before: DataFrame, after: DataFrame, mapping: DataFrame | None = None) -> DataFrame:
    """One row for every cluster, expected group, topic and moment; rows without a ``taken_at`` are left out.

    Columns: cluster_id, group, topic, taken_at, source_group (the old group as long as offsets are its own, null
    afterwards), partitions, committed (partitions with a commit), lag (null if no partition has one: no commit is
    never lag 0), produced and consumed (since the moment before at which a partition was seen; null at the first, and
    across a topic's recreation). All of them are sums over the partitions that have the figure, null if too large.

    Cluster ids must be equal, or null on both sides: `comparable.align` sees to that.
    """
    asked = _comparable(expected(before, mapping))
    groups = asked.select("cluster_id", "group").distinct()
    own = _comparable(after).join(groups, ["cluster_id", "group"], "left_semi")
    offset, end = F.col("offset"), F.col("log_end_offset")
    line, is_own = Window.partitionBy(*_LINE), F.col("source_group").isNull()
    first_own = F.min(F.when(is_own & offset.isNotNull(), F.col("taken_at"))).over(line)
    moments = (
        with_rows(asked, own.withColumn("source_group", F.lit(None).cast(StringType())))
        .where(F.col("taken_at").isNotNull())
        .withColumn("first_own", first_own)
        .where(is_own | F.col("first_own").isNull() | (F.col("taken_at") < F.col("first_own")))
        .groupBy(*_PARTITION, "taken_at")
        .agg(F.max(F.struct("offset", "log_end_offset", "topic_id", "source_group")).alias("row"))
        .select(*_PARTITION, "taken_at", "row.*")
    )
    return (
        moments.withColumns({"produced": _since(end), "consumed": _since(offset)})
        .groupBy(*_LINE, "taken_at")
        .agg(
            F.max("source_group").alias("source_group"),
            F.count(F.lit(1)).alias("partitions"),
            F.count("offset").alias("committed"),
            F.try_sum(end - offset).alias("lag"),
            F.try_sum("produced").alias("produced"),
            F.try_sum("consumed").alias("consumed"),
        )
        .withColumn("cluster_id", F.nullif("cluster_id", F.lit("")))
    )


def most_telling(timeline: DataFrame, most: int) -> DataFrame:
    """At most so many points of `lag_timeline`, with a line for every group as a whole (its topic is null).

    Lines of whole groups come before those of topics, the ones with the largest lag first; of the line that is cut the
    latest points are kept.
    """
    line = Window.partitionBy(*_LINE)
    points = timeline.groupingSets(
        [[F.col(name) for name in names] for names in ((*_LINE, "taken_at"), ("cluster_id", "group", "taken_at"))],
        *_LINE,
        "taken_at",
    ).agg(*(F.try_sum(name).alias(name) for name in ("partitions", "lag", "produced", "consumed")))
    return (
        points.withColumn("peak", F.max("lag").over(line))
        .orderBy(F.col("topic").isNotNull(), F.col("peak").desc_nulls_last(), *_LINE, F.col("taken_at").desc())
        .limit(most)
        .drop("peak")
        .orderBy(*_LINE, "taken_at")
    )


def _comparable(rows: DataFrame) -> DataFrame:
    """The rows with an empty cluster_id instead of null, so that it joins."""
    return rows.withColumn("cluster_id", F.coalesce("cluster_id", F.lit("")))


def _since(value: Column) -> Column:
    """The change since the partition's moment before; null where that was another topic of this name."""
    earlier = Window.partitionBy(*_PARTITION).orderBy("taken_at")
    another = F.coalesce(F.col("topic_id") != F.lag("topic_id").over(earlier), F.lit(False))
    return F.when(~another, value - F.lag(value).over(earlier))
