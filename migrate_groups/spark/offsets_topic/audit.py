"""Judge a hand-over from the log of the offsets topic: DataFrame to DataFrame, in Spark SQL functions only.

Each partition that was handed over from a source group to a target group gets one row with two verdicts. The source
group's verdict is ``late-commit`` (it has committed since the fence, the end of the log at the hand-over),
``undetermined`` (the evidence about it is not whole) or ``stopped``. The target group's verdict is the first in this
table that applies; an own commit is one that the migration did not write:

======================  ============================================================================================
``not-in-snapshot``     the group commits for a partition that was not handed over to it
``earlier``             the first own commit is below the offset handed over: records are processed again
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

The evidence of a partition of the log is whole if every offset from the fence to the end is there, as a record or as a
control record (transaction marker), if every record can be decoded, and if no open transaction holds offsets back.
Missing offsets were compacted away or have expired, so they may have held commits.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from migrate_groups.spark.offsets_topic.offsets_log import GROUP_RECORDS, OFFSET_COMMIT

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
    ]
)
"""The partitions that were handed over. stopped_at: the source group's committed offset at the hand-over, or written if
it had none; before: the target group's committed offset before the write; written: the offset that the migration wrote
for the target group (null: none); ours: every offset that the runs of this migration wrote, or may have written."""

GROUPS = StructType(
    [
        StructField("group", StringType(), nullable=False),
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("fence", LongType(), nullable=False),
    ]
)
"""The groups to judge, the offsets topic's partition for each, and the offset in it from which its records count."""

RANGES = StructType(
    [
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("start_offset", LongType(), nullable=False),
        StructField("end_offset", LongType(), nullable=False),
        StructField("held_back", LongType(), nullable=False),
    ]
)
"""The range of offsets (end exclusive) that was copied to files of each partition of the offsets topic. held_back: how
many offsets after the range could not be read, because a transaction is open."""

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

_KEYS = ["group", "topic", "partition"]


def evidence(raw: DataFrame, log: DataFrame, ranges: DataFrame) -> DataFrame:
    """Return one row for each partition of the log (`RANGES`), which counts its offsets by kind of record.

    raw: the log (columns of `offsets_log.RAW`); log: the same, decoded. Columns: those of `RANGES`, records, control,
    aborted, missing (offsets that are not in the log), malformed (records that can't be decoded), whole (no offset is
    missing, malformed or held back).
    """
    kinds = (F.count_if(F.col("kind") == kind).alias(name) for kind, name in _KINDS.items())
    found = raw.groupBy("log_partition").agg(*kinds)
    malformed = log.where(F.col("problem").isNotNull()).groupBy("log_partition").agg(F.count("*").alias("malformed"))
    joined = ranges.join(found, "log_partition", "left").join(malformed, "log_partition", "left")
    counted = joined.fillna(0, [*_KINDS.values(), "malformed"])
    there = sum((F.col(name) for name in _KINDS.values()), start=F.lit(0))
    missing = F.col("end_offset") - F.col("start_offset") - there
    whole = (missing == 0) & (F.col("malformed") == 0) & (F.col("held_back") == 0)
    return counted.withColumn("missing", missing).withColumn("whole", whole)


_KINDS = {"record": "records", "control": "control", "aborted": "aborted"}


def of_groups(log: DataFrame, groups: DataFrame) -> DataFrame:
    """Return the decoded records of these groups (`GROUPS`), each from the group's fence on."""
    return log.join(F.broadcast(groups), ["group", "log_partition"]).where(F.col("log_offset") >= F.col("fence"))


