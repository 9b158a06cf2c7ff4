"""Find out how members of a group share the load, and whether they keep up with producers.

An application is the members of a group that share topics (`migrate_groups.applications`).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

_APPLICATION = ("group", "application")
_THIRDS = 3


def committed(generations: DataFrame, commits: DataFrame) -> DataFrame:
    """Return one row for each generation of a group and each partition with a commit in this generation.

    Columns: group, log_offset (of the generation's record), topic, partition, at (the time of the last commit),
    consumed (the last committed offset minus the first one, at least 0; null: not known).
    """
    marks = generations.select(
        "group", "log_offset", F.lit(None).cast("timestamp").alias("log_time"), F.col("log_offset").alias("_begun")
    )
    both = commits.select("group", "log_offset", "log_time", "topic", "partition", "offset").unionByName(
        marks, allowMissingColumns=True
    )
    begun = F.last("_begun", ignorenulls=True).over(Window.partitionBy("group").orderBy("log_offset"))
    first, last = (of("offset", F.when(F.col("offset").isNotNull(), F.col("_at"))) for of in (F.min_by, F.max_by))
    return (
        both.withColumns({"_at": F.col("log_offset"), "log_offset": begun})
        .where(F.col("topic").isNotNull() & F.col("log_offset").isNotNull())
        .groupBy("group", "log_offset", "topic", "partition")
        .agg(F.max("log_time").alias("at"), F.greatest(F.try_subtract(last, first), F.lit(0)).alias("consumed"))
    )


def spread(members: DataFrame) -> DataFrame:
    """Return how the members of each application shared its load in each generation.

    Columns: those of ``spread`` in `overload.Overload`.
    """
    return (
        members.groupBy(*_APPLICATION, "log_offset", "generation", F.col("log_time").alias("since"))
        .agg(
            F.count("*").cast("int").alias("members"),
            F.count_if(F.size("partitions") == 0).cast("int").alias("idle"),
            F.try_sum("consumed").alias("consumed"),
            F.max("consumed").alias("busiest"),
        )
        .drop("log_offset")
    )


def of_members(found: DataFrame) -> DataFrame:
    """Return how evenly the members of each application shared its load.

    Columns: group, application, idle (how many members had no partition in the last generation), spread (the records
    that the busiest member consumed, divided by the mean of all members). found: the result of `load.spread`.
    """
    mean = F.sum(F.col("consumed") / F.col("members"))
    return found.groupBy(*_APPLICATION).agg(
        F.max_by("idle", F.struct("since", "generation")).alias("idle"),
        F.when(mean > 0, F.round(F.sum(F.col("busiest").cast("double")) / mean, 2)).alias("spread"),
    )


def keeps_up(applications: DataFrame, timeline: DataFrame) -> DataFrame:
    """Return how well each application keeps up with producers, as two ratios.

    Columns: group, application, keeps_up (the records consumed divided by the records produced), best_third (the
    highest such ratio in a third of the time). A ratio is null if it is not known. timeline: lag over time
    (`history.history`).
    """
    of_topic = applications.select(*_APPLICATION, "since", F.explode("topics").alias("topic"))
    known = F.col("produced").isNotNull() & F.col("consumed").isNotNull()
    rows = timeline.where(known).join(F.broadcast(of_topic), ["group", "topic"])
    rows = rows.where(F.col("taken_at") > F.col("since"))
    since = F.unix_micros("since")
    whole = F.max(F.unix_micros("taken_at")).over(Window.partitionBy(*_APPLICATION)) - since
    third = F.ceil(_THIRDS * (F.unix_micros("taken_at") - since) / whole)
    ratio = F.when(F.try_sum("produced") > 0, F.round(F.try_sum("consumed") / F.try_sum("produced"), 2))
    thirds = rows.withColumn("_third", third).groupBy(*_APPLICATION, "_third").agg(
        ratio.alias("_ratio"), F.try_sum("produced").alias("produced"), F.try_sum("consumed").alias("consumed")
    )  # fmt: skip
    return thirds.groupBy(*_APPLICATION).agg(
        ratio.alias("keeps_up"), F.when(F.count("_ratio") == _THIRDS, F.max("_ratio")).alias("best_third")
    )
