"""The result of ``reconcile``, which compares snapshots before and after a migration: terminal view, JSON document."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.show import verdicts as in_words
from migrate_groups.show.documents import Document
from migrate_groups.show.rows import object_type, objects
from migrate_groups.show.tables import cell, table
from migrate_groups.spark.reconciliation import result
from migrate_groups.spark.reconciliation.result import GroupTopic, Reconciliation
from migrate_groups.text import counted

_GroupTopic, _Partition = object_type(result.GroupTopic), object_type(result.PartitionVerdict)
Moment = object_type(result.Moment)
# More rows than this are hard to read on a terminal; the files have every row.
_MOST_ROWS = 50


class ReconciliationDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/reconciliation"):
    """The document that ``reconcile`` prints.

    - clean: whether no partition has a problem.
    - problems: the number of partitions with the status missing, behind, unexpected or below-log-start.
    - totals: the figures of all partitions.
    - topics: the number of pairs of a group and a topic.
    - summary: the figures of the 1,000 worst pairs.
    - worst: the 20 worst partitions with a problem.
    - hints: sentences for people.
    - timeline: the lag over time, at most 2,000 rows; empty without snapshots from at least three times.
    - quarantined: the number of invalid rows in the snapshots. No other figure includes these rows.
    """

    clean: bool
    problems: int
    totals: _GroupTopic  # type: ignore[valid-type]  # made from the job's row, as those that follow
    topics: int
    summary: tuple[_GroupTopic, ...]  # type: ignore[valid-type]
    worst: tuple[_Partition, ...]  # type: ignore[valid-type]
    hints: tuple[str, ...]
    timeline: tuple[Moment, ...]  # type: ignore[valid-type]
    quarantined: int


def document(found: Reconciliation) -> ReconciliationDocument:
    """Return the JSON document for the result of a reconciliation."""
    return ReconciliationDocument(
        clean=found.clean,
        problems=found.problems,
        totals=_GroupTopic(*found.totals),
        topics=found.topics,
        summary=objects(_GroupTopic, found.summary),
        worst=objects(_Partition, found.worst),
        hints=found.hints,
        timeline=objects(Moment, found.timeline),
        quarantined=found.quarantined,
    )


def terminal(found: Reconciliation) -> RenderableType:
    """Return the result of a reconciliation: a table of topics, a table of partitions with a problem, and hints.

    The tables show at most 50 topics and 20 partitions, the worst first.
    """
    figures = dict.fromkeys(("partitions", "lag_before", "lag_after", "produced", "consumed"), ">")
    timed = in_words.is_timed(found)
    times = dict.fromkeys(("time_lag_before", "time_lag_after"), ">") if timed else {}
    summary = table("group", "topic", "verdict", **figures, **times)
    for each in found.summary[:_MOST_ROWS]:
        words = (cell(each.group or "-"), each.topic or "-", in_words.tally(each.counts))
        summary.add_row(*words, *_numbers(each, timed=timed))
    total = in_words.tally(found.totals.counts)
    summary.add_row("total", "", total, *_numbers(found.totals, timed=timed), style="bold")
    lines: list[RenderableType] = [summary]
    rest = found.topics - _MOST_ROWS
    if rest > 0:
        lines.append(Text(f"… and {counted(rest, 'more topic')}", style="dim"))
    if found.worst:
        worst = table("group", "partition", "status", before=">", after=">", reason="<")
        for partition in found.worst:
            offsets = (in_words.number(partition.before_offset), in_words.number(partition.after_offset))
            name = f"{partition.topic}-{partition.partition}"
            worst.add_row(cell(partition.group), name, partition.status, *offsets, cell(partition.reason or ""))
        lines.append(worst)
    lines.extend(Text(hint, style="yellow") for hint in found.hints)
    return Group(*lines)


def _numbers(each: GroupTopic, *, timed: bool) -> tuple[str, ...]:
    numbers = (each.partitions, each.lag_before, each.lag_after, each.produced, each.consumed)
    times = (each.time_lag_before, each.time_lag_after) if timed else ()
    return (*map(in_words.number, numbers), *map(in_words.span, times))
