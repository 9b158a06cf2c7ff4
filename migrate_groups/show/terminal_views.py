"""Terminal views: the topics of a split, the lag of partitions, a plan with its checks, and the result of a write."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.migration.guard import watched
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.show import changes as in_words
from migrate_groups.show import planned_stop
from migrate_groups.show.tables import Table, cell
from migrate_groups.show.tables import table as new_table
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.split import Coverage
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, one_line, some

_STYLES = {
    Verdict.NOT_APPLICABLE: "dim",
    Verdict.PASS: "green",
    Verdict.WARN: "yellow",
    Verdict.NOT_KNOWN: "magenta",
    Verdict.PENDING: "cyan",
    Verdict.REFUSE: "bold red",
}
# More rows than this are hard to read on a terminal; --plan-out saves a larger plan whole.
_MOST_ROWS = 50


def coverage(result: Coverage) -> Table:
    """Return a table with one line per topic pattern of a split: its target group and the topics that it matches.

    Instead of a target group, ``(stays)`` means that the topics stay with the source group.
    """
    table = new_table("group", "pattern", "topics")
    for group, pattern, topics in result.expansions:
        table.add_row(cell(group) if group else "(stays)", cell(str(pattern)), ", ".join(topics))
    return table


def lag_by_partition(rows: Sequence[Row]) -> Table:
    """Return a table with one line per partition: committed offset, log start offset, log end offset and lag.

    Values that are not known are ``-``. A column for the time lag is added if any time lag is known.
    """
    timed = any(row.time_lag is not None for row in rows)
    times = {"time_lag": ">"} if timed else {}
    table = new_table("topic", partition=">", committed=">", log_start=">", log_end=">", lag=">", **times)
    for row in rows:
        numbers = (row.partition, row.offset, row.log_start_offset, row.log_end_offset, row.lag)
        age = ["-" if row.time_lag is None else span_in_words(row.time_lag)] if timed else []
        table.add_row(row.topic, *("-" if number is None else f"{number}" for number in numbers), *age)
    return table


def plan(plan: Plan, stop: PlannedStop | None = None) -> RenderableType:
    """Return a plan of offset writes as text: the first 50 partitions with their changes, and the checks.

    stop: which members of the source group must stop; None leaves this part out.
    """
    notes = [] if stop is None else [*planned_stop.who(stop), planned_stop.how_long(stop)]
    origins = in_words.origins(plan)
    table = new_table(
        "group", "topic", partition=">", before=">", after=">", change="<", **({"from": "<"} if origins else {})
    )
    for change in plan.changes[:_MOST_ROWS]:
        origin = [origins.get(change.topic_partition, "")] if origins else []
        table.add_row(cell(change.group), change.topic, str(change.partition), *in_words.cells(change), *origin)
    rest = len(plan.changes) - _MOST_ROWS
    more = (
        [Text(f"… and {counted(rest, 'more partition')}: pass --plan-out to save all", style="dim")] if rest > 0 else []
    )
    return Group(*(Text(one_line(note), style="bold") for note in notes), table, *more, checks(plan))


def checks(plan: Plan) -> Table:
    """Return a table with one line per check of a plan: verdict, name and reason."""
    table = new_table("verdict", "check", "reason")
    for check in plan.checks:
        table.add_row(Text(check.verdict, style=_STYLES[check.verdict]), check.name, cell(check.reason))
    return table


def execution(execution: Execution) -> RenderableType:
    """Return the result of a write: the number of partitions by outcome, the first 50 failed ones, and remarks.

    It also says how often the groups that must no longer consume were read in the guard.
    """
    counts = execution.count()
    summary = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in Outcome if counts[outcome])
    lines: list[RenderableType] = [
        Text(f"{counted(len(execution.changes), 'partition')}: {summary or 'nothing to do'}")
    ]
    if execution.failed:
        table = new_table("group", "topic", partition=">", outcome="<", reason="<")
        for change in execution.failed[:_MOST_ROWS]:
            table.add_row(cell(change.group), change.topic, str(change.partition), change.outcome, cell(change.error))
        lines.append(table)
    if execution.guard_readings and execution.longest_gap is not None:
        gap = math.ceil(execution.longest_gap * 10) / 10
        how = f"read {counted(execution.guard_readings, 'time')}, at most {gap:g} s apart"
        lines.append(Text(one_line(f"watched after the write: {some(sorted(watched(execution)))} ({how})")))
    told = (*execution.moved, *execution.not_watched, *execution.added, *execution.remarks)
    lines.extend(Text(one_line(remark), style="yellow") for remark in told)
    return Group(*lines)
