"""Put the offsets of each partition from before and after a migration into one row."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StringType

from migrate_groups.spark.reconciliation.snapshots import OLDEST_UNCONSUMED, with_rows
from migrate_groups.spark.topic_ids import are_recreated, is_recreated

SIDES = ("before", "after")
# Spark sorts fast by the beginning of the first key. So this is not the cluster, which most rows have in common.
KEYS = ["group", "topic", "partition", "cluster_id"]

NOT_SINGLE = "a partition has two rows in BEFORE or in AFTER, or its group has two source groups"
"""The message with which a job over `single_rows` fails."""

_OFFSETS = {"offset": "offset", "log_start_offset": "log_start", "log_end_offset": "log_end"}
_TIMES = {name: name for name in ("taken_at", OLDEST_UNCONSUMED.name)}


def latest_rows(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return one row for each partition, with its latest row in ``before`` and its latest row in ``after``.

    Columns:

    - `KEYS`, source_group, recreated (whether the topic is known to have another topic id; a hint of `reconcile` says
      how many rows have none).
    - with the prefixes ``before_`` and ``after_``: offset, log_start, log_end, and optionally taken_at and
      oldest_unconsumed_at.
    - contradiction: always null. A job that computes this column fails if ``before`` or ``after`` has two different
      offsets of a partition at its latest time, or two source groups of a partition.
    """
    # Repartitioned explicitly. Otherwise Spark would sort and merge before the exchange too, and merge hardly any rows.
    rows = with_rows(before, after).repartition(*KEYS)
    # Spark has to sort for this, because it can compute the maximum of a struct only over sorted rows.
    names, timed = _names(rows), OLDEST_UNCONSUMED.name in rows.columns
    sides = rows.groupBy(*KEYS).agg(*(each for side in SIDES for each in _latest(side, timed=timed)))
    return sides.select(
        *KEYS,
        "before.source_group",
        is_recreated(F.col("before.topic_id"), F.col("after.topic_id"), if_unknown=False).alias("recreated"),
        F.coalesce(*map(_contradiction, SIDES)).alias("contradiction"),
        *(F.col(f"{side}.{name}").alias(f"{side}_{short}") for side in SIDES for name, short in names.items()),
    )


def single_rows(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return one row for each partition, with its only row in ``before`` and its only row in ``after``.

    The columns are those of `latest_rows`, which takes more time, but accepts several rows of a partition.

    A job that computes the column contradiction fails if ``before`` or ``after`` has two rows of a partition. A job
    that computes the column source_group fails if a group has two source groups. The message is `NOT_SINGLE`.
    """
    # All maxima are of numbers, so that Spark uses a hash table and sorts nothing
    # (docs/evidence/performance.md#reconcile).
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
        are_recreated(F.col("topic_id")).alias("recreated"),
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
    """Return aggregates over a partition's rows from one side: the number of rows, and the maximum of each column.

    side: ``before`` or ``after`` the migration. names: column -> its short name in the result.
    """
    here = F.col("side") == side
    values = [F.max(F.when(here, F.col(name))).alias(f"{side}_{short}") for name, short in names.items()]
    return [F.count_if(here).alias(f"{side}_rows"), *values]


def _latest(side: str, *, timed: bool) -> list[Column]:
    """Return aggregates over a partition's rows from one side: the latest row, and what `_contradiction` compares.

    side: ``before`` or ``after`` the migration. timed: whether to include the timestamp of the oldest unread record.
    """
    # A struct with a null taken_at is the smallest, so such a row counts as the earliest.
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
    """Return a column of nulls, which fails the job if the snapshots of one side contradict each other.

    Snapshots contradict each other if a partition has two different offsets at its latest time, or two source groups.
    side: ``before`` or ``after`` the migration.
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
