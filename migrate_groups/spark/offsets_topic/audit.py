"""Judge from the log of ``__consumer_offsets`` whether source groups stopped, and at which offset target groups began.

docs/audit.md#verdicts explains the verdicts on a source group and on a target group.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StringType, StructField, StructType

from migrate_groups.spark.offsets_topic.chains import KEYS, is_commit, is_group_record
from migrate_groups.spark.offsets_topic.group_records import shows_members
from migrate_groups.spark.topic_ids import is_recreated

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
        StructField("same_topic", BooleanType()),
        StructField("log_start", LongType()),
        StructField("log_partition", IntegerType(), nullable=False),
    ]
)
"""The partitions that target groups took over from source groups.

- source_topic: the topic's name on the source group's cluster.
- stopped_at: the source group's committed offset at the migration, or ``written`` if it had none.
- before: the target group's committed offset before the write.
- written: the offset that the migration wrote for the target group; null: none.
- ours: every offset that the runs of this migration wrote, or may have written.
- topic_id: the id of the topic handed over, in the form of `offsets_log.decode`; null: not known.
- same_topic: whether the topic still had this id after the log was copied; null: not known.
- log_start: the log start offset of the partition after the log was copied; null: not known.
- log_partition: the partition of the offsets topic that has the target group's commits."""

GROUPS = StructType(
    [
        StructField("group", StringType(), nullable=False),
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("judged_from", LongType(), nullable=False),
        StructField("is_target", BooleanType(), nullable=False),
        StructField("without_membership", BooleanType(), nullable=False),
    ]
)
"""The groups to judge.

- log_partition: the partition of the offsets topic that has the group's commits.
- judged_from: the offset in that partition from which the group is judged.
- is_target: whether the group is a target group.
- without_membership: whether the user knows that consumers of the group commit without being members of it."""

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


COMMITTED_BEFORE_MEMBERS = "an offset was committed before the log shows a member of the new group"
COMMITTED_WITHOUT_MEMBERS = "an offset was committed while the new group had no members"
"""The reasons for doubt about a partition if a commit without membership changed the offset of the target group: it may
be a reset by hand."""

DELETED_RECORDS = (
    "the records from the offset handed over on are deleted now, and no commit shows that the new group began before"
)
"""The reason for doubt about a partition if a target group may have started after its records were deleted."""

NAMELESS = "commits have no topic id, and the topic may have been deleted and created again"
"""The reason for doubt about a partition if it is not known for which topic of this name a group has committed."""


def of_groups(log: DataFrame, groups: DataFrame) -> DataFrame:
    """Return the records of some groups from a given offset of the log on, and all records that can't be decoded.

    log: decoded records. groups: the columns of `GROUPS`. The result has the columns of both tables, and the column
    shows_members (`group_records.shows_members`).
    """
    # A record that can't be decoded gives no verdict; it only makes the evidence incomplete.
    marked = log.join(F.broadcast(groups), ["group", "log_partition"], "left")
    kept = marked.where((F.col("log_offset") >= F.col("judged_from")) | F.col("problem").isNotNull())
    return kept.withColumn("shows_members", F.when(F.col("judged_from").isNotNull(), shows_members()))


