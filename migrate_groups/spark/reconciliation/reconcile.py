"""Compare the committed offsets and lag of each partition before and after a migration, as Spark DataFrames.

docs/reconcile.md#the-status-of-a-partition explains the status that each partition gets.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from migrate_groups.spark.reconciliation.mapping import expected
from migrate_groups.spark.reconciliation.pairs import KEYS, SIDES, latest_rows, single_rows
from migrate_groups.spark.reconciliation.snapshots import OLDEST_UNCONSUMED

PLANNED = StructType(
    [
        StructField("cluster_id", StringType()),
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("planned", LongType(), nullable=False),
    ]
)
"""Offsets that a plan sets in target groups for partitions without a committed offset in the source group."""

STATUSES = ("missing", "below-log-start", "behind", "unexpected", "ahead", "no-commit", "exact")
"""All statuses of a partition, the worst first."""

PROBLEMS = STATUSES[:4]
"""The statuses that mean that records are skipped or processed twice, or that a committed offset is missing."""

AHEAD_PROVES_NOTHING = (
    "`ahead` proves nothing: normal processing and skipped records look the same. "
    "To tell them apart, take a snapshot before the new groups start."
)

_TOPIC_KEYS = ["cluster_id", "group", "topic"]
_SUMS = ("lag_before", "lag_after", "produced", "consumed")
TIME_LAGS = ("time_lag_before", "time_lag_after")
"""The columns of the time lag: the age of a partition's oldest unread record, in seconds."""


def partition_verdict(
    before: DataFrame,
    after: DataFrame,
    mapping: DataFrame | None = None,
    planned: DataFrame | None = None,
    *,
    single: bool = False,
    other_groups: bool = True,
) -> DataFrame:
    """Compare snapshots from before and after a migration. Return one row for each cluster, group, topic and partition.

    Args:
        before: rows of snapshots (`snapshots.SNAPSHOT`) from before the migration.
        after: rows of snapshots from after the migration.
        mapping: the target group of each topic or partition; None: each row of ``before`` is compared under its own
            group.
        planned: offsets that a plan sets where ``before`` has none (`PLANNED`). A partition with an offset only in
            ``after`` is then left out, because the plan does not hand it over; without it, it is ``unexpected``.
        single: whether each partition has only one row in each table, and each group only one source group. True is
            faster. If True is wrong, the job fails with the message `pairs.NOT_SINGLE`.
        other_groups: whether ``after`` may have groups that are not compared. False is faster.

    Columns:

    - cluster_id, group (the target group), source_group, topic, partition.
    - status: one of `STATUSES`. reason: an explanation of the status, or null.
    - before_offset, after_offset, before_log_start, before_log_end, after_log_start, after_log_end.
    - lag_before, lag_after: null without a committed offset.
    - time_lag_before, time_lag_after: the age of the oldest unread record in seconds, if the tables have the column
      `snapshots.OLDEST_UNCONSUMED`.
    - produced, consumed: the growth of the log end offset and of the committed offset; null if the topic was recreated.

    Rows of ``before`` and ``after`` are compared only if their cluster_id is the same, or null in both. A job over the
    result fails if ``before`` or ``after`` has two different offsets of a partition at its latest time, or two source
    groups of a partition.
    """
    asked = _with_side(expected(before, mapping), "before")
    found = _with_side(after, "after")
    if other_groups:
        groups = F.broadcast(asked.select("cluster_id", "group").distinct())
        found = found.join(groups, ["cluster_id", "group"], "left_semi")
    pairs = single_rows(asked, found) if single else latest_rows(asked, found)
    if planned is None:
        pairs = pairs.withColumn("planned", F.lit(None).cast(LongType()))
    else:
        pairs = pairs.join(_with_side(planned, "planned").drop("side"), KEYS, "full")
        pairs = pairs.where(_start().isNotNull() | F.col("after_offset").isNull())
    timed = f"before_{OLDEST_UNCONSUMED.name}" in pairs.columns
    end, offset = (tuple(F.col(f"{side}_{name}") for side in SIDES) for name in ("log_end", "offset"))
    return pairs.select(
        F.nullif("cluster_id", F.lit("")).alias("cluster_id"),
        "group",
        "source_group",
        "topic",
        "partition",
        F.coalesce("contradiction", _status()).alias("status"),
        *(f"{side}_offset" for side in SIDES),
        *(f"{side}_{name}" for side in SIDES for name in ("log_start", "log_end")),
        *((F.col(f"{side}_log_end") - F.col(f"{side}_offset")).alias(f"lag_{side}") for side in SIDES),
        *(_time_lag(side) for side in SIDES if timed),
        F.when(~F.col("recreated"), end[1] - end[0]).alias("produced"),
        F.when(~F.col("recreated"), offset[1] - _start()).alias("consumed"),
        _reason().alias("reason"),
    )


