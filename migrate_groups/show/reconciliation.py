"""The result of ``reconcile``, which compares snapshots before and after a migration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from migrate_groups.show import html
from migrate_groups.show.curves import by_series, drawn, highest
from migrate_groups.show.documents import document_type, filled
from migrate_groups.show.result import (
    COUNT,
    NAME,
    SPAN,
    TEXT,
    WORD,
    Column,
    Groups,
    Kind,
    Result,
    Role,
    Table,
    Verdict,
    counts,
    hints,
)
from migrate_groups.spark.reconciliation.result import GroupTopic, Moment, PartitionVerdict, Reconciliation
from migrate_groups.text import counted

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


def tally(counts: Mapping[str, int]) -> str:
    """Return the number of partitions by status as text, the worst status first: ``2 behind, 1,200 exact``.

    counts: must have every status of `MEANING`.
    """
    return ", ".join(f"{counts[status]:,} {status}" for status in MEANING if counts[status])


_DOCUMENT = document_type(
    Reconciliation,
    *("clean", "problems", "totals", "topics", "summary", "worst", "hints", "timeline", "quarantined"),
)
# More rows, bars and curves are hard to read; the tables on disk have every row.
_MOST_ROWS, _MOST_TOPICS, _MOST_GROUPS, _MOST_CURVES = 50, 25, 40, 24
_FIGURES: list[Column[GroupTopic]] = counts("partitions", "lag_before", "lag_after", "produced", "consumed")
_TIMES: list[Column[GroupTopic]] = [
    Column("time lag before", SPAN, lambda each: each.time_lag_before),
    Column("time lag after", SPAN, lambda each: each.time_lag_after),
]
_TOPIC: list[Column[GroupTopic]] = [
    Column("topic", NAME, lambda each: each.topic),
    Column("verdict", Kind(Role.WORD, tally), lambda each: each.counts),
]
_MEANINGS: list[Column[tuple[str, str]]] = [
    Column("verdict", WORD, lambda each: each[0]),
    Column("meaning", TEXT, lambda each: each[1]),
]


def result(found: Reconciliation, summary_file: str | None = None) -> Result:
    """Return the result of a reconciliation: its topics, the partitions with a problem, hints, and lag over time.

    summary_file: the name of the file with every group and topic; None if it was not written.
    """
    columns, totals = [*_FIGURES, *(_TIMES if _is_timed(found) else [])], found.totals
    figures = {column.heading: column.text(totals) for column in columns}
    counts = {"partitions": COUNT.of(totals.partitions), "topics": COUNT.of(found.topics)}
    set_aside = {"rows set aside": COUNT.of(found.quarantined)} if found.quarantined else {}
    summary = Table(
        columns=[Column("group", NAME, _where(found)), *_TOPIC, *columns],
        rows=found.summary,
        thing="topic",
        found=found.topics,
        most=_MOST_ROWS,
        total=["total", "", tally(totals.counts), *figures.values()],
        groups=Groups(_of_group, _worst_first),
    )
    return Result(
        document=filled(_DOCUMENT, found),
        kind="Reconciliation of committed offsets",
        title=f"Reconciled: {counted(totals.partitions, 'partition')} ({tally(totals.counts)})",
        verdict=Verdict("clean" if found.clean else "broken", _conclusion(found), found.clean),
        figures=counts | figures | set_aside,
        parts=[summary, *([_worst(found)] if found.worst else []), *hints(found.hints)],
        details=[*([_timeline(found)] if found.timeline else []), _meanings(found)],
        everything=(summary_file, "has every group and topic")
        if summary_file
        else ("-o OUT", "writes every group, topic and partition"),
    )


def page(found: Reconciliation) -> str:
    """Return the result of a reconciliation as an HTML page. The same result always gives the same bytes."""
    shown = result(found)
    summary = shown.tables[0]
    groups = summary.by_group()
    return html.page(
        "report.html",
        shown,
        counts=found.totals.counts,
        meanings=MEANING,
        summary=summary,
        worst=_worst(found),
        timed=_is_timed(found),
        groups=[(name, rows[:_MOST_TOPICS], len(rows), _most(rows)) for name, rows in groups.items()][:_MOST_GROUPS],
        more_groups=len(groups) - _MOST_GROUPS,
        **drawn(found.timeline, _MOST_CURVES, "lag_timeline", _where(found)),
    )


def _is_timed(found: Reconciliation) -> bool:
    """Return whether the age of the oldest unread record is known for any partition, before or after the migration."""
    return (found.totals.time_lag_before, found.totals.time_lag_after) != (None, None)


def _where(found: Reconciliation) -> Callable[[GroupTopic | PartitionVerdict | Moment], str | None]:
    """Return a function that names the group of a row, such as ``billing``; None if the row has no group.

    If the rows are of several clusters, the name is ``billing on CLUSTER-ID``.
    """
    several = len({row.cluster_id for row in found.summary}) > 1
    return lambda row: f"{row.group} on {row.cluster_id}" if several else row.group


def _of_group(rows: Sequence[GroupTopic]) -> str:
    counts: Counter[str] = sum((Counter(row.counts) for row in rows), Counter())
    return f"{counted(len(rows), 'topic')} ({tally(counts)})"


def _worst_first(row: GroupTopic) -> tuple[int, int]:
    return [*MEANING].index(row.worst), -max(row.lag_before or 0, row.lag_after or 0)


def _most(rows: Sequence[GroupTopic]) -> int:
    """Return the highest lag of the topics that have bars."""
    return max(lag or 0 for row in rows[:_MOST_TOPICS] for lag in (row.lag_before, row.lag_after))


def _worst(found: Reconciliation) -> Table[PartitionVerdict]:
    columns: list[Column[PartitionVerdict]] = [
        Column("group", NAME, _where(found)),
        Column("partition", NAME, lambda each: f"{each.topic}-{each.partition}"),
        Column("status", WORD, lambda each: each.status, tone=lambda each: each.status),
        Column("before", COUNT, lambda each: each.before_offset),
        Column("after", COUNT, lambda each: each.after_offset),
        Column("reason", TEXT, lambda each: each.reason),
    ]
    return Table(columns=columns, rows=found.worst, thing="partition", found=found.problems)


def _timeline(found: Reconciliation) -> Table[Sequence[Moment]]:
    where = _where(found)
    columns: list[Column[Sequence[Moment]]] = [
        Column("group", NAME, lambda moments: where(moments[0])),
        Column("topic", NAME._replace(unknown="(all)"), lambda moments: moments[0].topic),
        Column("moments", COUNT, len),
        Column("first lag", COUNT, lambda moments: moments[0].lag),
        Column("highest lag", COUNT, highest),
        Column("last lag", COUNT, lambda moments: moments[-1].lag),
    ]
    return Table(columns=columns, rows=by_series(found.timeline), folded="lag over time")


def _meanings(found: Reconciliation) -> Table[tuple[str, str]]:
    rows = [(status, meaning) for status, meaning in MEANING.items() if found.totals.counts[status]]
    return Table(columns=_MEANINGS, rows=rows, thing="verdict", folded="meaning of the verdicts")


def _conclusion(found: Reconciliation) -> str:
    """Return the overall verdict of a reconciliation as a sentence without a full stop."""
    if not found.clean:
        return f"{counted(found.problems, 'partition')} did not start where the old group stopped"
    if found.totals.counts["exact"] == found.totals.partitions:
        return "every partition starts where the old group stopped"
    return "no partition is missing, behind, unexpected or below its log start offset"
