"""The history job: reads the landed log of all groups, writes the table, and returns plain values of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.errors import Undetermined, UsageError
from migrate_groups.spark.offsets_topic import audit
from migrate_groups.spark.offsets_topic.audit_job import MAX_ROWS, Evidence, plain_rows
from migrate_groups.spark.offsets_topic.history import LOG_ENDS, Moments, by_group, commits, history
from migrate_groups.spark.offsets_topic.members import members
from migrate_groups.spark.offsets_topic.offsets_log import OFFSET_COMMIT, decode, landed_log
from migrate_groups.spark.reconciliation.result import Moment, moments
from migrate_groups.spark.reconciliation.snapshots import CHECKED, spark_path, written_path

MAX_MOMENTS = 2000
"""The number of moments is limited, because the brokers are asked once for each."""

LogEnds = Callable[[Collection[tuple[str, int]], Collection[datetime]], str]
"""Writes the rows of `history.LOG_ENDS` for these partitions and moments as Parquet, and returns the path."""


class LandedFiles(NamedTuple):
    """A landed log: a folder of Parquet files with the columns of `offsets_log.RAW`, their offsets, and the cluster.

    ranges: rows of `audit.RANGES`.
    """

    folder: str
    ranges: Sequence[tuple[int, int, int, int]]
    cluster_id: str


class GroupHistory(NamedTuple):
    """One group (`history.by_group`). Lag is in records, over all its partitions; None if it is known for none."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The result of `run_history`.

    ``groups``: of ``found`` groups, the `MAX_ROWS` with the most commits. ``first``, ``last``: the first and the last
    moment. ``timeline``: the points of the table that `result.moments` selects. ``evidence``: the counts of each
    partition of the log.
    """

    groups: tuple[GroupHistory, ...]
    found: int
    first: datetime
    last: datetime
    timeline: tuple[Moment, ...]
    evidence: tuple[Evidence, ...]


def run_history(
    spark: SparkSession,
    log: LandedFiles,
    log_ends: LogEnds,
    *,
    groups: Collection[str],
    every: timedelta,
    now: datetime,
    out: Path,
) -> History:
    """Write the table of `history.history` to a new Parquet folder, and return a summary for people.

    Args:
        spark: a session.
        log: see `LandedFiles`.
        log_ends: see `LogEnds`.
        groups: the groups in the table; empty: all.
        every: the time between two moments.
        now: the last moment.
        out: the folder of the table.

    Raises:
        Undetermined: the log has no commit of these groups.
        UsageError: there would be more than `MAX_MOMENTS` moments.
    """
    raw = landed_log(spark, log.folder)
    of_groups = F.col("group").isin(*groups) if groups else F.lit(True)
    wanted = ((F.col("kind") == OFFSET_COMMIT) & of_groups) | F.col("problem").isNotNull()
    records = decode(raw).where(wanted).persist()
    made = commits(records).persist()
    try:
        evidence = audit.evidence(raw, records, spark.createDataFrame([*log.ranges], audit.RANGES)).orderBy(
            "log_partition"
        )
        proof: tuple[Evidence, ...] = plain_rows(evidence, Evidence)
        earliest = made.agg(F.unix_micros(F.min("log_time"))).collect()[0][0]
        if earliest is None:
            raise Undetermined("the log has no commit of these groups: none was made, or all are expired and compacted")
        asked = _moments(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=earliest), every, now)
        partitions = [
            (row["topic"], row["partition"]) for row in made.select("topic", "partition").distinct().collect()
        ]
        ends = spark.read.options(**CHECKED).schema(LOG_ENDS).parquet(spark_path(log_ends(partitions, asked.all())))
        who = members(raw).where(of_groups)
        table = (
            history(made, ends, who, asked, log.cluster_id)
            .coalesce(1)
            .sortWithinPartitions("group", "topic", "taken_at")
        )
        table.write.parquet(written_path(str(out)))
        table = spark.read.schema(table.schema).parquet(spark_path(str(out)))
        found = by_group(made, table, spark.createDataFrame(proof, evidence.select(*Evidence._fields).schema))
        shown = plain_rows(found.orderBy(F.col("commits").desc(), "group"), GroupHistory)
        return History(
            groups=shown,
            found=len({row.group for row in shown}) if len(shown) < MAX_ROWS else _count(found),
            first=asked.first,
            last=asked.last,
            timeline=moments(table),
            evidence=proof,
        )
    finally:
        made.unpersist()
        records.unpersist()


def _moments(earliest: datetime, every: timedelta, now: datetime) -> Moments:
    asked = Moments.between(earliest, every, max(now, earliest))
    if len(asked) > MAX_MOMENTS:
        raise UsageError(
            f"the log goes back to {earliest:%Y-%m-%d %H:%M} UTC: that is {len(asked):,} moments, "
            f"and {MAX_MOMENTS:,} are the most; pass a longer --every"
        )
    return asked


def _count(found: DataFrame) -> int:
    return found.select("group").distinct().count()
