"""Judge a hand-over from the log of the offsets topic: DataFrame to DataFrame, in Spark SQL functions only.

Each partition that was handed over from a source group to a target group gets one row with two verdicts. So does each
other partition for which a target group has committed; its source group's verdict is null.

The source group's verdict is ``late-commit`` if it has committed since the fence (the end of the log when the group had
stopped). It is ``undetermined`` if the evidence about the group is not whole, or if it has committed only for a topic
of the same name that was created since. Otherwise it is ``stopped``.

The target group's verdict is the first in this table that applies. The offset handed over is the one that the migration
wrote. Own commits are the first commit that the migration can't have written, and all after it:

======================  ============================================================================================
``not-in-snapshot``     the group commits for a partition that was not handed over to it
``earlier``             the first own commit is below the offset handed over: records are processed again
``undetermined``        the topic was deleted and created again: later commits are of other records
``missing``             the committed offset was deleted or expired, and the group has not committed since
``undetermined``        the evidence about the group is not whole
``no-commit-yet``       there is no own commit, and the committed offset is the one handed over
``missing``             there is no own commit, and the committed offset is not the one handed over
``later``               the first own commit is above the offset handed over, and the committed offset just before it
                        was not the one handed over: records may be skipped
``undetermined``        the committed offset was deleted or expired, and the group has committed since: it may have
                        resumed at any offset
``starts-at-snapshot``  the first own commit is at or above the offset handed over, which was committed before it
======================  ============================================================================================

A commit shows how far a group has got, not where it started. So a consumer that seeks forward is not detected, but a
consumer that seeks back is. ``rewinds`` counts own commits at a lower offset than the previous commit, even if the
committed offset was deleted in between.

Kafka 4.3 writes a topic id into each commit that is not in a transaction. If this id is not that of the topic handed
over, the commit is of other records, and counts as the deletion of the committed offset. A commit without a topic id
counts as a commit for the topic handed over.

The evidence about a group is whole if the group was not deleted and its partition of the log is complete: from the
fence on no record is missing, every record can be decoded, and no open transaction holds records back (`evidence`).
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StringType, StructField, StructType

from migrate_groups.spark.offsets_topic.chains import KEYS, is_commit, is_group_record

HANDED_OVER = StructType(
    [
        StructField("source_group", StringType()),
        StructField("source_topic", StringType()),
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("stopped_at", LongType()),
        StructField("before", LongType()),
        StructField("written", LongType()),
        StructField("ours", ArrayType(LongType()), nullable=False),
        StructField("topic_id", StringType()),
        StructField("log_partition", IntegerType(), nullable=False),
    ]
)
"""The partitions that were handed over.

- source_topic: the topic's name on the source group's cluster.
- stopped_at: the source group's committed offset at the hand-over, or ``written`` if it had none.
- before: the target group's committed offset before the write.
- written: the offset that the migration wrote for the target group; null: none.
- ours: every offset that the runs of this migration wrote, or may have written.
- topic_id: the id of the topic handed over, in the form of `offsets_log.decode`; null: not known.
- log_partition: the partition of the offsets topic that has the target group's commits."""

GROUPS = StructType(
    [
        StructField("group", StringType(), nullable=False),
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("fence", LongType(), nullable=False),
        StructField("is_target", BooleanType(), nullable=False),
    ]
)
"""The groups to judge. log_partition: the partition of the offsets topic that has the group's commits. fence: the
offset in that partition from which records count. is_target: whether the group is a target group."""

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
"""The reason for doubt about a partition if a group has committed for it with another topic id."""


def of_groups(log: DataFrame, groups: DataFrame) -> DataFrame:
    """Return the records of some groups from an offset of the log on, and all records that can't be decoded.

    A record that can't be decoded gives no verdict; it only makes the `evidence` incomplete. log: a decoded log.
    groups: one row for each group: group, log_partition (the partition of ``__consumer_offsets`` with its records),
    fence (the offset there from which they count), is_target (whether it is a target group). The result has the columns
    of both tables.
    """
    fenced = log.join(F.broadcast(groups), ["group", "log_partition"], "left")
    return fenced.where((F.col("log_offset") >= F.col("fence")) | F.col("problem").isNotNull())


