"""The commits and lag of groups over time, from the log of ``__consumer_offsets``."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path

from migrate_groups.show import html
from migrate_groups.show.curves import drawn
from migrate_groups.show.documents import document_type, filled
from migrate_groups.show.result import COUNT, MINUTE, NAME, SECOND, Column, Result, Table, counts, hints
from migrate_groups.snapshots.times import milliseconds_of, rfc_3339
from migrate_groups.spark.offsets_topic.history_job import GroupHistory, History, Reset
from migrate_groups.spark.reconciliation.result import Moment
from migrate_groups.text import counted, shell_command

_DOCUMENT = document_type(History, "found", "first", "last", "groups", "resets", "timeline", "evidence")
_MOST_ROWS = 50
_MOST_CURVES = 100
_MOST_RESETS = 20
_COLUMNS: list[Column[GroupHistory]] = [
    Column("group", NAME, lambda each: each.group),
    *counts("topics", "partitions", "commits", "rewinds", "deletions"),
    Column("first commit", MINUTE, lambda each: each.first_commit_at),
    Column("last commit", MINUTE, lambda each: each.last_commit_at),
    Column("highest lag", COUNT, lambda each: each.most_lag),
    *counts("last_lag", "missing"),
]


def result(found: History, log: Path) -> Result:
    """Return a table of groups, on a terminal the 50 with the most commits, and hints.

    log: the folder of the copied log. The hints say what ``__consumer_offsets`` can't show.
    """
    table = Table(columns=_COLUMNS, rows=found.groups, thing="group", found=found.found, most=_MOST_ROWS)
    return Result(
        document=filled(_DOCUMENT, found),
        kind="History of committed offsets",
        title=f"{counted(found.found, 'group')}, {SECOND.of(found.first)} to {SECOND.of(found.last)} (UTC)",
        parts=[table, *hints(_hints(found, log))],
    )


def page(found: History, log: Path) -> str:
    """Return the history as one self-contained HTML page: a table of groups, and at most 100 curves of their lag.

    Of the resets that went back most, at most 20, it has the command for the offsets before. log: the folder of the
    copied log.
    """
    shown = found.resets[:_MOST_RESETS]

    def marks(moment: Moment) -> list[datetime]:
        return [
            each.before
            for each in shown
            if each.group == moment.group and (moment.topic is None or moment.topic in each.topics)
        ]

    return html.page(
        "history.html",
        result(found, log),
        resets=[(each, _command(each, log)) for each in shown],
        more_resets=len(found.resets) - len(shown),
        **drawn(found.timeline, _MOST_CURVES, "history.parquet", lambda each: each.group, marks),
    )


def _command(reset: Reset, log: Path) -> str:
    moment = rfc_3339(milliseconds_of(reset.before))
    options = f"--log {shlex.quote(str(log))} --at {moment} -o then.csv"
    return shell_command("migrate-groups snapshot", [reset.group], options)


def _hints(found: History, log: Path) -> list[str]:
    hints = [
        "A commit does not name its member: the column clients of history.parquet has all members at that time. "
        "A deletion may be an expiry."
    ]
    if found.resets:
        hints.append(f"The offsets before the largest reset (rewinds): {_command(found.resets[0], log)}")
    written = sum(each.end_offset - each.start_offset for each in found.evidence)
    if missing := sum(each.missing for each in found.evidence):
        hints.append(
            f"Compaction has removed {missing:,} of the {counted(written, 'offset')} of the log (missing: in the "
            "group's partition of the log). It removes only commits that a later commit replaced, so earlier lag may "
            "be lower than shown, and counts may be higher. To lose no commit, run this again with the same --log "
            "before Kafka compacts."
        )
    if held := sum(each.held_back for each in found.evidence):
        hints.append(
            f"Open transactions hold back {counted(held, 'offset')} at the end of the log: run this again later."
        )
    if malformed := sum(each.malformed for each in found.evidence):
        hints.append(f"Left out: {counted(malformed, 'record')} that can't be decoded.")
    return hints
