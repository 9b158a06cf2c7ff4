"""Compute groups' commits, lag and clients over time from the log of ``__consumer_offsets``, as Spark DataFrames.

Compaction may have removed commits. The lag at an early time may then be computed from an older commit.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from migrate_groups.spark.offsets_topic.offsets_log import OFFSET_COMMIT
from migrate_groups.spark.reconciliation.timeline import over_time
from migrate_groups.spark.topic_ids import is_recreated, known_before

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
    """The points in time of a history: ``first``, one after each interval ``every``, and ``last``.

    All but the last are whole multiples of ``every`` since 1970, in UTC.
    """

    first: datetime
    every: timedelta
    last: datetime

    @staticmethod
    def between(earliest: datetime, every: timedelta, last: datetime) -> Moments:
        """Return the multiples of ``every`` since 1970 after ``earliest`` and before ``last``, and then ``last``."""
        round_before = _EPOCH + (earliest - _EPOCH) // every * every
        return Moments(min(round_before + every, last), every, last)

    def __len__(self) -> int:
        return -((self.first - self.last) // self.every) + 1

    def all(self) -> list[datetime]:
        """Return all points in time of the history, in ascending order."""
        return [self.first + number * self.every for number in range(len(self) - 1)] + [self.last]

    def number(self, time: Column) -> Column:
        """Return the index of the first point in time at or after ``time``, or the last index if there is none."""
        since = F.unix_micros(time) - _micros(self.first - _EPOCH)
        return F.least(F.greatest(F.ceil(since / _micros(self.every)), F.lit(0)), F.lit(len(self) - 1))

    def at(self, number: Column) -> Column:
        """Return the history's point in time with the index ``number``, as a timestamp column. The first index is 0."""
        regular = F.timestamp_micros(_micros(self.first - _EPOCH) + number * _micros(self.every))
        last = F.timestamp_micros(F.lit(_micros(self.last - _EPOCH)))
        return F.when(number == len(self) - 1, last).otherwise(regular)


def commits(log: DataFrame, every: timedelta, last: datetime) -> DataFrame:
    """Count the commits and deletions of each group and partition in each interval of the length ``every``.

    log: decoded records (`offsets_log.decode`). Commits after ``last`` count in the last interval. Columns:

    - log_partition, group, topic, partition, span (the number of the interval).
    - begun, ended: the times of the first and the last record.
    - first_commit_at, last_commit_at: the times of the first and the last commit; null: there were only deletions.
    - commits, deletions, rewinds (commits at a lower offset than the previous commit).
    - rewound_at: the time of the first rewind. back: by how many offsets all rewinds went back. null: there were none.
    - offset of the last record (null: deleted), and the last known topic_id (a hash).
    - malformed: the number of records that can't be decoded, in rows without a topic.
    """
    order = Window.partitionBy("log_partition", *_KEYS).orderBy("log_offset")
    malformed = F.col("problem").isNotNull()
    rows = log.where(malformed | (F.col("kind") == OFFSET_COMMIT)).select(
        *("log_partition", *_KEYS, "log_offset", "log_time", "offset", "topic_id", "tombstone"),
        malformed.alias("is_malformed"),
        # So the time never goes back from one record of a group and partition to the next.
        F.max("log_time").over(order).alias("time"),
        F.lag("offset").over(order).alias("before"),
        known_before(F.col("topic_id"), order).alias("id_before"),
    )
    # Before Kafka 4.3, and in transactions, commits have no topic id. They count as commits for the same topic.
    recreated = is_recreated(F.col("id_before"), F.col("topic_id"), if_unknown=False)
    is_rewind = (F.col("offset") < F.col("before")) & ~recreated
    deleted = F.col("tombstone")
    made = F.when(~deleted, F.col("time"))
    span = F.ceil(F.unix_micros(F.least("time", F.lit(last))) / _micros(every))
    topic_id = F.when(F.col("topic_id").isNotNull(), F.xxhash64("topic_id"))
    return rows.groupBy("log_partition", *_KEYS, span.alias("span")).agg(
        F.min("time").alias("begun"),
        F.max("time").alias("ended"),
        F.count_if(~deleted).alias("commits"),
        F.count_if(is_rewind).alias("rewinds"),
        F.min(F.when(is_rewind, F.col("log_time"))).alias("rewound_at"),
        F.sum(F.when(is_rewind, F.col("before") - F.col("offset"))).alias("back"),
        F.count_if(deleted).alias("deletions"),
        F.min(made).alias("first_commit_at"),
        F.max(made).alias("last_commit_at"),
        F.max_by("offset", "log_offset").alias("offset"),
        F.max_by(topic_id, F.when(topic_id.isNotNull(), F.col("log_offset"))).alias("topic_id"),
        F.count_if("is_malformed").alias("malformed"),
    )


