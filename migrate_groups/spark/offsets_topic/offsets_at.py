"""Compute the committed offsets of groups at a moment of the past, from the log of ``__consumer_offsets``.

The state at a moment is what the log holds before its first record from after the moment. In each partition of the log
the records come in the order of their offsets, and their times are those of the coordinator's clock.

When compaction removes a record, it has removed all earlier records of this group and partition, before or in the same
pass, because it keeps the last record of each key in the section that it cleans. So if one reading of the log has a
record, it has every later record of the same group and partition: the record was the last one at its time until the
next one that was read. A record that was read earlier than its successors, in an earlier copy of the log, says so only
if no offset is missing in between.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from migrate_groups.errors import UsageError
from migrate_groups.schema import UNKNOWN_STATE
from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.offsets_topic.offsets_log import OFFSET_COMMIT, CopiedFiles, decode, in_place, of_kinds

KNOWN, UNKNOWN, PENDING = "known", "unknown", "pending"
"""The evidence for a committed offset: it is known; or its commit may be missing from the copied log; or a transaction
was open that commits a later offset, or may."""

# The columns that are read of each record.
_COLUMNS = (
    *("log_partition", "log_offset", "log_time", "producer_id", "problem"),
    *("group", "topic", "partition", "offset", "leader_epoch", "metadata", "topic_id"),
)
_KEYS = ["log_partition", "group", "topic", "partition"]
_COPIES = StructType(
    [
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("start", LongType(), nullable=False),
        StructField("end", LongType(), nullable=False),
        StructField("held_back", LongType(), nullable=False),
        StructField("of_follower", BooleanType(), nullable=False),
    ]
)
_CONSISTENT = StructType(
    [
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("first", LongType(), nullable=False),
        StructField("after", LongType(), nullable=False),
    ]
)


def offsets_at(
    log: DataFrame, copied: CopiedFiles, at: datetime | None = None, groups: Collection[str] | None = None
) -> DataFrame:
    """Return the committed offset of each group and partition at a moment, with the evidence for it.

    log: the copied log (`offsets_log.copied_log`). copied: what it is a copy of. at: the moment, on the coordinators'
    clocks; None: the end of the copy. groups: None means all groups. There is a row for each partition of which the log
    has a record, also from after the moment. Columns:

    - those of a snapshot. taken_at: the moment. offset: null if none was committed, or if it is not known. group_state:
      `schema.UNKNOWN_STATE`. Log start and log end offsets are null.
    - committed_at: when the offset was committed, or deleted.
    - evidence: `KNOWN`, `UNKNOWN` or `PENDING`. reason: why it is not known; otherwise null.
    - log_partition: the group's partition of the log. missing: how many offsets from before the moment it lacks.
      last_time: the time of its last record.

    Raises `UsageError` if the moment is after the copy.
    """
    if at is not None and copied.copied_at is not None and at > copied.copied_at:
        raise UsageError(f"the log was copied at {copied.copied_at.isoformat()}: copy it again")
    spark = log.sparkSession
    ranges = ((*each, each[0] in copied.of_followers) for each in copied.ranges)
    copies = local_table(spark, ranges, _COPIES)
    raw = log.where(F.col("log_partition").isin([each[0] for each in copied.ranges]))
    of_log = _of_log(raw, copies, at).localCheckpoint()  # one row for each partition of the log, used several times
    commits = of_kinds(decode(raw, "producer_id"), OFFSET_COMMIT).select(*_COLUMNS)
    ended = _ended(raw, of_log)
    before = F.col("log_offset") < F.col("cut")
    sound = F.col("problem").isNull()
    # A transaction has ended before the cut if its producer has a later marker there.
    # The copy leaves out aborted records, and ends before a transaction that was open then.
    ended_before = F.lit(at is None) | F.col("producer_id").isNull() | (F.col("ended") > F.col("log_offset"))
    visible = before & ended_before
    value = F.struct("log_offset", "log_time", "offset", "leader_epoch", "metadata", "topic_id")
    wanted = F.lit(True) if groups is None else F.col("group").isin(*groups)
    rows = commits.join(F.broadcast(of_log.select("log_partition", "cut")), "log_partition").join(
        ended, ["log_partition", "producer_id"], "left"
    )
    states = (
        rows.where(in_place(~sound | wanted))
        .groupBy(*_KEYS)
        .agg(
            F.max(F.when(before, F.col("log_offset"))).alias("last"),
            F.max_by(value, F.when(visible, F.col("log_offset"))).alias("value"),
            F.min("log_time").alias("first_time"),
            F.max(F.when(before & ~sound, F.col("log_offset"))).alias("malformed"),
        )
        .withColumn("malformed", F.max("malformed").over(Window.partitionBy("log_partition")))
        .where(F.col("topic").isNotNull())
        .join(F.broadcast(of_log), "log_partition")
    )
    states = _with_reach(states, local_table(spark, copied.consistent, _CONSISTENT))
    return _as_snapshot(states, copied, at)


def _of_log(raw: DataFrame, copies: DataFrame, at: datetime | None) -> DataFrame:
    """Return a row for each copied partition of the log: the moment as an offset, and which offsets are missing.

    Columns: those of ``copies``; cut (the first offset from after the moment); is_passed (whether the copy has a record
    from after the moment); hole (the highest missing offset before ``cut``; null: none); missing (how many); twice (how
    many records were copied twice).
    """
    later = F.col("log_time") > F.lit(at) if at is not None else F.lit(False)
    order = Window.partitionBy("log_partition").orderBy("log_offset")
    rows = raw.select(
        "log_partition",
        "log_offset",
        "log_time",
        later.alias("later"),
        F.lag("log_offset").over(order).alias("previous"),
        F.max(later).over(order).alias("is_after"),
    )
    rows = rows.join(F.broadcast(copies.select("log_partition", "start")), "log_partition")
    gap = F.col("log_offset") - F.coalesce("previous", F.col("start") - 1) - 1
    before = ~F.col("is_after")
    found = rows.groupBy("log_partition").agg(
        F.min(F.when(F.col("later"), F.col("log_offset"))).alias("next"),
        F.max(F.when(before, F.col("log_offset"))).alias("highest"),
        F.max(F.when((gap > 0) & before, F.col("log_offset") - 1)).alias("hole"),
        F.sum(F.when(before, gap).otherwise(0)).alias("missing"),
        F.count_if(gap < 0).alias("twice"),
        F.max("log_time").alias("last_time"),
    )
    cut = F.coalesce("next", "end")
    left = cut - F.coalesce("highest", F.col("start") - 1) - 1
    return copies.join(found, "log_partition", "left").select(
        *copies.columns,
        cut.alias("cut"),
        F.col("next").isNotNull().alias("is_passed"),
        F.when(left > 0, cut - 1).otherwise(F.col("hole")).alias("hole"),
        (F.coalesce("missing", F.lit(0)) + left).alias("missing"),
        F.coalesce("twice", F.lit(0)).alias("twice"),
        "last_time",
    )


def _ended(raw: DataFrame, of_log: DataFrame) -> DataFrame:
    """Return the last marker of each producer before the moment. Columns: log_partition, producer_id, ended."""
    markers = raw.where(F.col("kind") == "control").select("log_partition", "producer_id", "log_offset")
    rows = markers.join(F.broadcast(of_log.select("log_partition", "cut")), "log_partition")
    rows = rows.where(F.col("log_offset") < F.col("cut"))
    return rows.groupBy("log_partition", "producer_id").agg(F.max("log_offset").alias("ended"))


def _with_reach(states: DataFrame, consistent: DataFrame) -> DataFrame:
    """Return the rows with the column ``reach``: the offset from which on a hole may hide a successor of ``last``."""
    ranges = consistent.withColumnRenamed("log_partition", "_of")
    inside = (F.col("_of") == F.col("log_partition")) & F.col("last").between(F.col("first"), F.col("after") - 1)
    joined = states.join(F.broadcast(ranges), inside, "left")
    return joined.withColumn("reach", F.coalesce("after", F.col("last") + 1)).drop("_of", "first", "after")


def _as_snapshot(states: DataFrame, copied: CopiedFiles, at: datetime | None) -> DataFrame:
    reason = _unknown(is_last=at is None).alias("reason")
    pending = _pending(is_last=at is None)
    known = reason.isNull() & pending.isNull()
    evidence = F.when(reason.isNotNull(), UNKNOWN).when(pending.isNotNull(), PENDING).otherwise(KNOWN)
    value = F.col("value")
    hexadecimal = F.lower(value["topic_id"])
    nothing, number = F.lit(None).cast(StringType()), F.lit(None).cast(LongType())
    return states.select(
        F.lit(copied.cluster_id).alias("cluster_id"),
        F.lit(at or copied.copied_at).cast(TimestampType()).alias("taken_at"),
        "group",
        nothing.alias("source_group"),
        F.lit(UNKNOWN_STATE).alias("group_state"),
        nothing.alias("group_type"),
        "topic",
        F.when(known, F.regexp_replace(hexadecimal, "(.{8})(.{4})(.{4})(.{4})(.{12})", "$1-$2-$3-$4-$5")).alias(
            "topic_id"
        ),
        "partition",
        F.when(known, value["offset"]).alias("offset"),
        F.when(known, value["leader_epoch"]).alias("leader_epoch"),
        F.coalesce(F.when(known, value["metadata"]), F.lit("")).alias("metadata"),
        number.alias("log_start_offset"),
        number.alias("log_end_offset"),
        F.when(known, value["log_time"]).alias("committed_at"),
        evidence.alias("evidence"),
        F.coalesce(reason, pending).alias("reason"),
        "log_partition",
        "missing",
        "last_time",
    )


def _unknown(*, is_last: bool) -> Column:
    """Return why the committed offset is not known, or null. is_last: no moment was asked for."""
    last, place = F.col("last"), F.concat(F.lit(" of partition "), F.col("log_partition"), F.lit(" of the log"))
    whole_before = (F.col("start") == 0) & F.col("hole").isNull()
    return (
        F.when(F.col("twice") > 0, F.concat(F.lit("the copy has records twice"), place))
        .when(
            last.isNull() & ~whole_before,
            F.concat(
                F.lit("compacted away, or copied too late: the copied log knows it since "),
                _text("first_time"),
            ),
        )
        .when(
            F.col("malformed") > F.coalesce(last, F.lit(-1)),
            F.concat(F.lit("record "), F.col("malformed"), place, F.lit(" can't be decoded")),
        )
        .when(
            F.col("hole") >= F.col("reach"),
            F.concat(
                F.lit("a later commit may have been compacted away before it was copied: offset "),
                F.col("hole"),
                place,
                F.lit(" is missing"),
            ),
        )
        .when(
            F.col("of_follower") & ~F.col("is_passed") & F.lit(not is_last),
            F.concat(
                F.lit("the follower that was read shows no record from after the moment; its last one is of "),
                _text("last_time"),
            ),
        )
    )


def _text(time: str) -> Column:
    return F.date_format(time, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def _pending(*, is_last: bool) -> Column:
    """Return which open transaction may hold a later committed offset, or null. is_last: no moment was asked for."""
    hidden = F.concat(
        F.lit("an open transaction hides the last "),
        F.col("held_back"),
        F.lit(" offsets of partition "),
        F.col("log_partition"),
        F.lit(" of the log"),
    )
    found = F.when((F.col("held_back") > 0) & ~F.col("is_passed"), hidden)
    if is_last:
        return found
    is_open = F.coalesce(F.col("value")["log_offset"] < F.col("last"), F.col("last").isNotNull())
    return found.when(is_open, F.lit("a transaction with a later offset was open"))
