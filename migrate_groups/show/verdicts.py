"""Short texts for the result of ``reconcile``, which the terminal, Markdown and HTML views share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import GroupTopic, Moment, PartitionVerdict, Reconciliation

MEANING = {
    "missing": "an offset was committed before, none after",
    "below-log-start": "the committed offset is below the log start offset: unread records are deleted",
    "behind": "the committed offset is lower than before: records are processed again",
    "unexpected": "an offset is committed after and none was before, or the topic was recreated",
    "ahead": "the committed offset is higher than before: records were processed or skipped; it proves nothing",
    "no-commit": "no offset is committed, before or after: the lag is not known, and not 0",
    "exact": "the committed offset is the same before and after",
}
"""The meaning of each status of a partition, the worst status first."""


def number(value: int | None) -> str:
    """Return a number as text, such as ``1,234``; ``-`` for None."""
    return "-" if value is None else f"{value:,}"


def span(seconds: float | None) -> str:
    """Return a time span as text, such as ``3 h 5 min``; ``-`` for None."""
    return "-" if seconds is None else span_in_words(timedelta(seconds=seconds))


def is_timed(found: Reconciliation) -> bool:
    """Return whether the age of the oldest unread record is known for any partition, before or after the migration."""
    return (found.totals.time_lag_before, found.totals.time_lag_after) != (None, None)


def tally(counts: Mapping[str, int]) -> str:
    """Return the number of partitions by status as text, the worst status first: ``2 behind, 1,200 exact``.

    counts: must have every status of `MEANING`.
    """
    return ", ".join(f"{counts[status]:,} {status}" for status in MEANING if counts[status])


def conclusion(found: Reconciliation) -> str:
    """Return the overall verdict of a reconciliation as a sentence without a full stop."""
    if not found.clean:
        return f"{counted(found.problems, 'partition')} did not start where the old group stopped"
    if found.totals.counts["exact"] == found.totals.partitions:
        return "every partition starts where the old group stopped"
    return "no partition is missing, behind, unexpected or below its log start offset"


def by_group(summary: Iterable[GroupTopic]) -> list[list[GroupTopic]]:
    """Return one list of rows for each consumer group.

    In each list the rows with the worst status come first; of rows with the same status, those with the highest lag.
    """
    groups: dict[tuple[str | None, str | None], list[GroupTopic]] = {}
    for row in summary:
        groups.setdefault((row.cluster_id, row.group), []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda row: ([*MEANING].index(row.worst), -max(row.lag_before or 0, row.lag_after or 0)))
    return [*groups.values()]


def where(found: Reconciliation) -> Callable[[GroupTopic | PartitionVerdict | Moment], str]:
    """Return a function that names the group of a row, such as ``billing``; ``-`` if the row has no group.

    If the rows are of several clusters, the name is ``billing on CLUSTER-ID``.
    """
    several = len({row.cluster_id for row in found.summary}) > 1
    return lambda row: f"{row.group} on {row.cluster_id}" if several else row.group or "-"


def history(timeline: Iterable[Moment]) -> list[list[Moment]]:
    """Return the lag over time as lists: one for each whole group, then one for each topic of each group.

    The lists of whole groups, and the lists of topics, are sorted by their highest lag, the highest first.
    """
    series: dict[tuple[str | None, str, str | None], list[Moment]] = {}
    for moment in timeline:
        series.setdefault((moment.cluster_id, moment.group, moment.topic), []).append(moment)
    return sorted(series.values(), key=lambda moments: (moments[0].topic is not None, -(highest(moments) or 0)))


def highest(moments: Iterable[Moment]) -> int | None:
    """Return the highest known lag over time; None if no lag is known."""
    return max((moment.lag for moment in moments if moment.lag is not None), default=None)
