"""Judge a hand-over from the log of the offsets topic: DataFrame to DataFrame, in Spark SQL functions only.

Each partition that was handed over from a source group to a target group gets one row with two verdicts.

The source group's verdict is ``late-commit`` if it has committed since the fence (the end of the log when the group had
stopped). It is ``undetermined`` if the evidence about the group is not whole, or if it has committed only for a topic
of the same name that was created since. Otherwise it is ``stopped``.

The target group's verdict is the first in this table that applies. An own commit is one that the migration did not
write:

======================  ============================================================================================
``not-in-snapshot``     the group commits for a partition that was not handed over to it
``earlier``             the first own commit is below the offset handed over: records are processed again
``undetermined``        the topic was deleted and created again: later commits are of other records
``missing``             the committed offset was deleted or expired, and the group has not committed since
``undetermined``        the evidence about the group is not whole
``no-commit-yet``       the offset handed over is in place, and there is no own commit
``missing``             the offset handed over is not in place, and there is no own commit
``later``               the first own commit is above the offset handed over, which was not in place by then: records
                        may be skipped
``undetermined``        the committed offset was deleted or expired, and the group has committed since: it may have
                        resumed at any offset
``starts-at-snapshot``  the first own commit is at the offset handed over, or above it while that was in place
======================  ============================================================================================

A commit shows how far a group has got, not where it started. So a consumer that seeks forward by itself is not
detected; one that seeks back is. ``rewinds`` counts own commits at a lower offset than the previous commit, even if the
committed offset was deleted in between.

Kafka 4.3 writes a topic id into each commit that is not in a transaction. A commit with another topic id than that of
the topic handed over is of other records: it counts as the deletion of the committed offset. A commit without a topic
id counts as one for the topic handed over.

`evidence` says when the evidence about a group is whole.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from migrate_groups.spark.offsets_topic.offsets_log import GROUP_RECORDS, OFFSET_COMMIT
from migrate_groups.spark.reconciliation.snapshots import with_rows

HANDED_OVER = StructType(
    [
        StructField("source_group", StringType()),
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("stopped_at", LongType()),
        StructField("before", LongType()),
        StructField("written", LongType()),
        StructField("ours", ArrayType(LongType()), nullable=False),
        StructField("topic_id", StringType()),
    ]
)
"""The partitions that were handed over. stopped_at: the source group's committed offset at the hand-over; ``written``
if it had none. before: the target group's committed offset before the write. written: the offset that the migration
wrote for the target group (null: none). ours: all offsets that runs of this migration wrote, or may have written.
topic_id: the id of the topic handed over, in the form of `offsets_log.decode` (null: not known)."""

GROUPS = StructType(
    [
        StructField("group", StringType(), nullable=False),
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("fence", LongType(), nullable=False),
    ]
)
"""The groups to judge. log_partition: the partition of the offsets topic that has a group's records. fence: the first
offset in this partition whose record counts."""

OLD_VERDICTS = ("late-commit", "undetermined", "stopped")
NEW_VERDICTS = (
    "missing",
    "earlier",
    "later",
    "undetermined",
    "not-in-snapshot",
    "no-commit-yet",
    "starts-at-snapshot",
)
"""All verdicts of target groups, the worst first; `OLD_VERDICTS` has those of source groups."""

PROBLEMS = ("late-commit", "missing", "earlier", "later")
"""The verdicts that mean that records are processed twice, or may be skipped."""

IS_RECREATED = "the topic was deleted and created again: commits for the new topic are of other records"
"""The reason why the evidence about a partition is in doubt if a group has committed with another topic id."""

_KEYS = ["group", "topic", "partition"]


def of_groups(log: DataFrame, groups: DataFrame) -> DataFrame:
    """Return the records of the groups to judge from each group's fence on, and all records that can't be decoded.

    log: a decoded log. groups: columns of `GROUPS`. A record that can't be decoded counts only for `evidence`.
    """
    fenced = log.join(F.broadcast(groups), ["group", "log_partition"], "left")
    return fenced.where((F.col("log_offset") >= F.col("fence")) | F.col("problem").isNotNull())


def late_commits(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return all commits since the fence of a source group for partitions that it has handed over.

    log: the result of `of_groups`. handed_over: columns of `HANDED_OVER`.

    Columns: group, topic, partition, log_partition, log_offset, log_time, offset, beyond (offset - stopped_at: the
    number of records that both groups process; negative: the source group committed a lower offset), recreated (the
    commit is for another topic of the same name, so it is not late).
    """
    given = ("topic", "partition", "stopped_at", F.col("topic_id").alias("given_id"))
    moved = handed_over.select(F.col("source_group").alias("group"), *given).dropDuplicates(_KEYS)
    commits = log.where(_is_commit() & ~F.col("tombstone")).join(moved, _KEYS)
    return commits.select(
        *_KEYS,
        "log_partition",
        "log_offset",
        "log_time",
        "offset",
        F.try_subtract("offset", "stopped_at").alias("beyond"),
        F.coalesce(F.col("topic_id") != F.col("given_id"), F.lit(False)).alias("recreated"),
    )


