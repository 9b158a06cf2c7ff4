"""Bring the offsets of each partition before and after the hand-over into one row, in one of two ways.

- `latest_rows` takes the latest of any number of rows. Spark has to sort the rows for this, because it can compute the
  maximum of a text or a struct only over sorted rows.
- `single_rows` requires at most one row of each partition in BEFORE, and one in AFTER. Then Spark computes maxima of
  numbers only. For these it uses a hash table and sorts nothing (docs/evidence/performance.md#reconcile). The job fails
  with `NOT_SINGLE` if a partition has two rows after all.

Both take the rows of BEFORE and of AFTER, the snapshots from before and after the hand-over, with a column ``side``
(``before`` or ``after``). They return one row for each group, topic, partition and cluster_id. Further columns:

- source_group.
- recreated: whether the topic ids of BEFORE and AFTER differ.
- contradiction: carries a check. It is null, or the job that computes it fails, because rows of one snapshot contradict
  each other: for example, they give a partition two offsets at one moment.
- before_offset, before_log_start, before_log_end, and the same of AFTER: after_offset and so on.
- before_taken_at, before_oldest_unconsumed_at, and the same of AFTER: only if BEFORE or AFTER has
  `snapshots.OLDEST_UNCONSUMED`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StringType

from migrate_groups.spark.reconciliation.snapshots import OLDEST_UNCONSUMED, with_rows

SIDES = ("before", "after")
# Spark sorts fast by the beginning of the first key. So this is not the cluster, which most rows have in common.
KEYS = ["group", "topic", "partition", "cluster_id"]

NOT_SINGLE = "a partition has two rows in BEFORE or in AFTER, or its group has two source groups"
"""The message with which a job over `single_rows` fails if BEFORE or AFTER has two rows for a partition."""

_OFFSETS = {"offset": "offset", "log_start_offset": "log_start", "log_end_offset": "log_end"}
_TIMES = {name: name for name in ("taken_at", OLDEST_UNCONSUMED.name)}


def latest_rows(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return, for each partition, the latest row of ``before`` and of ``after`` in one row.

    A null ``taken_at`` counts as the earliest. The column ``contradiction`` carries a check: it is null, or the job
    that computes it fails, because ``before`` or ``after`` has two offsets of a partition at its latest ``taken_at``,
    or two source groups for a partition. The message names the partition.
    """
    # Repartitioned explicitly. Otherwise Spark would sort and merge before the exchange too, and merge hardly any rows.
    rows = with_rows(before, after).repartition(*KEYS)
    names, timed = _names(rows), OLDEST_UNCONSUMED.name in rows.columns
    sides = rows.groupBy(*KEYS).agg(*(each for side in SIDES for each in _latest(side, timed=timed)))
    return sides.select(
        *KEYS,
        "before.source_group",
        (F.col("before.topic_id") != F.col("after.topic_id")).alias("recreated"),
        F.coalesce(*map(_contradiction, SIDES)).alias("contradiction"),
        *(F.col(f"{side}.{name}").alias(f"{side}_{short}") for side in SIDES for name, short in names.items()),
    )


def single_rows(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return, for each partition, its only row of ``before`` and its only row of ``after`` in one row.

    Two columns carry checks. ``contradiction`` is null, or the job that computes it fails, because a partition has two
    rows in ``before`` or in ``after``. A job that computes ``source_group`` fails if a group has two source groups. The
    message is `NOT_SINGLE`.
    """
    of_groups = before.select("cluster_id", "group", "source_group").distinct()
    # The source groups are joined at the end, because a hash table can't hold texts. Spark leaves this join out of
    # queries that do not use the source group, because it knows that each group has one row in ``sources``.
    sources = of_groups.groupBy("cluster_id", "group").agg(
        F.count("*").alias("sources"), F.max("source_group").alias("source_group")
    )
    rows = with_rows(before, after)
    names = _names(rows)
    # The first aggregation also groups by topic id. So a recreated topic gives two rows, which the second one merges.
    by_id = (
        rows.repartition("group", "topic")  # not by partition, so that the summary needs no further exchange
        .groupBy(*KEYS, "topic_id")
        .agg(*(each for side in SIDES for each in _only(side, names)))
    )
    columns = [f"{side}_{short}" for side in SIDES for short in names.values()]
    pairs = by_id.groupBy(*KEYS).agg(
        (F.count("topic_id") > 1).alias("recreated"),
        *(F.sum(f"{side}_rows").alias(f"{side}_rows") for side in SIDES),
        *(F.max(name).alias(name) for name in columns),
    )
    is_single = (F.col("before_rows") <= 1) & (F.col("after_rows") <= 1)
    source = F.when(F.col("before_rows") > 0, F.when(F.col("sources") == 1, F.col("source_group")).otherwise(_fail()))
    return pairs.join(F.broadcast(sources), ["cluster_id", "group"], "left").select(
        *KEYS, source.alias("source_group"), "recreated", F.when(~is_single, _fail()).alias("contradiction"), *columns
    )


def _names(rows: DataFrame) -> dict[str, str]:
    return _OFFSETS | (_TIMES if OLDEST_UNCONSUMED.name in rows.columns else {})


def _fail() -> Column:
    return F.raise_error(F.lit(NOT_SINGLE)).cast(StringType())


def _only(side: str, names: dict[str, str]) -> list[Column]:
    """Return aggregates over a partition's rows on one side: their number, and the largest value of each column.

    side: ``before`` or ``after``. names: column -> its short name in the result.
    """
    here = F.col("side") == side
    values = [F.max(F.when(here, F.col(name))).alias(f"{side}_{short}") for name, short in names.items()]
    return [F.count_if(here).alias(f"{side}_rows"), *values]


def _latest(side: str, *, timed: bool) -> list[Column]:
    """Return aggregates that find a partition's latest row on one side of the hand-over, ``before`` or ``after``.

    Further aggregates show whether its rows with the latest ``taken_at`` differ in the offset, or any of its rows in
    the source group. timed: include the time of the oldest unread record.
    """
    here, offset = F.col("side") == side, F.coalesce("offset", F.lit(-1))
    values = [*_OFFSETS, "topic_id", "source_group"]
    values += [OLDEST_UNCONSUMED.name] if timed else []
    return [
        F.max(F.when(here, F.struct("taken_at", offset.alias("largest"), *values))).alias(side),
        F.max(F.when(here, F.struct("taken_at", (-offset).alias("negative")))).alias(f"{side}_smallest"),
        F.min(F.when(here, F.col("source_group"))).alias(f"{side}_source"),
        F.max(F.when(here, F.col("source_group"))).alias(f"{side}_other_source"),
    ]


def _contradiction(side: str) -> Column:
    """Return a column of nulls, which fails the job if a partition has two latest offsets or two source groups.

    side: which snapshots are checked, those from ``before`` the hand-over or those from ``after`` it.
    """
    place = F.concat("topic", F.lit("-"), "partition", F.lit(" of group "), "group")
    source, other = F.col(f"{side}_source"), F.col(f"{side}_other_source")
    two_offsets = F.format_string(f"{side.upper()} has two offsets at the same moment for %s: remove one", place)
    two_sources = F.format_string(
        f"{side.upper()} has two source groups (%s, %s) for %s: remove one", source, other, place
    )
    return (
        F.when(F.col(f"{side}.largest") != -F.col(f"{side}_smallest.negative"), F.raise_error(two_offsets))
        .when(source != other, F.raise_error(two_sources))
        .cast(StringType())
    )