def late_commits(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return every commit of a source group for a partition that it has handed over.

    log: the result of `of_groups`. Columns: group, topic, partition, log_partition, log_offset, log_time, offset,
    beyond (offset - stopped_at: the number of records that both groups process; negative: the source group committed a
    lower offset).
    """
    moved = handed_over.select(F.col("source_group").alias("group"), "topic", "partition", "stopped_at").dropDuplicates(
        _KEYS
    )
    commits = _commits(log).join(moved, _KEYS).where(~F.col("tombstone"))
    return commits.select(
        *_KEYS,
        "log_partition",
        "log_offset",
        "log_time",
        "offset",
        F.try_subtract("offset", "stopped_at").alias("beyond"),
    )


def deletions(log: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return every deletion of a source or target group's offset for a handed-over partition, and of a group itself.

    A deletion does not show whether it was requested or the offset expired. Columns: group, topic and partition (null:
    the record of the group itself), log_partition, log_offset, log_time.
    """
    sides = [handed_over.select(F.col(side).alias("group"), "topic", "partition") for side in ("source_group", "group")]
    keys = sides[0].union(sides[1]).distinct()
    columns = [*_KEYS, "log_partition", "log_offset", "log_time"]
    offsets = _commits(log).where("tombstone").join(keys, _KEYS, "left_semi").select(*columns)
    groups = log.where(F.col("kind").isin(*GROUP_RECORDS) & F.col("tombstone")).select(*columns)
    return offsets.union(groups)


def hand_over(log: DataFrame, handed_over: DataFrame, groups: DataFrame, found: DataFrame) -> DataFrame:
    """Return one row for each partition that was handed over, and each other one that a target group committed for.

    log: the result of `of_groups`; handed_over: `HANDED_OVER`; groups: `GROUPS`; found: the result of `evidence`.
    Columns: source_group, group, topic, partition, stopped_at, written, old (the source group's verdict), late_commits,
    new (the target group's verdict), first_own (offset of the target group's first own commit), first_own_time,
    committed (its last committed offset), commits (its own), rewinds, deletions, reason (why the evidence about either
    group is not whole or leaves a doubt, whatever the verdicts; null if it is whole and leaves no doubt).
    """
    whole = _whole_by_group(log, groups, found)
    late = late_commits(log, handed_over).groupBy(*_KEYS).agg(F.count("*").alias("late_commits"))
    old = late.withColumnRenamed("group", "source_group")
    new_groups = handed_over.select("group").distinct()
    chains = _chains(_commits(log).join(new_groups, "group", "left_semi"), handed_over)
    sides = (
        handed_over.join(chains, _KEYS, "full")
        .withColumn("committed", F.when(F.col("records").isNull(), F.col("before")).otherwise(F.col("committed")))
        .join(old, ["source_group", "topic", "partition"], "left")
        .join(_prefixed(whole, "source_group", "old"), "source_group", "left")
        .join(_prefixed(whole, "group", "new"), "group", "left")
        .fillna(0, ["late_commits", "commits", "rewinds", "deletions", "resumed"])
    )
    reasons = F.array(F.col("old_reason"), F.col("new_reason"), _resumed())
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
        F.nullif(F.concat_ws("; ", F.array_distinct(F.array_compact(reasons))), F.lit("")).alias("reason"),
    )


def _commits(log: DataFrame) -> DataFrame:
    return log.where((F.col("kind") == OFFSET_COMMIT) & F.col("problem").isNull())


def _whole_by_group(log: DataFrame, groups: DataFrame, found: DataFrame) -> DataFrame:
    """Return why the evidence about each group is not whole (``reason``; null: it is whole).

    The evidence about a deleted group is not whole, because its commits are compacted away, and only the deletion is
    sure to stay. But an Empty group that changes its protocol (KIP-848) keeps its commits: in the log its record is
    deleted, too, and its record of the other protocol's kind follows at once.
    """
    order = Window.partitionBy("group").orderBy("log_offset")
    exists = log.where(F.col("kind").isin(*GROUP_RECORDS)).select(
        "group",
        "tombstone",
        (F.lead("kind").over(order) != F.col("kind")).alias("other"),
        F.lead("tombstone").over(order).alias("gone"),
    )
    changes = F.coalesce(F.col("other") & ~F.col("gone"), F.lit(False))
    deleted = exists.groupBy("group").agg(F.bool_or(F.col("tombstone") & ~changes).alias("deleted"))
    place = F.col("log_partition")
    reasons = F.concat_ws(
        "; ",
        F.when(
            F.col("missing") > 0, F.format_string("partition %d of the log lacks %d of its offsets", place, "missing")
        ),
        F.when(F.col("missing") < 0, F.format_string("partition %d of the log was landed wrongly", place)),
        F.when(F.col("malformed") > 0, F.format_string("%d of its records can't be decoded", "malformed")),
        F.when(
            F.col("held_back") > 0, F.format_string("%d of its offsets are held back by open transactions", "held_back")
        ),
        F.when(F.col("deleted"), F.format_string("group %s was deleted", "group")),
    )
    joined = groups.join(found, "log_partition").join(deleted, "group", "left")
    return joined.select("group", F.nullif(reasons, F.lit("")).alias("reason"))


