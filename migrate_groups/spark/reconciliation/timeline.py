"""Compute the lag of groups over time, from snapshots of three or more points in time.

Until a target group's first commit in a topic, its lag is computed from the source group's offsets.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StringType

from migrate_groups.spark.reconciliation.mapping import expected
from migrate_groups.spark.reconciliation.snapshots import with_rows
from migrate_groups.spark.topic_ids import is_recreated, known_before

_LINE = ["cluster_id", "group", "topic"]
_PARTITION = [*_LINE, "partition"]


def lag_timeline(before: DataFrame, after: DataFrame, mapping: DataFrame | None = None) -> DataFrame:
    """Return lag over time: one row for each cluster, group, topic and ``taken_at``.

    before, after: rows of snapshots from before and after a migration. Rows without ``taken_at`` are left out. mapping:
    the target group of each topic or partition; None: the groups before and after are the same. Columns:

    - cluster_id, group (the target group), topic, taken_at.
    - source_group: the source group if the figures are from its offsets; null from the first
      snapshot on in which the target group has a committed offset, also one that the migration wrote.
    - partitions: their number. committed: the number of partitions with a committed offset.
    - lag: the sum over the partitions with a committed offset.
    - produced, consumed: the growth of the log end offsets and of the committed offsets since the previous
      ``taken_at``.

    A sum is null if no partition has a value. Rows of ``before`` and ``after`` belong together only if their cluster_id
    is the same, or null in both.
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
    """Return lag over time: sums over the partitions of each cluster, group and topic at each ``taken_at``.

    moments: one row for each partition and ``taken_at``, with its offset and log_end_offset; cluster_id is not null.

    Columns: cluster_id, group, topic, taken_at, source_group, partitions and committed (the number of all partitions,
    and of those with a committed offset), lag, produced and consumed (both since the previous ``taken_at``).
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
    """Return the most important rows of lag over time, sorted by cluster, group, topic and time.

    timeline: the result of `lag_timeline`. most: the largest number of rows. Rows with the sums over all topics of a
    group (topic null) are added, and are kept first. The rows of the topics with the highest lag come next.
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
    """Return the growth of ``value`` since the partition's previous ``taken_at``; null if the topic was recreated.

    A row without a topic id counts as one of the same topic.
    """
    earlier = Window.partitionBy(*_PARTITION).orderBy("taken_at")
    topic_id = F.col("topic_id")
    another = is_recreated(known_before(topic_id, earlier), topic_id, if_unknown=False)
    return F.when(~another, value - F.lag(value).over(earlier))
