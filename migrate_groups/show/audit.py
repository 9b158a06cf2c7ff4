"""The result of an audit of the log of ``__consumer_offsets``, on a terminal and as JSON values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.show.tables import cell, table
from migrate_groups.show.values import values
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.audit_job import Audit

SCHEMA_VERSION = 1
# More rows than this are hard to read on a terminal; the JSON document has more.
_MOST_ROWS = 50


def terminal(found: Audit) -> RenderableType:
    """Return the audit as tables: verdicts by group and topic, then the partitions and commits behind them.

    Doubtful partitions have a problem or are undetermined. Late commits are commits of the source group after the
    hand-over. The evidence counts the records of each partition of ``__consumer_offsets`` that was read.
    """
    parts: list[RenderableType] = [_summary(found)]
    parts += _section("doubtful", _doubtful(found), found.doubtful)
    parts += _section("late commits of the old group", _late(found), found.late_commits)
    parts += _section("deleted or expired", _deletions(found), found.deletions)
    parts += [Text("evidence", style="bold"), _evidence(found)]
    if found.malformed:
        first = found.malformed[0]
        place = f"partition {first.log_partition}, offset {first.log_offset}: {first.problem}"
        parts.append(Text(f"{counted(len(found.malformed), 'record')} can't be decoded, the first is {place}"))
    return Group(*parts)


def document(found: Audit) -> dict[str, Any]:
    """Return the result of an audit as JSON values."""
    tables = ("summary", "doubtful", "late_commits", "deletions", "evidence", "malformed")
    return {
        "schema": "migrate-groups/audit",
        "schema_version": SCHEMA_VERSION,
        "problems": found.problems,
        "undetermined": found.undetermined,
        "old": found.old,
        "new": found.new,
        "rewinds": found.rewinds,
        **{name: [values(row) for row in getattr(found, name)] for name in tables},
    }


def _summary(found: Audit) -> RenderableType:
    made = table("group", "topic", "from", "old group", "new group", rewinds=">")
    for each in found.summary[:_MOST_ROWS]:
        source = cell(each.source_group or "-")
        made.add_row(cell(each.group), each.topic, source, _counts(each.old), _counts(each.new), f"{each.rewinds:,}")
    made.add_row("total", "", "", _counts(found.old), _counts(found.new), f"{found.rewinds:,}", style="bold")
    return made


def _counts(verdicts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.items() if number) or "-"


def _section(title: str, shown: RenderableType, rows: Sequence[object]) -> list[RenderableType]:
    if not rows:
        return []
    rest = len(rows) - _MOST_ROWS
    more = [Text(f"… and {rest:,} more", style="dim")] if rest > 0 else []
    return [Text(title, style="bold"), shown, *more]


def _doubtful(found: Audit) -> RenderableType:
    made = table(
        "group", "partition", "old group", "new group", handed_over=">", first_own=">", now=">", rewinds=">", reason="<"
    )
    for each in found.doubtful[:_MOST_ROWS]:
        numbers = _numbers(each.written, each.first_own, each.committed, each.rewinds)
        place = f"{each.topic}-{each.partition}"
        made.add_row(cell(each.group), place, each.old or "-", each.new or "-", *numbers, cell(each.reason or ""))
    return made


def _late(found: Audit) -> RenderableType:
    made = table("group", "partition", "at", offset=">", beyond=">")
    for each in found.late_commits[:_MOST_ROWS]:
        at = f"{each.log_time:%Y-%m-%d %H:%M:%S}"
        made.add_row(cell(each.group), f"{each.topic}-{each.partition}", at, *_numbers(each.offset, each.beyond))
    return made


def _deletions(found: Audit) -> RenderableType:
    made = table("group", "partition", "at")
    for each in found.deletions[:_MOST_ROWS]:
        place = "the whole group" if each.topic is None else f"{each.topic}-{each.partition}"
        made.add_row(cell(each.group), place, f"{each.log_time:%Y-%m-%d %H:%M:%S}")
    return made


def _evidence(found: Audit) -> RenderableType:
    columns = ("from", "to", "records", "control", "aborted", "missing", "malformed", "held_back")
    made = table("log partition", **dict.fromkeys(columns, ">"))
    for each in found.evidence[:_MOST_ROWS]:
        made.add_row(str(each.log_partition), *_numbers(*each[1:-1]))
    return made


def _numbers(*numbers: int | None) -> Iterable[str]:
    return ["-" if number is None else f"{number:,}" for number in numbers]
