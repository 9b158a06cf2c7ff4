"""The result of a reconciliation as plain values, of bounded size whatever the number of partitions."""

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
"""The largest number of summary rows that the driver receives, the worst first; the written tables have all rows."""

MAX_WORST = 20
"""The largest number of partitions that are named one by one."""


MAX_TIMELINE = 2000
"""The largest number of points of lag over time that the driver receives; the written table has all points."""


class GroupTopic(NamedTuple):
    """The verdict on one group and topic, or the totals (cluster, group and topic are None).

    worst: the worst status. counts: the number of partitions by status. Lags, produced and consumed are in records. The
    time lags are the largest of any partition, in seconds; None if they are not known.
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
    """One partition with a problem.

    before_offset, after_offset: the committed offset in BEFORE and in AFTER. lag_before, lag_after: in offsets; None
    without a committed offset. reason: why it has this status; None: the status says all.
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
    """The lag of one topic of a group (None: of all its topics together) at one moment.

    ``group`` is the target group. Moments before its first own commit have the source group's offsets in BEFORE, later
    moments its own offsets. ``lag`` is in records, the sum over the partitions that have one; None if none has.
    ``produced`` and ``consumed`` are in records since the previous moment; None at the first.
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

    ``summary``: the `MAX_SUMMARY` worst of ``topics`` rows, one for each group and topic, sorted by severity, then by
    name. ``worst``: the first `MAX_WORST` partitions with a problem, sorted likewise. ``hints``: sentences for the
    user. ``timeline``: sorted by cluster, group, topic (None first) and moment; empty if there are two moments or
    fewer. ``quarantined``: the number of invalid rows that were set aside, which the verdict leaves out.
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
        """The number of partitions that are missing, below the log start offset, behind or unexpected."""
        return sum(self.totals.counts[status] for status in PROBLEMS)

    @property
    def clean(self) -> bool:
        """Whether no partition has a problem."""
        return self.problems == 0


def conclude(verdicts: DataFrame, hints: tuple[str, ...] = (), timeline: tuple[Moment, ...] = ()) -> Reconciliation:
    """Return the result. One Spark job makes counts and summary, a second one finds the worst partitions, if any.

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
    """Return the lag of groups and topics over time, sorted by group, topic and moment; empty without ``timeline``.

    timeline: the table ``lag_timeline``. Of more than `MAX_TIMELINE` points, those of groups count before those of
    topics, large lags before small ones, and late points before early ones.
    """
    if timeline is None:
        return ()
    moment = F.unix_micros("taken_at").alias("taken_at")
    rows = most_telling(timeline, MAX_TIMELINE).select(
        *(moment if name == "taken_at" else name for name in Moment._fields)
    )
    # Made from microseconds, because PySpark would turn a timestamp into the local time of this machine.
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
    """Return the `MAX_WORST` worst partitions, which are searched only in ``topics``, the `MAX_WORST` worst topics.

    No other topic can have one of them, because each of ``topics`` has a partition that is as bad or worse.
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
