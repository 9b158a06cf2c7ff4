"""Sum up the commits of each group for each partition in one row."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import LongType

from migrate_groups.spark.offsets_topic.offsets_log import GROUP_RECORDS, OFFSET_COMMIT
from migrate_groups.spark.reconciliation.snapshots import with_rows

KEYS = ["group", "topic", "partition"]

_PLACE = ["log_partition", *KEYS]
_GIVEN = ["source_group", "source_topic", "stopped_at", "before", "written"]
_BEFORE = ("log_offset", "offset", "tombstone", "topic_id")


def is_commit() -> Column:
    """Return, as a boolean column, whether a record is the commit or the deletion of an offset, and can be decoded."""
    return (F.col("kind") == OFFSET_COMMIT) & F.col("problem").isNull()


def is_group_record() -> Column:
    """Return, as a boolean column, whether a record holds or deletes the metadata of an audited group."""
    return F.col("kind").isin(*GROUP_RECORDS) & F.col("fence").isNotNull()


def chains(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return one row for each group and partition that was migrated or has commits, with a summary of the commits.

    log: the decoded records of some groups (`audit.of_groups`). handed_over: the migrated partitions
    (`audit.HANDED_OVER`).

    A row has the migrated offset, the first commit that the migration certainly did not write (first_own), the last
    committed offset, and numbers of commits, rewinds and deletions. Rows without a topic count deletions of the group,
    and records that can't be decoded.
    """
    # The offset handed over is a row before all commits, because a join would need more exchanges.
    first = handed_over.select(
        *_PLACE,
        F.lit(True).alias("is_target"),
        F.lit(-1).cast(LongType()).alias("log_offset"),
        F.col("before").alias("offset"),
        F.lit(False).alias("tombstone"),
        "topic_id",
        F.struct(*_GIVEN, "ours").alias("given"),
    )
    malformed = F.col("problem").isNotNull()
    counted = log.where(malformed | is_commit() | (is_group_record() & F.col("tombstone")))
    flags = malformed.alias("malformed"), is_commit().alias("is_commit")
    rows = with_rows(first, counted.select(*_PLACE, "is_target", *_BEFORE, "log_time", *flags))
    return _summed(_with_own(_with_previous_record(rows)))


def _with_previous_record(rows: DataFrame) -> DataFrame:
    order = Window.partitionBy(*_PLACE).orderBy("log_offset")
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    rows = rows.withColumns(
        {
            "given": F.first("given").over(whole),
            "first_id": F.first("topic_id", ignorenulls=True).over(whole),
            **{f"previous_{name}": F.lag(name).over(order) for name in _BEFORE},
        }
    )
    # Kafka 4.3 writes a topic id into each commit that is not in a transaction. A commit with another id is of other
    # records, and counts as a deletion. A commit without an id counts as one for the topic handed over.
    recreated, was_recreated = (
        F.coalesce(F.col(name) != F.col("first_id"), F.lit(False)) for name in ("topic_id", "previous_topic_id")
    )
    return rows.select(
        *_PLACE,
        "is_target",
        *(F.col("given")[name].alias(name) for name in (*_GIVEN, "ours")),
        "log_offset",
        "log_time",
        F.when(~recreated, F.col("offset")).alias("offset"),
        "tombstone",
        "malformed",
        F.coalesce("is_commit", F.lit(False)).alias("is_commit"),
        recreated.alias("recreated"),
        F.when(~was_recreated, F.col("previous_offset")).alias("in_place"),
        (F.col("previous_tombstone") | was_recreated).alias("was_deleted"),
        (F.col("previous_log_offset") < 0).alias("is_first"),
    )


def _with_own(rows: DataFrame) -> DataFrame:
    """Return the records with two more columns for the commits of each group and partition.

    own: whether the record is the first commit that the migration certainly did not write, or a later commit. reached:
    the committed offset in the last commit before the record.
    """
    order = Window.partitionBy(*_PLACE).orderBy("log_offset")
    # The migration may have written a commit if its offset is in `ours` and differs from the committed offset before
    # it. The first commit in the log may be the migration's even if its offset equals `before`.
    is_other = F.col("is_first") | ~F.col("in_place").eqNullSafe(F.col("offset"))
    is_ours = F.coalesce(F.array_contains("ours", F.col("offset")), F.lit(False)) & is_other
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    rows = rows.withColumns(
        {
            "own_from": F.min(F.when(F.col("is_commit") & ~is_ours, F.col("log_offset"))).over(whole),
            "reached": F.last("offset", ignorenulls=True).over(earlier),
        }
    )
    is_own = F.col("is_commit") & (F.col("log_offset") >= F.col("own_from"))
    gone = F.col("tombstone") | F.col("recreated")
    return rows.withColumn("own", F.coalesce(is_own & ~gone, F.lit(False)))


def _summed(rows: DataFrame) -> DataFrame:
    own, is_commit, tombstone = F.col("own"), F.col("is_commit"), F.col("tombstone")
    # All aggregates are numbers, because Spark computes numbers in a hash table, which does not keep the records.
    first_own = F.when(own, F.col("log_offset"))
    return rows.groupBy(*_PLACE, *_GIVEN).agg(
        F.max("is_target").alias("is_target"),
        F.min_by("offset", first_own).alias("first_own"),
        F.min_by("in_place", first_own).alias("in_place"),  # the committed offset before the first own commit
        F.min_by("log_time", first_own).alias("first_own_time"),
        F.max_by("offset", "log_offset").alias("committed"),
        F.count_if(own).alias("commits"),
        F.count_if(own & (F.col("offset") < F.col("reached"))).alias("rewinds"),
        F.count_if(is_commit & tombstone).alias("deletions"),
        F.count_if(own & F.col("was_deleted")).alias("resumed"),  # own commits right after a deletion
        F.count_if("recreated").alias("recreated"),  # commits for a new topic of the same name
        F.count_if(is_commit & ~tombstone).alias("all_commits"),
        F.count_if("malformed").alias("malformed"),
        F.count_if(~is_commit & tombstone & ~F.col("malformed")).alias("group_tombstones"),
    )
