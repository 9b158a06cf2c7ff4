"""The result of a reconciliation on a terminal, and as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.show import verdicts as in_words
from migrate_groups.show.tables import cell, table
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import GroupTopic, Reconciliation

SCHEMA_VERSION = 1
# More rows than this are hard to read on a terminal; the files have every row.
_MOST_ROWS = 50


def terminal(found: Reconciliation) -> RenderableType:
    """Return one line per group and topic, the worst first, then the totals, the worst partitions and the hints."""
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
        lines.append(Text(f"… and {counted(rest, 'topic')} more", style="dim"))
    if found.worst:
        worst = table("group", "partition", "status", before=">", after=">", reason="<")
        for partition in found.worst:
            offsets = (in_words.number(partition.before_offset), in_words.number(partition.after_offset))
            name = f"{partition.topic}-{partition.partition}"
            worst.add_row(cell(partition.group), name, partition.status, *offsets, cell(partition.reason or ""))
        lines.append(worst)
    lines.extend(Text(hint, style="yellow") for hint in found.hints)
    return Group(*lines)


def document(found: Reconciliation) -> dict[str, Any]:
    """Return the reconciliation as JSON values."""
    return {
        "schema": "migrate-groups/reconciliation",
        "schema_version": SCHEMA_VERSION,
        "clean": found.clean,
        "totals": found.totals._asdict(),
        "topics": found.topics,
        "summary": [each._asdict() for each in found.summary],
        "worst": [each._asdict() for each in found.worst],
        "hints": list(found.hints),
        "timeline": [
            each._asdict() | {"taken_at": f"{each.taken_at:%Y-%m-%dT%H:%M:%S.%fZ}"} for each in found.timeline
        ],
        "quarantined": found.quarantined,
    }


def _numbers(each: GroupTopic, *, timed: bool) -> tuple[str, ...]:
    numbers = (each.partitions, each.lag_before, each.lag_after, each.produced, each.consumed)
    times = (each.time_lag_before, each.time_lag_after) if timed else ()
    return (*map(in_words.number, numbers), *map(in_words.span, times))