def late_commits(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return the commits that source groups made after the migration, for partitions that target groups took over.

    log: the records since the migration (`of_groups`). handed_over: the partitions (`HANDED_OVER`).

    Columns: group, topic, partition, log_partition, log_offset, log_time, offset, beyond (offset minus the group's
    offset at the migration), recreated (whether the commit is, or may be, for a new topic of the same name).
    """
    given = ("stopped_at", "same_topic", F.col("topic_id").alias("given_id"))
    moved = handed_over.select(*_of_source(), *given).dropDuplicates(KEYS)
    commits = log.where(is_commit() & ~F.col("tombstone")).join(moved, KEYS)
    return commits.select(
        *KEYS,
        "log_partition",
        "log_offset",
        "log_time",
        "offset",
        F.try_subtract("offset", "stopped_at").alias("beyond"),
        # If it is not known whether the topic is another one now, the commit counts as late: the worse verdict.
        is_recreated(
            F.col("given_id"), F.col("topic_id"), if_unknown=F.col("topic_id").isNull() & ~F.col("same_topic")
        ).alias("recreated"),
    )


def places(handed_over: DataFrame, *, of_sources: bool, of_targets: bool) -> DataFrame:
    """Return the partitions that target groups took over: columns group, topic and partition, without duplicates.

    of_sources: include rows with the source group and its topic. of_targets: include rows with the target group and its
    topic.
    """
    sides = [handed_over.select(*_of_source())] * of_sources + [handed_over.select(*KEYS)] * of_targets
    return reduce(DataFrame.union, sides).distinct()


def _of_source() -> tuple[Column, ...]:
    """Return the columns source_group, source_topic and partition, renamed to group, topic and partition."""
    return F.col("source_group").alias("group"), F.col("source_topic").alias("topic"), F.col("partition")


def deletions(log: DataFrame, keys: DataFrame) -> DataFrame:
    """Return the deletions of committed offsets for some partitions, and of whole groups.

    log: the records of the groups (`of_groups`). keys: the partitions (columns group, topic, partition).

    Columns: group, topic and partition (null: the group was deleted), log_partition, log_offset, log_time. An expired
    offset counts as deleted.
    """
    columns = [*KEYS, "log_partition", "log_offset", "log_time"]
    offsets = log.where(is_commit() & F.col("tombstone")).join(keys, KEYS, "left_semi").select(*columns)
    return offsets.union(group_deletions(log).select(*columns))


def group_deletions(log: DataFrame) -> DataFrame:
    """Return the rows of ``log`` that delete a whole group. log: the records of some groups (`of_groups`).

    The change of an Empty group to another protocol (KIP-848) is no deletion, because the group keeps its commits.
    """
    # When an Empty group changes its protocol, the coordinator writes two records at once: the deletion of the old
    # protocol's record, and right after it, with the same time, the new protocol's record.
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
    """Return the audit's verdicts on each partition that a target group took over or has committed for.

    - summed: the result of `chains.chains`.
    - late: the result of `late_commits`; None: no late commits.
    - reasons: why commits of a group may be missing from the log.
    - source_reasons: why commits of source groups may be missing, if these are on another cluster.

    Columns: those of `audit_result.Partition`; first_own_time (when the target group made its first commit); commits
    and deletions (their numbers in the target group).
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
    doubts = (_recreated(), _nameless(), _without_members(), _resumed(), _deleted())
    told = F.array(F.col("old_reason"), F.col("new_reason"), *doubts)
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
    """Return the sentence `IS_RECREATED` if a group committed for a new topic of the same name; otherwise null."""
    return F.when((F.col("recreated") > 0) | (F.col("old_recreated") > 0), IS_RECREATED)


def _nameless() -> Column:
    """Return the sentence `NAMELESS` if the target group's commits may be for a new topic; otherwise null."""
    return F.when((F.col("nameless") > 0) & F.col("written").isNotNull(), NAMELESS)


def _without_members() -> Column:
    """Return a sentence if a commit of the target group was made by no member of it; otherwise null."""
    return F.when(
        F.col("written").isNotNull(),
        F.when(F.col("before_members") > 0, COMMITTED_BEFORE_MEMBERS).when(
            F.col("without_members") > 0, COMMITTED_WITHOUT_MEMBERS
        ),
    )


def _deleted() -> Column:
    """Return `DELETED_RECORDS` if the first commit is beyond records that are deleted by now; otherwise null."""
    start = F.col("log_start")
    return F.when((start > F.col("written")) & (F.col("first_own") > start), DELETED_RECORDS)


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
        .when(own < written, "earlier")  # records are processed again
        .when(F.col("recreated") > 0, "undetermined")  # later commits are of other records
        .when((F.col("deletions") > 0) & committed.isNull(), "missing")  # no commit since the deletion or expiry
        .when(F.col("new_reason").isNotNull(), "undetermined")
        .when(own.isNull() & committed.eqNullSafe(written), "no-commit-yet")
        .when(own.isNull(), "missing")
        .when((own > written) & ~in_place, "later")  # records may be skipped
        .when(_deleted().isNotNull(), "undetermined")  # auto.offset.reset may have decided where it began
        .when(_resumed().isNotNull(), "undetermined")  # after a deletion it may have resumed at any offset
        .when(_nameless().isNotNull(), "undetermined")  # the offsets may be of other records
        .when(_without_members().isNotNull(), "undetermined")  # a reset by hand is no start of a consumer
        .otherwise("starts-at-snapshot")
    )
