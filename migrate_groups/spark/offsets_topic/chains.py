"""Sum up the commits of each group for each partition in one row."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import LongType

from migrate_groups.spark.offsets_topic.offsets_log import GROUP_RECORDS, OFFSET_COMMIT
from migrate_groups.spark.reconciliation.snapshots import with_rows
from migrate_groups.spark.topic_ids import is_recreated

KEYS = ["group", "topic", "partition"]

_PLACE = ["log_partition", *KEYS]
_GIVEN = ["source_group", "source_topic", "stopped_at", "before", "written", "log_start"]
_CHECKED = ["ours", "same_topic", "given_id"]
_BEFORE = ("log_offset", "offset", "tombstone", "topic_id")


def is_commit() -> Column:
    """Return, as a boolean column, whether a record is the commit or the deletion of an offset, and can be decoded."""
    return (F.col("kind") == OFFSET_COMMIT) & F.col("problem").isNull()


def is_group_record() -> Column:
    """Return, as a boolean column, whether a record holds or deletes the metadata of an audited group."""
    return F.col("kind").isin(*GROUP_RECORDS) & F.col("judged_from").isNotNull()


def chains(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return one row for each group and partition that was migrated or has commits, with a summary of the commits.

    log: the decoded records of some groups (`audit.of_groups`). handed_over: the migrated partitions
    (`audit.HANDED_OVER`).

    A row has the migrated offset, the first commit that the migration certainly did not write (first_own), the last
    committed offset, and numbers of commits, rewinds and deletions. Rows without a topic count deletions of the group,
    records that show members, and records that can't be decoded.
    """
    # The offset handed over is a row before all commits, because a join would need more exchanges.
    first = handed_over.select(
        *_PLACE,
        F.lit(True).alias("is_target"),
        F.lit(-1).cast(LongType()).alias("log_offset"),
        F.col("before").alias("offset"),
        F.lit(False).alias("tombstone"),
        "topic_id",
        F.struct(*_GIVEN, "ours", "same_topic", F.col("topic_id").alias("given_id")).alias("given"),
    )
    malformed, shows = F.col("problem").isNotNull(), F.col("shows_members")
    is_deletion = is_group_record() & F.col("tombstone") & ~malformed
    counted = log.where(malformed | is_commit() | is_deletion | shows.isNotNull())
    flags = (
        malformed.alias("malformed"),
        is_commit().alias("is_commit"),
        F.coalesce(is_deletion, F.lit(False)).alias("is_deletion"),
    )
    of_group = ("is_target", "without_membership", "kind", "member", "shows_members")
    rows = with_rows(first, counted.select(*_PLACE, *of_group, *_BEFORE, "log_time", *flags))
    return _summed(_with_own(_with_previous_record(_with_members(rows))))


