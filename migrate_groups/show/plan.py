"""Terminal views: the topics of a split, the lag of partitions, a plan with its checks, and the result of a write."""

from __future__ import annotations

import math

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.migration.guard import watched
from migrate_groups.planning.execution import Execution, Outcome
from migrate_groups.planning.plan import Plan, Verdict
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.show import changes as in_words
from migrate_groups.show import planned_stop
from migrate_groups.show.tables import Table, cell
from migrate_groups.show.tables import table as new_table
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
        Text(f"{counted(len(execution.entries), 'partition')}: {summary or 'nothing to do'}")
    ]
    if execution.failed:
        table = new_table("group", "topic", partition=">", outcome="<", reason="<")
        for entry in execution.failed[:_MOST_ROWS]:
            change = entry.change
            table.add_row(cell(change.group), change.topic, str(change.partition), entry.outcome, cell(entry.error))
        lines.append(table)
    if execution.guard_readings and execution.longest_gap is not None:
        gap = math.ceil(execution.longest_gap * 10) / 10
        how = f"read {counted(execution.guard_readings, 'time')}, at most {gap:g} s apart"
        lines.append(Text(one_line(f"watched after the write: {some(sorted(watched(execution)))} ({how})")))
    told = (*execution.moved, *execution.not_watched, *execution.added, *execution.remarks)
    lines.extend(Text(one_line(remark), style="yellow") for remark in told)
    return Group(*lines)
