"""The commits and lag of groups over time, from the log of ``__consumer_offsets``."""

from __future__ import annotations

from migrate_groups.show import html
from migrate_groups.show.curves import drawn
from migrate_groups.show.documents import document_type, filled
from migrate_groups.show.result import COUNT, MINUTE, NAME, SECOND, Column, Result, Table, counts, hints
from migrate_groups.spark.offsets_topic.history_job import GroupHistory, History
from migrate_groups.text import counted

_DOCUMENT = document_type(History, "found", "first", "last", "groups", "timeline", "evidence")
_MOST_ROWS = 50
_MOST_CURVES = 100
_COLUMNS: list[Column[GroupHistory]] = [
    Column("group", NAME, lambda each: each.group),
    *counts("topics", "partitions", "commits", "rewinds", "deletions"),
    Column("first commit", MINUTE, lambda each: each.first_commit_at),
    Column("last commit", MINUTE, lambda each: each.last_commit_at),
    Column("highest lag", COUNT, lambda each: each.most_lag),
    *counts("last_lag", "missing"),
]


def result(found: History) -> Result:
    """Return a table of groups, on a terminal the 50 with the most commits, and hints.

    The hints say what ``__consumer_offsets`` can't show.
    """
    table = Table(columns=_COLUMNS, rows=found.groups, thing="group", found=found.found, most=_MOST_ROWS)
    return Result(
        document=filled(_DOCUMENT, found),
        kind="History of committed offsets",
        title=f"{counted(found.found, 'group')}, {SECOND.of(found.first)} to {SECOND.of(found.last)} (UTC)",
        parts=[table, *hints(_hints(found))],
    )


def page(found: History) -> str:
    """Return the history as one self-contained HTML page: a table of groups, and at most 100 curves of their lag."""
    return html.page(
        "history.html", result(found), **drawn(found.timeline, _MOST_CURVES, "history.parquet", lambda each: each.group)
    )


def _hints(found: History) -> list[str]:
    hints = [
        "A commit does not name its member: the column clients of history.parquet has all members at that time. "
        "A deletion may be an expiry."
    ]
    if any(each.rewinds for each in found.groups):
        hints.append(
            "The offsets of a group before it went back (rewinds): "
            "migrate-groups snapshot GROUP --log DIR --at TIME -o then.csv"
        )
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
