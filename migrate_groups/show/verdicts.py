"""A reconciliation in the few words that every view uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import GroupTopic, Moment, PartitionVerdict, Reconciliation

MEANING = {
    "missing": "committed before, nothing after",
    "below-log-start": "the log starts further on: records are already gone",
    "behind": "the offset went back: records are processed again",
    "unexpected": "committed after, but not before, or in a topic that was recreated since",
    "ahead": "the offset went on: processed since, or skipped; it proves nothing",
    "no-commit": "nothing is committed, before or after: that is no lag of 0",
    "exact": "the same offset before and after",
}
"""What each status says, the worst first."""


def number(value: int | None) -> str:
    """Return ``1,234``; ``-`` for what is not known, which is never 0."""
    return "-" if value is None else f"{value:,}"


def span(seconds: float | None) -> str:
    """Return ``3 h 5 min``; ``-`` for what is not known."""
    return "-" if seconds is None else span_in_words(timedelta(seconds=seconds))


def is_timed(found: Reconciliation) -> bool:
    """Return whether lag is known as time, of one side at least."""
    return (found.totals.time_lag_before, found.totals.time_lag_after) != (None, None)


def tally(counts: Mapping[str, int]) -> str:
    """Return ``2 behind, 1,200 exact``, the worst first."""
    return ", ".join(f"{counts[status]:,} {status}" for status in MEANING if counts[status])


def conclusion(found: Reconciliation) -> str:
    """Return the verdict on the whole as a sentence without its full stop."""
    if not found.clean:
        return f"{counted(found.problems, 'partition')} did not start where the old group stopped"
    if found.totals.counts["exact"] == found.totals.partitions:
        return "every partition starts where the old group stopped"
    return "no partition is missing, behind, unexpected or below its log's start"


def by_group(summary: Iterable[GroupTopic]) -> list[list[GroupTopic]]:
    """Return the rows of each group, in the order of their first rows; the most lag first within a status."""
    groups: dict[tuple[str | None, str | None], list[GroupTopic]] = {}
    for row in summary:
        groups.setdefault((row.cluster_id, row.group), []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda row: ([*MEANING].index(row.worst), -max(row.lag_before or 0, row.lag_after or 0)))
    return [*groups.values()]


def where(found: Reconciliation) -> Callable[[GroupTopic | PartitionVerdict | Moment], str]:
    """Return what names the group of a row: with its cluster, where there are several."""
    several = len({row.cluster_id for row in found.summary}) > 1
    return lambda row: f"{row.group} on {row.cluster_id}" if several else row.group or "-"


def history(timeline: Iterable[Moment]) -> list[list[Moment]]:
    """Return the moments of each group, then of each topic, those with the highest lag first."""
    series: dict[tuple[str | None, str, str | None], list[Moment]] = {}
    for moment in timeline:
        series.setdefault((moment.cluster_id, moment.group, moment.topic), []).append(moment)
    return sorted(series.values(), key=lambda moments: (moments[0].topic is not None, -(highest(moments) or 0)))


def highest(moments: Iterable[Moment]) -> int | None:
    """Return the highest lag that is known."""
    return max((moment.lag for moment in moments if moment.lag is not None), default=None)
