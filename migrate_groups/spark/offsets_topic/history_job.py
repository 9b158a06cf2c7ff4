"""The Spark job behind ``history``, which writes lag over time from the log of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.errors import Undetermined, UsageError
from migrate_groups.spark.files import CHECKED, spark_path, written_path
from migrate_groups.spark.local_rows import MAX_ROWS, plain_rows
from migrate_groups.spark.offsets_topic.commits_over_time import (
    LOG_ENDS,
    Moments,
    by_group,
    clients,
    commits,
    history,
    resets,
)
from migrate_groups.spark.offsets_topic.evidence import Evidence, evidence, missing_offsets
from migrate_groups.spark.offsets_topic.group_records import group_records
from migrate_groups.spark.offsets_topic.offsets_log import OFFSET_COMMIT, CopiedFiles, copied_log, decode, in_place
from migrate_groups.spark.reconciliation.result import Moment, moments

MAX_MOMENTS = 2000
"""The largest number of moments in a history. It is limited, because brokers are asked for log ends at each moment."""

# `OWN_GROUPS` of model.offsets_topic, which this room does not import.
_OWN_GROUPS = "migrate-groups."
# The columns that are read of each record.
_COLUMNS = (
    *("log_partition", "log_offset", "log_time", "kind", "problem"),
    *("group", "topic", "partition", "offset", "topic_id", "tombstone"),
)

LogEnds = Callable[[Collection[tuple[str, int]], Collection[datetime]], str]
"""A function that reads the log end offset of each partition at each moment, and returns the path of a Parquet file."""


class GroupHistory(NamedTuple):
    """The totals of one group in a history of commits and lag.

    most_lag, last_lag: the largest and the last lag, each the sum over all partitions; None: no lag is known. missing:
    the number of records in the group's partition of ``__consumer_offsets`` that were compacted away or have expired.
    """

    group: str
    topics: int
    partitions: int
    commits: int
    rewinds: int
    deletions: int
    first_commit_at: datetime | None
    last_commit_at: datetime | None
    most_lag: int | None
    last_lag: int | None
    missing: int


class Reset(NamedTuple):
    """The commits of one group in one interval at lower offsets than the commits before them.

    topics, partitions: those that went back. back: by how many offsets, the sum over all partitions. before: the last
    moment before the first of these commits.
    """

    group: str
    topics: Sequence[str]
    partitions: int
    back: int
    before: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The result of the command history.

    - found: the number of groups.
    - first, last: when the history begins and ends.
    - groups: the groups with the most commits, at most 1000.
    - resets: those that went back most, at most 1000.
    - timeline: the lag of groups and of their topics over time, at most 2000 rows. Rows of topics are left out first.
    - evidence: how complete each partition of the log is.
    """

    found: int
    first: datetime
    last: datetime
    groups: tuple[GroupHistory, ...]
    resets: tuple[Reset, ...]
    timeline: tuple[Moment, ...]
    evidence: tuple[Evidence, ...]


def run_history(
    spark: SparkSession,
    copied: CopiedFiles,
    log_ends: LogEnds,
    *,
    groups: Collection[str] | None,
    every: timedelta,
    now: datetime,
    out: Path,
    since: datetime | None = None,
) -> History:
    """Write groups' commits and lag over time as Parquet, and return a summary.

    The table has one row for each group, topic and point in time (columns: `commits_over_time.history`).

    Args:
        copied: the copy of the log of ``__consumer_offsets``.
        log_ends: a function that reads log end offsets of the past, and writes them as Parquet.
        groups: the groups in the table; None: all but the probe groups of this tool.
        every: the interval between two points in time.
        now: the last point in time.
        out: the new folder.
        since: the table begins after this time; None: after the first commit.

    Raises:
        Undetermined: the log has no commit of these groups.
        UsageError: there would be more than `MAX_MOMENTS` points in time.
    """
    raw = copied_log(spark, copied.folder)
    group = F.col("group")
    of_groups = ~group.startswith(_OWN_GROUPS) if groups is None else group.isin(*groups)
    wanted = ((F.col("kind") == OFFSET_COMMIT) & of_groups) | F.col("problem").isNotNull()
    log = decode(raw)
    records = log.select(*_COLUMNS).where(in_place(wanted))
    # A checkpoint and not a cache, because Spark compares each later plan with that of every cached table.
    summed = commits(records, every, now).localCheckpoint(eager=False)
    places = summed.groupBy("log_partition", "topic", "partition").agg(
        F.unix_micros(F.min("begun")).alias("earliest"),
        F.sum("malformed").alias("malformed"),
        F.sum("rewinds").alias("rewinds"),
    )
    counted = places.collect()
    proof = evidence(raw, {row.log_partition: row.malformed for row in counted if row.topic is None}, copied.ranges)
    made, committed = summed.where(F.col("topic").isNotNull()), [row for row in counted if row.topic is not None]
    if not committed:
        raise Undetermined(
            "the log has no commit of these groups: they have not committed, or their commits are "
            "compacted away; check --group"
        )
    earliest = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=min(row.earliest for row in committed))
    asked = _moments(max(earliest, since or earliest), every, now)
    partitions = {(row.topic, row.partition) for row in committed}
    ends = spark.read.options(**CHECKED).schema(LOG_ENDS).parquet(spark_path(log_ends(partitions, asked.all())))
    who = clients(group_records(log, ("client_id", "client_host")).where(of_groups))
    table = history(made, ends, who, asked, copied.cluster_id)
    table = table.coalesce(1).sortWithinPartitions("group", "topic", "taken_at")
    table.write.parquet(written_path(str(out)))
    table = spark.read.schema(table.schema).parquet(spark_path(str(out)))
    found = by_group(made, table, missing_offsets(spark, proof))
    shown = plain_rows(found.orderBy(F.col("commits").desc(), "group"), GroupHistory)
    went_back = resets(made).orderBy(F.col("back").desc(), "group", "before")
    return History(
        groups=shown,
        resets=plain_rows(went_back, Reset) if any(row.rewinds for row in committed) else (),
        found=len({row.group for row in shown}) if len(shown) < MAX_ROWS else found.select("group").distinct().count(),
        first=asked.first,
        last=asked.last,
        timeline=moments(table),
        evidence=proof,
    )


def _moments(earliest: datetime, every: timedelta, now: datetime) -> Moments:
    asked = Moments.between(earliest, every, max(now, earliest))
    if len(asked) > MAX_MOMENTS:
        raise UsageError(
            f"the history since {earliest:%Y-%m-%d %H:%M} UTC has {len(asked):,} moments, more than {MAX_MOMENTS:,}: "
            "pass a longer --every"
        )
    return asked