def history(made: DataFrame, ends: DataFrame, who: DataFrame, moments: Moments, cluster_id: str) -> DataFrame:
    """Return one row for each group, topic and point in time, from the group's first commit in the topic on.

    made: the result of `commits`. ends: log end offsets (`LOG_ENDS`). who: the result of `clients`. Columns:

    - cluster_id, group, topic, taken_at (the point in time), partitions, committed (how many have a committed offset),
      lag.
    - since the previous point in time: produced, consumed, commits, rewinds, deletions, last_commit_at, clients (the
      members as ``client/host``).
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
    """Return one row for each group, with totals over all points in time.

    made: the result of `commits`. timeline: the result of `history`. evidence: the columns log_partition and missing.

    Columns: those of `history_job.GroupHistory`, and log_partition.
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


def resets(made: DataFrame) -> DataFrame:
    """Return one row for each interval in which a group went back. made: the result of `commits`.

    Columns: those of `history_job.Reset`.
    """
    # A commit counts at a moment if its time is not later: one millisecond, Kafka's unit, earlier it does not.
    before = F.timestamp_micros(F.unix_micros(F.min("rewound_at")) - 1_000)
    return (
        made.where(F.col("rewinds") > 0)
        .groupBy("group", "span")
        .agg(
            F.array_sort(F.collect_set("topic")).alias("topics"),
            F.count("*").alias("partitions"),
            F.sum("back").alias("back"),
            before.alias("before"),
        )
    )


def clients(records: DataFrame) -> DataFrame:
    """Return the clients of each group, one row for each record that lists members of a group.

    records: records of groups (`group_records.group_records`), with the fields client_id and client_host. Columns:

    - group, log_partition, log_offset, log_time.
    - until: the log_time of the record that replaced this record; null: no record did.
    - clients: a list of ``client/host``; empty: no member is left; null: the record can't be decoded.
    """
    record = Window.partitionBy("log_partition", "kind", "group", "member").orderBy("log_offset")
    names = F.transform("members", lambda each: F.concat(each["client_id"], each["client_host"]))
    return records.select(
        *("group", "log_partition", "log_offset", "log_time"),
        F.lead("log_time").over(record).alias("until"),
        F.array_compact(names).alias("clients"),
    )


def _clients(who: DataFrame, moments: Moments) -> DataFrame:
    """Return, for each point in time, the clients that were members of each group since the previous point in time.

    Columns: group, taken_at (the point in time), clients (a list of ``client/host``). who: the result of `clients`.
    """
    last = F.when(F.col("until").isNull(), F.lit(len(moments) - 1)).otherwise(moments.number(F.col("until")))
    numbers = F.sequence(moments.number(F.col("log_time")), last)
    of_moments = who.withColumn("number", F.explode(numbers)).select(
        "group", "number", F.explode("clients").alias("client")
    )
    clients = F.slice(F.array_sort(F.collect_set("client")), 1, MAX_CLIENTS).alias("clients")
    return of_moments.groupBy("group", moments.at(F.col("number")).alias("taken_at")).agg(clients)


def _snapshots(made: DataFrame, ends: DataFrame, moments: Moments) -> DataFrame:
    """Return the committed offset and the log end offset of each group and partition at each point in time.

    made: the result of `commits`. ends: the log end offset at each point in time (`LOG_ENDS`).
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