def group_topic_summary(verdicts: DataFrame) -> DataFrame:
    """Sum up the partitions of `partition_verdict`. Return one row for each cluster, group and topic.

    Columns:

    - cluster_id, group, topic.
    - worst: the worst status of a partition.
    - partitions: their number. Further columns have the number for each status, such as ``below_log_start``.
    - lag_before, lag_after, produced, consumed: sums; null if no partition has a value.
    - time_lag_before, time_lag_after: the largest of any partition, if ``verdicts`` has these columns.
    """
    counts = (F.count_if(F.col("status") == status).alias(count_column(status)) for status in STATUSES)
    sums = (F.try_sum(name).alias(name) for name in _SUMS)
    largest = (F.max(name).alias(name) for name in TIME_LAGS if name in verdicts.columns)
    worst = _status_of(F.min(severity(F.col("status")))).alias("worst")
    return verdicts.groupBy(*_TOPIC_KEYS).agg(worst, F.count(F.lit(1)).alias("partitions"), *counts, *sums, *largest)


def with_totals(summary: DataFrame) -> DataFrame:
    """Return the rows of `group_topic_summary`, and one row with the totals, whose cluster, group and topic are null.

    Two columns are added: is_total, and topics (how many rows of ``summary`` the row sums up).
    """
    counts = ("partitions", *map(count_column, STATUSES), *_SUMS)
    return summary.groupingSets([[F.col(name) for name in _TOPIC_KEYS], []], *_TOPIC_KEYS).agg(
        _status_of(F.min(severity(F.col("worst")))).alias("worst"),
        (F.grouping("topic") == 1).alias("is_total"),
        F.count(F.lit(1)).alias("topics"),
        *(F.try_sum(name).alias(name) for name in counts),
        *(F.max(name).alias(name) for name in TIME_LAGS if name in summary.columns),
    )


def severity(status: Column) -> Column:
    """Return the rank of a partition's status: 1 is the worst."""
    return F.array_position(_statuses(), status)


def count_column(status: str) -> str:
    """Return the name of the summary column that counts the partitions with a status."""
    return status.replace("-", "_")


def _statuses() -> Column:
    return F.array(*map(F.lit, STATUSES))


def _status_of(number: Column) -> Column:
    return F.element_at(_statuses(), number.cast(IntegerType()))


def _with_side(rows: DataFrame, side: str) -> DataFrame:
    # A null cluster_id becomes empty, because Spark does not join nulls.
    return rows.withColumns({"cluster_id": F.coalesce("cluster_id", F.lit("")), "side": F.lit(side)})


def _time_lag(side: str) -> Column:
    """Return the age in seconds of a partition's oldest unread record when a snapshot was taken; null: not known.

    The age is 0 if the record is newer than the snapshot. side: ``before`` or ``after``: when the snapshot was taken.
    """
    taken_at, oldest = (F.unix_micros(F.col(f"{side}_{name}")) for name in ("taken_at", OLDEST_UNCONSUMED.name))
    age = F.when(taken_at > oldest, (taken_at - oldest) / 1_000_000).when(oldest.isNotNull(), 0.0)
    return age.alias(f"time_lag_{side}")


def _start() -> Column:
    """Return the offset at which the target group must start.

    It is the offset that was committed before the migration. If there was none, it is the planned offset.
    """
    return F.coalesce("before_offset", "planned")


def _status() -> Column:
    before, after = _start(), F.col("after_offset")
    # below-log-start comes first, because it always means lost records. An offset above the log end offset has no
    # status, because the offset of a live group may be read after the log end.
    return (
        F.when(after < F.col("after_log_start"), "below-log-start")
        .when(before.isNull() & after.isNull(), "no-commit")
        .when(after.isNull(), "missing")
        .when(before.isNull() | F.col("recreated"), "unexpected")
        .when(after < before, "behind")
        .when(after > before, "ahead")
        .otherwise("exact")
    )


def _records(number: Column) -> Column:
    return F.when(number == 1, "1 record").otherwise(F.format_string("%s records", number))


def _reason() -> Column:
    before, after, planned = F.col("before_offset"), F.col("after_offset"), F.col("planned")
    on_purpose = before.isNull() & planned.isNotNull()
    start, end = F.col("after_log_start"), F.col("after_log_end")
    same_log = ~F.col("recreated")
    facts: list[tuple[Column, str, tuple[Column, ...]]] = [
        (after < start, "the log start offset is %s: %s already deleted", (start, _records(start - after))),
        (F.col("recreated"), "the topic was recreated: its offsets can't be compared", ()),
        (before.isNotNull() & after.isNull(), "offset %s was committed before, none after", (before,)),
        (on_purpose & after.isNotNull(), "no offset was committed before, and the plan sets %s", (planned,)),
        (on_purpose & after.isNull(), "the plan sets %s, and no offset is committed after", (planned,)),
        (
            _start().isNull() & after.isNotNull(),
            "offset %s is committed after, none was before",
            (after,),
        ),
        (same_log & (after < _start()), "%s will be processed again", (_records(_start() - after),)),
        (
            same_log & (after > _start()),
            "the committed offset is %s higher: records were processed since, or skipped",
            (after - _start(),),
        ),
        (after > end, "the committed offset is above the log end offset as it was read, %s", (end,)),
    ]
    sentences = (F.when(holds, F.format_string(text, *values)) for holds, text, values in facts)
    return F.nullif(F.concat_ws("; ", *sentences), F.lit(""))
