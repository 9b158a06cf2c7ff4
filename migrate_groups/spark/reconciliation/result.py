"""The result of a reconciliation as plain values. Its size is bounded, whatever the number of partitions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

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

MAX_SUMMARY = 1000
"""The largest number of summary rows that the driver receives, the worst first. The written tables have all rows."""

MAX_WORST = 20
"""The largest number of partitions that the result lists one by one."""


MAX_TIMELINE = 2000
"""The largest number of points of lag over time that the driver receives. The written table has all points."""


class GroupTopic(NamedTuple):
    """The verdict on one topic of a group, or the totals, for which cluster, group and topic are None.

    worst: the worst status of a partition. counts: the number of partitions by status. lag_before, lag_after: the sum
    of the partitions' lags. produced, consumed: by how much the log end offsets and the committed offsets have grown.
    time_lag_before, time_lag_after: the largest of any partition, in seconds; None if not known.
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
    """A partition with a problem, and its offsets before and after the hand-over.

    before_offset, after_offset: the committed offset in each of the two snapshots. lag_before, lag_after: the log end
    offset minus the committed offset; None without a committed offset. reason: an explanation of the status; None if
    the status needs none.
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
    """The lag of a group on one topic, or on all its topics together if ``topic`` is None, at one moment.

    group: the target group. Until its first commit, the figures are computed from the source group's offsets, and
    afterwards from its own. lag: the sum over the partitions that have a lag; None if none has. produced, consumed: the
    change of the log end offsets and of the committed offsets since the previous moment; None at the first moment.
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
    """The result of `run_reconcile`.

    topics: the number of pairs of a group and a topic. summary: the `MAX_SUMMARY` worst of these pairs, sorted by
    severity, then by name. worst: the first `MAX_WORST` partitions with a problem, in the same order. hints: sentences
    for the user. timeline: sorted by cluster, group, topic (None first) and moment; empty if there are only two moments
    or fewer. quarantined: the number of invalid rows that were set aside; the verdict does not cover them.
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
    """Collect the result. One Spark job computes counts and summary, and a second one the worst partitions, if any.

    Args:
        verdicts: the result of `reconcile.partition_verdict`; it must have a row.
        hints: sentences to include in the result.
        timeline: points to include in the result.
    """
    rows = (
        with_totals(group_topic_summary(verdicts))
        .orderBy(F.col("is_total").desc(), severity(F.col("worst")), "cluster_id", "group", "topic")
        .limit(MAX_SUMMARY + 1)
        .collect()
    )
    totals = _group_topic(rows[0])
    return Reconciliation(
        totals=totals,
        topics=rows[0]["topics"],
        summary=tuple(map(_group_topic, rows[1:])),
        worst=_worst(verdicts, rows[1 : MAX_WORST + 1]) if any(totals.counts[status] for status in PROBLEMS) else (),
        hints=(*hints, *([AHEAD_PROVES_NOTHING] if totals.counts["ahead"] else [])),
        timeline=timeline,
    )


def moments(timeline: DataFrame | None) -> tuple[Moment, ...]:
    """Collect the lag over time, sorted by cluster, group, topic and moment; empty without ``timeline``.

    timeline: the result of `timeline.lag_timeline`. If it has more than `MAX_TIMELINE` points, these are kept first:
    the totals of whole groups before single topics, and groups and topics with a large lag before those with a small
    lag.
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
    """Return the `MAX_WORST` worst partitions. topics: the `MAX_WORST` worst rows of the summary.

    It is enough to search these topics, because each has a partition that is at least as bad as any elsewhere.
    """
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
