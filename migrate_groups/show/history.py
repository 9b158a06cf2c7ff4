"""Views of the history of groups, read from the log of ``__consumer_offsets``: terminal, JSON document, HTML page."""

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
    """The document that the command ``history`` prints.

    found: the number of groups in the history. first, last: its first and its last point in time. groups: the 1,000
    groups with the most commits. timeline: at most 2,000 rows, each with the lag of a group, or of one of its topics,
    at a point in time; rows of topics are left out before rows of whole groups, and small lags before large ones.
    evidence: for each partition of ``__consumer_offsets``, the offsets that were read and how many records are missing.
    """

    found: int
    first: datetime
    last: datetime
    groups: tuple[_Group, ...]  # type: ignore[valid-type]  # made from the job's row, as those that follow
    timeline: tuple[Moment, ...]  # type: ignore[valid-type]
    evidence: tuple[Evidence, ...]  # type: ignore[valid-type]


def document(found: History) -> HistoryDocument:
    """Return the JSON document for the result of a history job."""
    return HistoryDocument(
        found=found.found,
        first=found.first,
        last=found.last,
        groups=objects(_Group, found.groups),
        timeline=objects(Moment, found.timeline),
        evidence=objects(Evidence, found.evidence),
    )


def terminal(found: History) -> RenderableType:
    """Return a table with one line per group, and hints on what the log of ``__consumer_offsets`` can't show.

    The group with the most commits comes first. At most 50 groups are shown.
    """
    made = table("group", **{title.replace(" ", "_"): ">" for title in _TITLES})
    for each in found.groups[:_MOST_ROWS]:
        made.add_row(cell(each.group), *_figures(each))
    rest = found.found - min(len(found.groups), _MOST_ROWS)
    more = [Text(f"… and {counted(rest, 'more group')}", style="dim")] if rest else []
    return Group(made, *more, *(Text(hint, style="yellow") for hint in _hints(found)))


def page(found: History) -> str:
    """Return the history as one HTML page without external parts, with a table of the groups and curves of their lag.

    There is a curve for each group, then for each group and topic; at most 100 in all.
    """
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
