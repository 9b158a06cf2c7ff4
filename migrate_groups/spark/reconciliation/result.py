"""The result of ``reconcile`` as plain values. Its lists have a maximum length, whatever the number of partitions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.errors import Undetermined
from migrate_groups.spark.reconciliation.reconcile import (
    AHEAD_PROVES_NOTHING,
    PROBLEMS,
    STATUSES,
    TIME_LAGS,
    count_column,
    group_topic_summary,
    severity,
    with_totals,
)
from migrate_groups.spark.reconciliation.timeline import most_telling
from migrate_groups.text import counted

MAX_SUMMARY = 1000
"""The largest number of summary rows that the driver receives, the worst first. The written tables have all rows."""

MAX_WORST = 20
"""The largest number of partitions that the result lists one by one."""


MAX_TIMELINE = 2000
"""The largest number of points of lag over time that the driver receives. The written table has all points."""


class GroupTopic(NamedTuple):
    """The result for one topic of a group. In the totals of all topics, cluster_id, group and topic are None.

    worst: the worst status of a partition. partitions: their number. counts: the number of partitions by status.
    lag_before, lag_after: the sum of the partitions' lags. produced, consumed: the growth of the log end offsets and of
    the committed offsets. time_lag_before, time_lag_after: the age of the oldest unread record in seconds; None: not
    known.
    """

    cluster_id: str | None
    group: str | None
    topic: str | None
    worst: str
    partitions: int
    counts: dict[str, int]
    lag_before: int | None
    lag_after: int | None
    produced: int | None
    consumed: int | None
    time_lag_before: float | None = None
    time_lag_after: float | None = None


class PartitionVerdict(NamedTuple):
    """A partition with a problem, and its committed offsets before and after the migration.

    group: the target group. lag_before, lag_after: the log end offset minus the committed offset; None without a
    committed offset. reason: an explanation of the status, or None.
    """

    cluster_id: str | None
    group: str
    source_group: str | None
    topic: str
    partition: int
    status: str
    before_offset: int | None
    after_offset: int | None
    lag_before: int | None
    lag_after: int | None
    reason: str | None


class Moment(NamedTuple):
    """The lag of a group on one topic at one point in time; on all its topics together if ``topic`` is None.

    partitions: their number. lag: the sum over the partitions; None: no lag is known. produced, consumed: the growth of
    the log end offsets and of the committed offsets since the previous point in time; None at the first one. In the
    result of reconcile, all figures before a target group's first commit are from the source group's offsets.
    """

    cluster_id: str | None
    group: str
    topic: str | None
    taken_at: datetime
    partitions: int
    lag: int | None
    produced: int | None
    consumed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The result of comparing committed offsets and lag before and after a migration.

    - totals: the figures of all partitions.
    - topics: the number of pairs of a group and a topic. summary: these pairs, the worst first, at most 1000.
    - worst: the partitions with a problem, the worst first, at most 20.
    - hints: sentences for the user.
    - timeline: lag over time, sorted by cluster, group, topic and time; empty if no group has snapshots of three or
      more points in time.
    - quarantined: the number of invalid rows, which were set aside and not compared.
    """

    totals: GroupTopic
    topics: int
    summary: tuple[GroupTopic, ...]
    worst: tuple[PartitionVerdict, ...]
    hints: tuple[str, ...]
    timeline: tuple[Moment, ...] = ()
    quarantined: int = 0

    @property
    def problems(self) -> int:
        """The number of partitions with the status missing, below-log-start, behind or unexpected."""
        return sum(self.totals.counts[status] for status in PROBLEMS)

    @property
    def clean(self) -> bool:
        """Whether no partition has a problem."""
        return self.problems == 0


def conclude(verdicts: DataFrame, hints: tuple[str, ...] = (), timeline: tuple[Moment, ...] = ()) -> Reconciliation:
    """Run the comparison, and return its result as plain values.

    verdicts: the result of `reconcile.partition_verdict`, with at least one row. hints, timeline: parts of the result.

    Raises `Undetermined` if no partition has a committed offset, before or after.
    """
    rows = (
        with_totals(group_topic_summary(verdicts))
        .orderBy(F.col("is_total").desc(), severity(F.col("worst")), "cluster_id", "group", "topic")
        .limit(MAX_SUMMARY + 1)
        .collect()
    )
    totals = _group_topic(rows[0])
    if totals.counts["no-commit"] == totals.partitions:
        raise Undetermined(
            f"no verdict: none of {counted(totals.partitions, 'partition')} has a committed offset in BEFORE or AFTER: "
            "take snapshots of groups that have committed"
        )
    return Reconciliation(
        totals=totals,
        topics=rows[0]["topics"],
        summary=tuple(map(_group_topic, rows[1:])),
        worst=_worst(verdicts, rows[1 : MAX_WORST + 1]) if any(totals.counts[status] for status in PROBLEMS) else (),
        hints=(*hints, *([AHEAD_PROVES_NOTHING] if totals.counts["ahead"] else [])),
        timeline=timeline,
    )


def moments(timeline: DataFrame | None) -> tuple[Moment, ...]:
    """Return lag over time as plain values, sorted by cluster, group, topic and time.

    timeline: the result of `timeline.lag_timeline`; None: the result is empty. At most `MAX_TIMELINE` points are kept:
    first the sums over all topics of a group, then those of the topics with the highest lag.
    """
    if timeline is None:
        return ()
    moment = F.unix_micros("taken_at").alias("taken_at")
    rows = most_telling(timeline, MAX_TIMELINE).select(
        *(moment if name == "taken_at" else name for name in Moment._fields)
    )
    # Times are collected as microseconds, because PySpark would convert a timestamp to the local time of this machine.
    return tuple(Moment(**row.asDict() | {"taken_at": _utc(row["taken_at"])}) for row in rows.collect())


def _utc(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def _group_topic(row: Row) -> GroupTopic:
    counts = {status: row[count_column(status)] for status in STATUSES}
    absent = {name for name in TIME_LAGS if name not in row}
    return GroupTopic._make(
        counts if name == "counts" else None if name in absent else row[name] for name in GroupTopic._fields
    )


def _worst(verdicts: DataFrame, topics: list[Row]) -> tuple[PartitionVerdict, ...]:
    """Return the `MAX_WORST` worst partitions. topics: the `MAX_WORST` worst rows of `group_topic_summary`."""
    # These topics are enough, because each of them has a partition that is at least as bad as any elsewhere.
    among = [F.col(name).isin([row[name] for row in topics]) for name in ("group", "topic")]
    rows = (
        verdicts.where(F.col("status").isin(*PROBLEMS))
        .where(among[0] & among[1])
        .orderBy(severity(F.col("status")), "cluster_id", "group", "topic", "partition")
        .limit(MAX_WORST)
        .select(*PartitionVerdict._fields)
        .collect()
    )
    return tuple(map(PartitionVerdict._make, rows))