def late_commits(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return the commits that source groups made after they had stopped, for partitions that they had handed over.

    log: the decoded records since the groups stopped (`of_groups`). handed_over: one row for each partition
    (`HANDED_OVER`).

    Columns: group, topic, partition, log_partition, log_offset, log_time, offset, beyond (offset minus the source
    group's offset at the hand-over: the number of records that both groups process; negative: it committed a lower
    offset), recreated (whether the commit is for a new topic of the same name; callers do not count it as late).
    """
    given = ("stopped_at", F.col("topic_id").alias("given_id"))
    moved = handed_over.select(*_of_source(), *given).dropDuplicates(KEYS)
    commits = log.where(is_commit() & ~F.col("tombstone")).join(moved, KEYS)
    return commits.select(
        *KEYS,
        "log_partition",
        "log_offset",
        "log_time",
        "offset",
        F.try_subtract("offset", "stopped_at").alias("beyond"),
        F.coalesce(F.col("topic_id") != F.col("given_id"), F.lit(False)).alias("recreated"),
    )


def places(handed_over: DataFrame, *, of_sources: bool, of_targets: bool) -> DataFrame:
    """Return the partitions that were handed over: columns group, topic and partition, without duplicates.

    handed_over: one row for each partition, with the columns source_group, source_topic, group (the target group),
    topic and partition. of_sources: include the source groups' partitions. of_targets: include the target groups'.
    """
    sides = [handed_over.select(*_of_source())] * of_sources + [handed_over.select(*KEYS)] * of_targets
    return reduce(DataFrame.union, sides).distinct()


def _of_source() -> tuple[Column, ...]:
    """Return the columns source_group, source_topic and partition under the names group, topic and partition."""
    return F.col("source_group").alias("group"), F.col("source_topic").alias("topic"), F.col("partition")


def deletions(log: DataFrame, keys: DataFrame) -> DataFrame:
    """Return all deletions of committed offsets for some partitions, and all deletions of groups.

    log: the decoded records of some groups (`of_groups`). keys: the partitions (group, topic, partition). The log does
    not show whether an offset was deleted by a request or has expired. A group's deletion is a tombstone of its
    metadata, unless the group has only changed its protocol.

    Columns: group, topic and partition (null: the group itself was deleted), log_partition, log_offset, log_time.
    """
    columns = [*KEYS, "log_partition", "log_offset", "log_time"]
    offsets = log.where(is_commit() & F.col("tombstone")).join(keys, KEYS, "left_semi").select(*columns)
    return offsets.union(group_deletions(log).select(*columns))


def group_deletions(log: DataFrame) -> DataFrame:
    """Return the rows of ``log`` that delete a whole group. log: the decoded records of some groups (`of_groups`).

    A deletion is left out if it only shows that an Empty group has changed its protocol (KIP-848), because the group
    keeps its commits then. The coordinator writes two records at once: the deletion of the old protocol's record, and
    right after it, with the same time, the new protocol's record. If a group was deleted, and created later with the
    other protocol, its commits are lost, and its deletion is in the result.
    """
    order = Window.partitionBy("group").orderBy("log_offset")
    becomes_other = (
        (F.lead("kind").over(order) != F.col("kind"))
        & ~F.lead("tombstone").over(order)
        & (F.lead("log_time").over(order) == F.col("log_time"))
    )
    records = log.where(is_group_record())
    changes = records.withColumn("changes", F.coalesce(becomes_other, F.lit(False)))
    return changes.where(F.col("tombstone") & ~F.col("changes")).drop("changes")


def hand_over(
    summed: DataFrame, late: DataFrame | None, reasons: DataFrame, source_reasons: DataFrame | None = None
) -> DataFrame:
    """Return one row for each partition that was handed over, or that a target group has committed for.

    summed: one row for each group and partition, with numbers of its commits and deletions (`chains.chains`). late: the
    commits that source groups made after they had stopped (`late_commits`); None: there are none. reasons: columns
    group and reason: why commits of the group may be missing from the log. source_reasons: the same about the source
    groups, if they are on another cluster. Own commits: the first that the migration can't have written, and all later.

    Columns:

    - source_group, group, topic, partition.
    - stopped_at: the source group's offset at the hand-over. written: the offset that the target group was given.
    - old, new: the verdicts on the source group and on the target group (`OLD_VERDICTS`, `NEW_VERDICTS`).
    - late_commits, rewinds, deletions: their number. commits: the number of the target group's own commits.
    - first_own, first_own_time: offset and time of the target group's first own commit.
    - committed: the target group's last committed offset.
    - reason: why the evidence about either group leaves a doubt; null if it leaves none.
    """
    sides = (
        summed.where(F.col("is_target") & F.col("topic").isNotNull())
        .join(
            _prefixed(reasons if source_reasons is None else source_reasons, "source_group", "old"),
            "source_group",
            "left",
        )
        .join(_prefixed(reasons, "group", "new"), "group", "left")
    )
    counts = {"late_commits": F.count_if(~F.col("recreated")), "old_recreated": F.count_if("recreated")}
    if late is None:
        sides = sides.withColumns(dict.fromkeys(counts, F.lit(0).cast(LongType())))
    else:
        of_source = ["source_group", "source_topic", "partition"]
        by_source = late.withColumnsRenamed({"group": "source_group", "topic": "source_topic"}).groupBy(*of_source)
        late = by_source.agg(*(count.alias(name) for name, count in counts.items()))
        sides = sides.join(late, of_source, "left").fillna(0, [*counts])
    told = F.array(F.col("old_reason"), F.col("new_reason"), _recreated(), _resumed())
    return sides.select(
        "source_group",
        *KEYS,
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


def _prefixed(reasons: DataFrame, group: str, side: str) -> DataFrame:
    return reasons.select(F.col("group").alias(group), F.col("reason").alias(f"{side}_reason"))


def _recreated() -> Column:
    """Return `IS_RECREATED` if the source or target group committed for a new topic of this name; otherwise null."""
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
