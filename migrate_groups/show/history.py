"""The commits and lag of groups over time, from the log of ``__consumer_offsets``: terminal, JSON and HTML views."""

from __future__ import annotations

from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.show.audit import Evidence
from migrate_groups.show.documents import Document
from migrate_groups.show.page import drawn, environment
from migrate_groups.show.reconciliation import Moment
from migrate_groups.show.rows import object_type, objects
from migrate_groups.show.tables import cell, table
from migrate_groups.show.verdicts import number
from migrate_groups.spark.offsets_topic.history_job import GroupHistory, History
from migrate_groups.text import counted

_Group = object_type(GroupHistory)
_MOST_ROWS = 50
_MOST_CURVES = 100
_TITLES = (
    "topics", "partitions", "commits", "rewinds", "deletions", "first commit", "last commit",
    "highest lag", "last lag", "missing",
)  # fmt: skip


class HistoryDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/history"):
    """The document that ``history`` prints: the commits and the lag of consumer groups over time.

    - found: the number of groups.
    - first, last: when the history begins and ends.
    - groups: the 1,000 groups with the most commits.
    - timeline: the lag of groups and of their topics over time, at most 2,000 rows. Rows of topics are left out first.
    - evidence: for each partition of ``__consumer_offsets``, the offsets that were read and the number of missing
      records.
    """

    found: int
    first: datetime
    last: datetime
    groups: tuple[_Group, ...]  # type: ignore[valid-type]  # made from the job's row, as those that follow
    timeline: tuple[Moment, ...]  # type: ignore[valid-type]
    evidence: tuple[Evidence, ...]  # type: ignore[valid-type]


def document(found: History) -> HistoryDocument:
    """Return the JSON document for the history of consumer groups that a Spark job has computed."""
    return HistoryDocument(
        found=found.found,
        first=found.first,
        last=found.last,
        groups=objects(_Group, found.groups),
        timeline=objects(Moment, found.timeline),
        evidence=objects(Evidence, found.evidence),
    )


def terminal(found: History) -> RenderableType:
    """Return a table of the 50 groups with the most commits, and hints on what ``__consumer_offsets`` can't show."""
    made = table("group", **{title.replace(" ", "_"): ">" for title in _TITLES})
    for each in found.groups[:_MOST_ROWS]:
        made.add_row(cell(each.group), *_figures(each))
    rest = found.found - min(len(found.groups), _MOST_ROWS)
    more = [Text(f"… and {counted(rest, 'more group')}", style="dim")] if rest else []
    return Group(made, *more, *(Text(hint, style="yellow") for hint in _hints(found)))


def page(found: History) -> str:
    """Return the history as one self-contained HTML page: a table of groups, and at most 100 curves of their lag."""
    return (
        environment()
        .get_template("history.html")
        .render(
            found=found,
            hints=_hints(found),
            titles=_TITLES,
            figures=_figures,
            where=lambda each: each.group,
            **drawn(found.timeline, _MOST_CURVES),
            table="history.parquet",
        )
    )


def _figures(each: GroupHistory) -> tuple[str, ...]:
    times = (_minute(each.first_commit_at), _minute(each.last_commit_at))
    counts = (each.topics, each.partitions, each.commits, each.rewinds, each.deletions)
    return (*map(number, counts), *times, *map(number, (each.most_lag, each.last_lag, each.missing)))


def _hints(found: History) -> list[str]:
    hints = [
        "A commit does not name its member: the column clients of history.parquet has all members at that time. "
        "A deletion may be an expiry."
    ]
    log = sum(each.end_offset - each.start_offset for each in found.evidence)
    if missing := sum(each.missing for each in found.evidence):
        hints.append(
            f"Compaction has removed {missing:,} of the {counted(log, 'offset')} of the log (missing: in the group's "
            "partition of the log). It removes only commits that a later commit replaced, so earlier lag may be lower "
            "than shown, and counts may be higher. To lose no commit, run this again with the same --log before "
            "Kafka compacts."
        )
    if held := sum(each.held_back for each in found.evidence):
        hints.append(
            f"Open transactions hold back {counted(held, 'offset')} at the end of the log: run this again later."
        )
    if malformed := sum(each.malformed for each in found.evidence):
        hints.append(f"Left out: {counted(malformed, 'record')} that can't be decoded.")
    return hints


def _minute(value: datetime | None) -> str:
    return "-" if value is None else f"{value:%Y-%m-%d %H:%M}"