def _prefixed(whole: DataFrame, group: str, side: str) -> DataFrame:
    return whole.select(F.col("group").alias(group), F.col("reason").alias(f"{side}_reason"))


def _chains(commits: DataFrame, handed_over: DataFrame) -> DataFrame:
    """Return one row for each group and partition: its first own commit, its last offset, and counts of its commits.

    A group's first commits count as written by this migration, as long as each one's offset is in ``ours`` and differs
    from the offset before it. All later commits are the group's own.
    """
    order = Window.partitionBy(*_KEYS).orderBy("log_offset")
    previous = F.lag("offset").over(order)
    reached = F.last("offset", ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1))
    first_row = F.row_number().over(order) == 1
    rows = commits.join(handed_over.select(*_KEYS, F.col("before"), "ours"), _KEYS, "left").select(
        *_KEYS,
        "log_offset",
        "log_time",
        "offset",
        "tombstone",
        F.when(first_row, F.col("before")).otherwise(previous).alias("in_place"),
        F.coalesce(reached, F.col("before")).alias("reached"),
        F.lag("tombstone").over(order).alias("was_deleted"),
        (F.array_contains("ours", F.col("offset")) & ~previous.eqNullSafe(F.col("offset"))).alias("maybe_ours"),
    )
    # The first commit that this migration can't have written, and all after it, are the group's own.
    rows = rows.withColumn("ours", F.min(F.coalesce("maybe_ours", F.lit(False))).over(order))
    own = ~F.col("tombstone") & ~F.col("ours")
    rewind = own & (F.col("offset") < F.col("reached"))
    first = F.min(F.when(own, F.struct("log_offset", "offset", "in_place", "log_time")))
    return rows.groupBy(*_KEYS).agg(
        first["offset"].alias("first_own"),
        first["in_place"].alias("in_place"),
        first["log_time"].alias("first_own_time"),
        F.max_by(F.struct("offset"), "log_offset")["offset"].alias("committed"),
        F.count("*").alias("records"),
        F.count_if(own).alias("commits"),
        F.count_if(rewind).alias("rewinds"),
        F.count_if("tombstone").alias("deletions"),
        F.count_if(own & F.col("was_deleted")).alias("resumed"),
    )


def _resumed() -> Column:
    """Return a sentence if the group committed after its offset was deleted or expired, else null."""
    return F.when(F.col("resumed") > 0, "the offset was deleted or expired, and committed anew")


def _old_verdict() -> Column:
    return (
        F.when(F.col("source_group").isNull(), F.lit(None))
        .when(F.col("late_commits") > 0, "late-commit")
        .when(F.col("old_reason").isNotNull(), "undetermined")
        .otherwise("stopped")
    )


def _new_verdict() -> Column:
    own, written, committed = F.col("first_own"), F.col("written"), F.col("committed")
    in_place = F.col("in_place").eqNullSafe(written)
    return (
        F.when(written.isNull() & own.isNull(), F.lit(None))
        .when(written.isNull(), "not-in-snapshot")
        .when(own < written, "earlier")
        .when((F.col("deletions") > 0) & committed.isNull(), "missing")
        .when(F.col("new_reason").isNotNull(), "undetermined")
        .when(own.isNull() & committed.eqNullSafe(written), "no-commit-yet")
        .when(own.isNull(), "missing")
        .when((own > written) & ~in_place, "later")
        .when(_resumed().isNotNull(), "undetermined")
        .otherwise("starts-at-snapshot")
    )