def _with_members(rows: DataFrame) -> DataFrame:
    """Return the rows with two more columns, sorted and distributed by group.

    has_members: whether the group had members at the row's offset of the log. had_members: whether it had any at this
    offset or before. Both are false before the first record of a member in ``rows``.

    rows: the records of some groups, with the columns log_partition, group, log_offset, kind, member and
    shows_members.
    """
    # A coordinator accepts a commit without membership only while the group has no members, except in a transaction
    # (docs/kafka-behaviour.md#altering-offsets). It writes a record when members join, and when the last one has left.
    # Each window below needs the rows of a group together. Otherwise Spark would exchange them for each window.
    rows = rows.repartition("log_partition", "group")
    of_record = Window.partitionBy("log_partition", "group", "kind", "member").orderBy("log_offset")
    until_now = (
        Window.partitionBy("log_partition", "group")
        .orderBy("log_offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    shown = F.col("shows_members").cast("int")
    rows = rows.withColumn("_joined", shown - F.coalesce(F.lag(shown).over(of_record), F.lit(0)))
    return rows.withColumns(
        {
            "has_members": F.coalesce(F.sum("_joined").over(until_now) > 0, F.lit(False)),
            "had_members": F.coalesce(F.max("shows_members").over(until_now), F.lit(False)),
        }
    ).drop("_joined")


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
    rows = rows.withColumns({name: F.col("given")[name] for name in (*_GIVEN, *_CHECKED)})
    recreated, was_recreated = _is_recreated(""), _is_recreated("previous_")
    return rows.select(
        *_PLACE,
        "is_target",
        *_GIVEN,
        "ours",
        "log_offset",
        "log_time",
        F.when(~recreated, F.col("offset")).alias("offset"),
        "tombstone",
        "malformed",
        "shows_members",
        *(F.coalesce(name, F.lit(False)).alias(name) for name in ("is_commit", "is_deletion")),
        (F.col("has_members") | F.coalesce("without_membership", F.lit(False))).alias("by_consumer"),
        "had_members",
        (~is_recreated(F.col("given_id"), F.col("topic_id"), if_unknown=~F.coalesce("same_topic", F.lit(False)))).alias(
            "of_this_topic"  # known to be for the topic that was handed over
        ),
        recreated.alias("recreated"),
        F.when(~was_recreated, F.col("previous_offset")).alias("in_place"),
        (F.col("previous_tombstone") | was_recreated).alias("was_deleted"),
        (F.col("previous_log_offset") < 0).alias("is_first"),
    )


def _is_recreated(prefix: str) -> Column:
    """Return, as a boolean column, whether a commit counts as one for a new topic of the same name.

    prefix: the prefix of the names of the commit's columns.
    """
    # Kafka 4.3 writes a topic id into each commit that is not in a transaction. A commit with another id is of other
    # records, and counts as a deletion. So does a commit without an id, if the topic is known to be another one now.
    topic_id, offset = F.col(f"{prefix}topic_id"), F.col(f"{prefix}offset")
    is_nameless = topic_id.isNull() & offset.isNotNull() & ~F.col("same_topic") & ~F.array_contains("ours", offset)
    return is_recreated(F.col("first_id"), topic_id, if_unknown=is_nameless)


def _with_own(rows: DataFrame) -> DataFrame:
    """Return the records with two more columns for the commits of each group and partition.

    own: whether the record is the first commit that the migration certainly did not write, or a later commit. Commits
    without membership that repeat the committed offset are left out. reached: the committed offset in the last commit
    before the record.
    """
    order = Window.partitionBy(*_PLACE).orderBy("log_offset")
    # The migration may have written a commit if its offset is in `ours` and differs from the committed offset before
    # it. The first commit in the log may be the migration's even if its offset equals `before`.
    is_other = F.col("is_first") | ~F.col("in_place").eqNullSafe(F.col("offset"))
    is_ours = F.coalesce(F.array_contains("ours", F.col("offset")), F.lit(False)) & is_other
    # It may be a repeated request of the migration. It changes nothing, and does not show a consumer.
    is_repeated = ~F.col("by_consumer") & F.coalesce(F.col("in_place") == F.col("offset"), F.lit(False))
    may_be_own = F.col("is_commit") & ~is_repeated
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    rows = rows.withColumns(
        {
            "own_from": F.min(F.when(may_be_own & ~is_ours, F.col("log_offset"))).over(whole),
            "reached": F.last("offset", ignorenulls=True).over(earlier),
        }
    )
    is_own = may_be_own & (F.col("log_offset") >= F.col("own_from"))
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
        F.count_if(own & ~F.col("by_consumer")).alias("without_members"),
        F.count_if(own & ~F.col("by_consumer") & ~F.col("had_members")).alias("before_members"),
        F.count_if(own & ~F.col("of_this_topic")).alias("nameless"),  # own commits that may be for a new topic
        F.count_if("malformed").alias("malformed"),
        F.count_if("is_deletion").alias("group_tombstones"),
        F.count_if("shows_members").alias("member_records"),
    )
