"""Compute groups' commits and lag over time from the log of the offsets topic: DataFrame to DataFrame, in Spark SQL.

A group's committed offset at a moment is that of its last commit in the log up to this moment. Compaction removes a
commit after a later commit has replaced it. So the last commit before an early moment may be missing. The history then
uses an older commit, and the lag that it shows is at least the real lag at that moment.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from migrate_groups.spark.offsets_topic.offsets_log import OFFSET_COMMIT
from migrate_groups.spark.reconciliation.timeline import over_time

LOG_ENDS = StructType(
    [
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("taken_at", TimestampType(), nullable=False),
        StructField("log_end_offset", LongType()),
    ]
)
"""The log end offset of a partition at a moment. If the offset is not known, it is null, or there is no row."""

MAX_CLIENTS = 20
"""The largest number of a group's clients that are listed for one moment."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEYS = ["group", "topic", "partition"]
_COUNTS = ("commits", "rewinds", "deletions")


class Moments(NamedTuple):
    """The moments (points in time) of a history: ``first``, then one after each interval ``every``, and then ``last``.

    All but the last are whole multiples of ``every`` since 1970, in UTC.
    """

    first: datetime
    every: timedelta
    last: datetime

    @staticmethod
    def between(earliest: datetime, every: timedelta, last: datetime) -> Moments:
        """Return the times after ``earliest`` and before ``last`` that are whole multiples of ``every`` since 1970.

        ``last`` is added at the end.
        """
        round_before = _EPOCH + (earliest - _EPOCH) // every * every
        return Moments(min(round_before + every, last), every, last)

    def __len__(self) -> int:
        return -((self.first - self.last) // self.every) + 1

    def all(self) -> list[datetime]:
        """Return all times for which the history shows commits and lag, in ascending order."""
        return [self.first + number * self.every for number in range(len(self) - 1)] + [self.last]

    def number(self, time: Column) -> Column:
        """Return the index, 0 for ``first``, of the history's first point in time at or after ``time``.

        If ``time`` is after ``last``, the index of ``last`` is returned.
        """
        since = F.unix_micros(time) - _micros(self.first - _EPOCH)
        return F.least(F.greatest(F.ceil(since / _micros(self.every)), F.lit(0)), F.lit(len(self) - 1))

    def at(self, number: Column) -> Column:
        """Return the history's point in time with index ``number`` (0 for ``first``), as a timestamp column."""
        regular = F.timestamp_micros(_micros(self.first - _EPOCH) + number * _micros(self.every))
        last = F.timestamp_micros(F.lit(_micros(self.last - _EPOCH)))
        return F.when(number == len(self) - 1, last).otherwise(regular)


def commits(log: DataFrame, every: timedelta, last: datetime) -> DataFrame:
    """Return one row for each group, partition and interval, with counts of its commits and deletions.

    log: a decoded log (`offsets_log.decode`). An interval lasts from one multiple of ``every`` since 1970 to the next.
    Commits after ``last`` are counted in the interval of ``last``.

    Columns:

    - log_partition, group, topic, partition.
    - begun, ended: the times of the first and of the last record.
    - commits, deletions: their number. first_commit_at, last_commit_at.
    - rewinds: the number of commits at a lower offset than the previous commit, unless the topic ids show that the
      topic was recreated in between.
    - offset, topic_id: those of the last record: the committed offset (null: deleted), and a hash of the topic id.
    - malformed: in rows without a topic, the number of records that can't be decoded.

    The time of a record is its timestamp in ``__consumer_offsets`` or, if an earlier record of the same group and
    partition has a later timestamp, that one, so that time never goes back.
    """
    order = Window.partitionBy("log_partition", *_KEYS).orderBy("log_offset")
    malformed = F.col("problem").isNotNull()
    rows = log.where(malformed | (F.col("kind") == OFFSET_COMMIT)).select(
        *("log_partition", *_KEYS, "log_offset", "log_time", "offset", "topic_id", "tombstone"),
        malformed.alias("is_malformed"),
        F.max("log_time").over(order).alias("time"),
        F.lag("offset").over(order).alias("before"),
        F.lag("topic_id").over(order).alias("id_before"),
    )
    recreated = F.coalesce(F.col("topic_id") != F.col("id_before"), F.lit(False))
    deleted = F.col("tombstone")
    made = F.when(~deleted, F.col("time"))
    span = F.ceil(F.unix_micros(F.least("time", F.lit(last))) / _micros(every))
    topic_id = F.when(F.col("topic_id").isNotNull(), F.xxhash64("topic_id"))
    return rows.groupBy("log_partition", *_KEYS, span.alias("span")).agg(
        F.min("time").alias("begun"),
        F.max("time").alias("ended"),
        F.count_if(~deleted).alias("commits"),
        F.count_if((F.col("offset") < F.col("before")) & ~recreated).alias("rewinds"),
        F.count_if(deleted).alias("deletions"),
        F.min(made).alias("first_commit_at"),
        F.max(made).alias("last_commit_at"),
        F.max_by("offset", "log_offset").alias("offset"),
        F.max_by(topic_id, "log_offset").alias("topic_id"),
        F.count_if("is_malformed").alias("malformed"),
    )


def history(made: DataFrame, ends: DataFrame, who: DataFrame, moments: Moments, cluster_id: str) -> DataFrame:
    """Return one row for each group, topic and moment, from the group's first commit in the topic on.

    made: what `commits` returned: for each group, partition and interval the number of commits and the last offset.
    ends: log end offsets (`LOG_ENDS`). who: one row for each record that lists members of a group (`members.members`).
    moments: the points in time.

    Columns:

    - cluster_id, group, topic, taken_at (the moment), partitions (their number), committed (how many of them have a
      committed offset), lag (null: no log end offset is known).
    - produced, consumed: the growth of the log end offsets and of the committed offsets since the previous moment.
    - commits, rewinds, deletions (numbers) and last_commit_at: for the time since the previous moment; at the first
      moment, since the beginning of the log.
    - clients: the group's members since the previous moment, as ``client/host``, sorted, at most `MAX_CLIENTS`; empty:
      the log shows none.
    """
    rows = _snapshots(made, ends, moments).withColumn("cluster_id", F.lit(cluster_id))
    lag = over_time(rows).drop("source_group")
    executions = (
        made.groupBy("group", "topic", moments.at(moments.number(F.col("ended"))).alias("taken_at"))
        .agg(*(F.sum(name).alias(name) for name in _COUNTS), F.max("last_commit_at").alias("last_commit_at"))
    )  # fmt: skip
    there = lag.join(executions, ["group", "topic", "taken_at"], "left").fillna(0, [*_COUNTS])
    clients = F.coalesce("clients", F.array().cast("array<string>"))
    return there.join(_clients(who, moments), ["group", "taken_at"], "left").withColumn("clients", clients)


def by_group(made: DataFrame, timeline: DataFrame, evidence: DataFrame) -> DataFrame:
    """Return one row for each group, with totals over all moments.

    made: commits by group, partition and interval (`commits`). timeline: lag over time (`history`). evidence: the
    columns log_partition and missing of `evidence.Evidence`.

    Columns: group, topics, partitions, commits, rewinds, deletions, first_commit_at, last_commit_at, most_lag (the
    largest lag), last_lag (the lag at the last moment), log_partition, missing (offsets without a record in that
    partition of the log).
    """
    # The first aggregation is by partition, so that the second one counts distinct topics over few rows.
    partitions = made.groupBy("log_partition", *_KEYS).agg(
        *(F.sum(name).alias(name) for name in _COUNTS),
        F.min("first_commit_at").alias("first_commit_at"),
        F.max("last_commit_at").alias("last_commit_at"),
    )
    executions = partitions.groupBy("group", "log_partition").agg(
        F.count_distinct("topic").alias("topics"),
        F.count("*").alias("partitions"),
        *(F.sum(name).alias(name) for name in _COUNTS),
        F.min("first_commit_at").alias("first_commit_at"),
        F.max("last_commit_at").alias("last_commit_at"),
    )
    whole = timeline.groupBy("group", "taken_at").agg(F.try_sum("lag").alias("lag"))
    lag = whole.groupBy("group").agg(F.max("lag").alias("most_lag"), F.max_by("lag", "taken_at").alias("last_lag"))
    return executions.join(lag, "group").join(evidence.select("log_partition", "missing"), "log_partition")


def _clients(who: DataFrame, moments: Moments) -> DataFrame:
    """Return, for each group and point in time of a history, the clients that were members since the previous one.

    Columns: group, taken_at (the point in time), clients (an array of ``client/host``, at most `MAX_CLIENTS`). who: one
    row for each record that lists a group's members, with the time at which the next one replaced it (until).
    """
    last = F.when(F.col("until").isNull(), F.lit(len(moments) - 1)).otherwise(moments.number(F.col("until")))
    numbers = F.sequence(moments.number(F.col("log_time")), last)
    of_moments = who.withColumn("number", F.explode(numbers)).select(
        "group", "number", F.explode("clients").alias("client")
    )
    clients = F.slice(F.array_sort(F.collect_set("client")), 1, MAX_CLIENTS).alias("clients")
    return of_moments.groupBy("group", moments.at(F.col("number")).alias("taken_at")).agg(clients)


def _snapshots(made: DataFrame, ends: DataFrame, moments: Moments) -> DataFrame:
    """Return, for each group, partition and moment (``taken_at``), the committed offset and the log end offset.

    made: the last commit in each interval (`commits`). ends: the log end offset at each moment (`LOG_ENDS`).
    """
    order = Window.partitionBy("log_partition", *_KEYS).orderBy("ended")
    rows = made.withColumn("begun", moments.number(F.col("ended")))
    after = F.lead("begun", default=len(moments)).over(order)
    in_force = rows.withColumn("after", after).where(F.col("begun") < F.col("after"))
    at_moments = in_force.withColumn("number", F.explode(F.sequence("begun", F.col("after") - 1)))
    nothing, end = F.lit(None).cast(StringType()), F.col("log_end_offset")
    return (
        at_moments.select(*_KEYS, moments.at(F.col("number")).alias("taken_at"), "offset", "topic_id")
        .join(ends, ["topic", "partition", "taken_at"], "left")
        # A log end below the committed offset counts as unknown, because it is the end of a newer topic of this name.
        .withColumn("log_end_offset", F.when(F.coalesce(F.col("offset") <= end, F.lit(True)), end))
        .withColumn("source_group", nothing)
    )


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
