"""Compute lag over time from snapshots that were taken at more than two moments.

The result has one line of points for each topic of each expected group (`mapping.expected`: the group in which an
offset is expected after the hand-over). Points before the first snapshot in which the group has an offset in the topic
come from the source group's offsets, in the snapshots from before the hand-over; their column ``source_group`` names
that group. All others come from the group's own offsets. So a line continues across the hand-over.
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
    """Return lag over time: one row for each cluster, group, topic and moment. Rows without ``taken_at`` are left out.

    before, after: the rows of snapshots taken before and after a hand-over. mapping: the target group of each topic or
    partition of a source group. Columns:

    - cluster_id, group, topic, taken_at (the moment). group: the target group or, without a mapping, the group in
      ``before``.
    - source_group: the source group if the figures are computed from its offsets; null from the group's first commit
      on.
    - partitions; committed: the number of partitions with a committed offset.
    - lag: a partition without a committed offset has no lag, and not lag 0.
    - produced, consumed: the growth of log end offsets and of committed offsets since the previous moment with this
      partition; null at the first moment, and if the topic was recreated in between.

    The figures are sums over the partitions that have a value. A sum is null if no partition has a value, or if the sum
    is too large for a bigint. Cluster ids must be equal, or null in both ``before`` and ``after``; `comparable.align`
    checks that.
    """
    asked = _comparable(expected(before, mapping))
    groups = asked.select("cluster_id", "group").distinct()
    own = _comparable(after).join(groups, ["cluster_id", "group"], "left_semi")
    offset = F.col("offset")
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
    return over_time(moments)


def over_time(moments: DataFrame) -> DataFrame:
    """Return lag over time: one row for each cluster, group, topic and moment, with sums over the partitions.

    Columns: cluster_id, group, topic, taken_at, source_group, partitions (their number), committed (how many of them
    have a committed offset), lag, produced and consumed (both since the previous moment). moments: one row for each
    cluster, group, topic, partition and moment, with the columns cluster_id (not null), group, topic, partition,
    taken_at, offset, log_end_offset, topic_id and source_group.
    """
    end, offset = F.col("log_end_offset"), F.col("offset")
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
    """Return lag over time in at most ``most`` rows: points of each topic of a group, and of the group as a whole.

    timeline: the result of `lag_timeline`. A point of a whole group is the sum over its topics, and its topic is null.
    If there are more points, those of whole groups are kept first, then those of the groups and topics with the highest
    lag. The last group or topic that is kept may lack its earliest points. The result is sorted by cluster, group,
    topic and moment.
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
    """Return the rows with an empty cluster_id in place of null, because Spark does not join nulls."""
    return rows.withColumn("cluster_id", F.coalesce("cluster_id", F.lit("")))


def _since(value: Column) -> Column:
    """Return the growth of ``value`` since the partition's previous ``taken_at``; null if the topic was recreated."""
    earlier = Window.partitionBy(*_PARTITION).orderBy("taken_at")
    another = F.coalesce(F.col("topic_id") != F.lag("topic_id").over(earlier), F.lit(False))
    return F.when(~another, value - F.lag(value).over(earlier))