def deletions(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return all deletions of committed offsets for handed-over partitions, and all deletions of groups.

    Both source and target groups count. The log does not show whether an offset was deleted by a request or has
    expired. If an Empty group changes its protocol, that is no deletion (`group_deletions`).

    Columns: group, topic and partition (null: the group itself was deleted), log_partition, log_offset, log_time.
    """
    sides = [handed_over.select(F.col(side).alias("group"), "topic", "partition") for side in ("source_group", "group")]
    keys = sides[0].union(sides[1]).distinct()
    columns = [*_KEYS, "log_partition", "log_offset", "log_time"]
    offsets = log.where(_is_commit() & F.col("tombstone")).join(keys, _KEYS, "left_semi").select(*columns)
    return offsets.union(group_deletions(log).select(*columns))


def group_deletions(log: DataFrame) -> DataFrame:
    """Return the records that delete a group. log: the result of `of_groups`.

    If an Empty group changes its protocol (KIP-848), its record is deleted too, but the group keeps its commits. The
    coordinator writes both records at once: the deletion of the old protocol's record, and right after it, with the
    same time, the new protocol's record. So these deletions are left out. A group that was deleted, and was created
    later with the other protocol, has lost its commits; its deletion is in the result.
    """
    order = Window.partitionBy("group").orderBy("log_offset")
    becomes_other = (
        (F.lead("kind").over(order) != F.col("kind"))
        & ~F.lead("tombstone").over(order)
        & (F.lead("log_time").over(order) == F.col("log_time"))
    )
    records = log.where(_is_group_record())
    changes = records.withColumn("changes", F.coalesce(becomes_other, F.lit(False)))
    return changes.where(F.col("tombstone") & ~F.col("changes")).drop("changes")


def by_group(log: DataFrame) -> DataFrame:
    """Count the records of each group. log: the result of `of_groups`.

    Columns: group, commits, deletions (of committed offsets, also by expiry), group_tombstones (deletions of the record
    of the group itself; `group_deletions` finds those that delete the group).
    """
    is_commit, tombstone = _is_commit(), F.col("tombstone")
    return log.groupBy("group").agg(
        F.count_if(is_commit & ~tombstone).alias("commits"),
        F.count_if(is_commit & tombstone).alias("deletions"),
        F.count_if(_is_group_record() & tombstone).alias("group_tombstones"),
    )


def hand_over(log: DataFrame, handed_over: DataFrame, late: DataFrame, reasons: DataFrame) -> DataFrame:
    """Return one row for each partition that was handed over, or that a target group committed, with the verdicts.

    log: the result of `of_groups`. handed_over: columns of `HANDED_OVER`. late: the result of `late_commits`. reasons:
    columns of `evidence.REASONS`.

    Columns:

    - source_group, group, topic, partition, stopped_at, written, rewinds, deletions.
    - old: the source group's verdict. late_commits: their number.
    - new: the target group's verdict.
    - first_own: the offset of the target group's first own commit. first_own_time: the time of this commit.
    - committed: the target group's last committed offset. commits: the number of its own commits.
    - reason: why the evidence about either group is not whole or is in doubt, whatever the verdicts; null if it is
      whole and in no doubt.
    """
    of_source = ["source_group", "topic", "partition"]
    recreated = F.col("recreated")
    counts = F.count_if(~recreated).alias("late_commits"), F.count_if(recreated).alias("old_recreated")
    late = late.withColumnRenamed("group", "source_group").groupBy(*of_source).agg(*counts)
    sides = (
        _chains(log, handed_over)
        .join(late, of_source, "left")
        .join(_prefixed(reasons, "source_group", "old"), "source_group", "left")
        .join(_prefixed(reasons, "group", "new"), "group", "left")
        .fillna(0, ["late_commits", "old_recreated"])
    )
    told = F.array(F.col("old_reason"), F.col("new_reason"), _recreated(), _resumed())
    return sides.select(
        "source_group",
        *_KEYS,
        "stopped_at",
        "written",
        _old_verdict().alias("old"),
        "late_commits",
        _new_verdict().alias("new"),
        "first_own",
        "first_own_time",
        "committed",
        "commits",
        "rewinds",
        "deletions",
        F.nullif(F.concat_ws("; ", F.array_distinct(F.array_compact(told))), F.lit("")).alias("reason"),
    )


def _is_commit() -> Column:
    return (F.col("kind") == OFFSET_COMMIT) & F.col("problem").isNull()


def _is_group_record() -> Column:
    return F.col("kind").isin(*GROUP_RECORDS) & F.col("fence").isNotNull()


def _prefixed(reasons: DataFrame, group: str, side: str) -> DataFrame:
    return reasons.select(F.col("group").alias(group), F.col("reason").alias(f"{side}_reason"))


def _chains(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return one row for each partition that was handed over, or that a target group committed.

    The columns of ``handed_over`` are followed by facts about the target group's commits:

    - first_own: the offset of the first own commit. in_place: the committed offset before it. first_own_time.
    - committed: the last offset. commits: the number of own commits. rewinds, deletions.
    - resumed: the number of own commits right after a deletion.
    - recreated: the number of commits for another topic of the same name, which count as deletions.

    The first commits of a group count as written by this migration, as long as each one's offset is in ``ours`` and
    differs from the committed offset before it. From the first other commit on, all are the group's own.
    """
    given = ["source_group", "stopped_at", "before", "written"]
    targets = handed_over.select("group")
    commits = log.where(_is_commit()).join(targets, "group", "left_semi")
    # The offset before the write becomes a row in front of all commits, because a join would need more exchanges.
    first = handed_over.withColumns(
        {"log_offset": F.lit(-1).cast(LongType()), "offset": F.col("before"), "tombstone": F.lit(False)}
    )
    rows = with_rows(first, commits.select(*_KEYS, "log_offset", "log_time", "offset", "tombstone", "topic_id"))
    order = Window.partitionBy(*_KEYS).orderBy("log_offset")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    of_other_topic = F.col("topic_id") != F.first("topic_id", ignorenulls=True).over(so_far)
    rows = rows.withColumn("recreated", F.coalesce(of_other_topic, F.lit(False)))
    rows = rows.withColumn("offset", F.when(~F.col("recreated"), F.col("offset")))
    gone = F.col("tombstone") | F.col("recreated")
    is_commit, in_place = F.col("log_offset") >= 0, F.lag("offset").over(order)
    is_other = (F.lag("log_offset").over(order) < 0) | ~in_place.eqNullSafe(F.col("offset"))
    ours = F.array_contains(F.first("ours").over(so_far), F.col("offset"))
    rows = rows.select(
        *given,
        *_KEYS,
        "log_offset",
        "log_time",
        "offset",
        "tombstone",
        "recreated",
        in_place.alias("in_place"),
        F.last("offset", ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1)).alias("reached"),
        F.lag(gone).over(order).alias("was_deleted"),
        (~is_commit | (F.coalesce(ours, F.lit(False)) & is_other)).alias("maybe_ours"),
    )
    # The first commit that this migration can't have written, and all after it, are the group's own.
    rows = rows.withColumn("own", is_commit & ~gone & ~F.min("maybe_ours").over(so_far))
    own = F.col("own")
    first_own = F.min(F.when(own, F.struct("log_offset", "offset", "in_place", "log_time")))
    return rows.groupBy(*_KEYS).agg(
        *(F.max(name).alias(name) for name in given),
        first_own["offset"].alias("first_own"),
        first_own["in_place"].alias("in_place"),
        first_own["log_time"].alias("first_own_time"),
        F.max_by(F.struct("offset"), "log_offset")["offset"].alias("committed"),
        F.count_if(own).alias("commits"),
        F.count_if(own & (F.col("offset") < F.col("reached"))).alias("rewinds"),
        F.count_if("tombstone").alias("deletions"),
        F.count_if(own & F.col("was_deleted")).alias("resumed"),
        F.count_if("recreated").alias("recreated"),
    )


