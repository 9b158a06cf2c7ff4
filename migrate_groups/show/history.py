"""The history of groups from the log of ``__consumer_offsets``: on a terminal, as JSON values, and as an HTML page."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.show.page import drawn, environment
from migrate_groups.show.tables import cell, table
from migrate_groups.show.values import moment, values
from migrate_groups.show.verdicts import number
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.history_job import GroupHistory, History

SCHEMA_VERSION = 1
_MOST_ROWS = 50
_MOST_CURVES = 100
_TITLES = (
    "topics", "partitions", "commits", "rewinds", "deletions", "first commit", "last commit",
    "lag at most", "lag at last", "gone",
)  # fmt: skip


def terminal(found: History) -> RenderableType:
    """Return one line per group, the group with the most commits first, then hints on what the log can't show."""
    made = table("group", **{title.replace(" ", "_"): ">" for title in _TITLES})
    for each in found.groups[:_MOST_ROWS]:
        made.add_row(cell(each.group), *_figures(each))
    rest = found.found - min(len(found.groups), _MOST_ROWS)
    more = [Text(f"… and {counted(rest, 'group')} more", style="dim")] if rest else []
    return Group(made, *more, *(Text(hint, style="yellow") for hint in _hints(found)))


def document(found: History) -> dict[str, Any]:
    """Return the history as JSON values."""
    return {
        "schema": "migrate-groups/history",
        "schema_version": SCHEMA_VERSION,
        "found": found.found,
        "first": moment(found.first),
        "last": moment(found.last),
        "groups": [values(each) for each in found.groups],
        "timeline": [values(each) for each in found.timeline],
        "evidence": [values(each) for each in found.evidence],
    }


def page(found: History) -> str:
    """Return the history as one HTML file without external parts: a lag curve for each group, then for each topic."""
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
        "A commit does not say which member made it: clients, in the table, is who was there. "
        "A deletion may be an expiry."
    ]
    log = sum(each.end_offset - each.start_offset for each in found.evidence)
    if missing := sum(each.missing for each in found.evidence):
        hints.append(
            f"Compaction has taken {missing:,} of the log's {log:,} offsets (gone: in the group's part of it). Only "
            "commits that a later one replaced are taken, so that lag before is at most what is shown, and counts are "
            "at least so many. A log that is kept with --log, and added to before Kafka compacts, loses none."
        )
    if held := sum(each.held_back for each in found.evidence):
        hints.append(f"{counted(held, 'offset')} at the end of the log are held back by open transactions.")
    if malformed := sum(each.malformed for each in found.evidence):
        hints.append(f"{counted(malformed, 'record')} can't be decoded, and are left out.")
    return hints


def _minute(value: datetime | None) -> str:
    return "-" if value is None else f"{value:%Y-%m-%d %H:%M}"
