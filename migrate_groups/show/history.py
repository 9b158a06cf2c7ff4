"""The commits and lag of groups over time, from the log of ``__consumer_offsets``."""

from __future__ import annotations

from datetime import datetime

from migrate_groups.show import html
from migrate_groups.show.audit import Evidence
from migrate_groups.show.curves import drawn
from migrate_groups.show.documents import Document
from migrate_groups.show.reconciliation import Moment
from migrate_groups.show.result import COUNT, MINUTE, NAME, SECOND, Column, Result, Table, hints
from migrate_groups.show.rows import filled, object_type
from migrate_groups.spark.offsets_topic.history_job import GroupHistory, History
from migrate_groups.text import counted

_Group = object_type(GroupHistory)
_MOST_ROWS = 50
_MOST_CURVES = 100
_COLUMNS: list[Column[GroupHistory]] = [
    Column("group", NAME, lambda each: each.group),
    Column("topics", COUNT, lambda each: each.topics),
    Column("partitions", COUNT, lambda each: each.partitions),
    Column("commits", COUNT, lambda each: each.commits),
    Column("rewinds", COUNT, lambda each: each.rewinds),
    Column("deletions", COUNT, lambda each: each.deletions),
    Column("first commit", MINUTE, lambda each: each.first_commit_at),
    Column("last commit", MINUTE, lambda each: each.last_commit_at),
    Column("highest lag", COUNT, lambda each: each.most_lag),
    Column("last lag", COUNT, lambda each: each.last_lag),
    Column("missing", COUNT, lambda each: each.missing),
]


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


def result(found: History) -> Result:
    """Return a table of groups, on a terminal the 50 with the most commits, and hints.

    The hints say what ``__consumer_offsets`` can't show.
    """
    table = Table(columns=_COLUMNS, rows=found.groups, thing="group", found=found.found, most=_MOST_ROWS)
    return Result(
        document=filled(HistoryDocument, found),
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