def _recreated() -> Column:
    """Return a sentence if either group committed for another topic of the same name; otherwise null."""
    return F.when((F.col("recreated") > 0) | (F.col("old_recreated") > 0), IS_RECREATED)


def _resumed() -> Column:
    """Return a sentence if the target group committed after its offset was deleted or expired; otherwise null."""
    return F.when(
        F.col("resumed") > 0, "the committed offset was deleted or expired, and the group has committed since"
    )


def _old_verdict() -> Column:
    return (
        F.when(F.col("source_group").isNull(), F.lit(None))
        .when(F.col("late_commits") > 0, "late-commit")
        .when(F.col("old_reason").isNotNull() | (F.col("old_recreated") > 0), "undetermined")
        .otherwise("stopped")
    )


def _new_verdict() -> Column:
    own, written, committed = F.col("first_own"), F.col("written"), F.col("committed")
    in_place = F.col("in_place").eqNullSafe(written)
    return (
        F.when(written.isNull() & own.isNull(), F.lit(None))
        .when(written.isNull(), "not-in-snapshot")
        .when(own < written, "earlier")
        .when(F.col("recreated") > 0, "undetermined")
        .when((F.col("deletions") > 0) & committed.isNull(), "missing")
        .when(F.col("new_reason").isNotNull(), "undetermined")
        .when(own.isNull() & committed.eqNullSafe(written), "no-commit-yet")
        .when(own.isNull(), "missing")
        .when((own > written) & ~in_place, "later")
        .when(_resumed().isNotNull(), "undetermined")
        .otherwise("starts-at-snapshot")
    )
