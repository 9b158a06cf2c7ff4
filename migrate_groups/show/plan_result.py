"""The results of planning offset writes, and of writing them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from migrate_groups.migration.guard import watched
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.change import Action, Change, Outcome
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.show import result as shown
from migrate_groups.show.outage import outage_in_words
from migrate_groups.show.result import COUNT, NAME, OFFSET, TEXT, WORD, Column, Groups, Line, Result, Table, Tone
from migrate_groups.text import counted, some

# More rows than this are hard to read on a terminal; --plan-out saves a larger plan whole.
_MOST_ROWS = 50
_MEANING = {
    Verdict.NOT_APPLICABLE: "there is nothing to check",
    Verdict.PASS: "every check that applies passes",
    Verdict.WARN: "no check refuses",
    Verdict.NOT_KNOWN: "no check refuses; what could not be read is named below",
    Verdict.PENDING: "no check refuses; the pending checks must pass at the write",
    Verdict.REFUSE: "refused: nothing can be written",
}


class _HandOver(NamedTuple):
    """What a target group gets from a source group; None: from no group. counts: the number of changes by action."""

    source: str | None
    target: str
    topics: set[str]
    counts: Counter[Action]


_PARTITION: list[Column[Change]] = [
    Column("group", NAME, lambda change: change.group),
    Column("topic", NAME, lambda change: change.topic),
    Column("partition", OFFSET, lambda change: change.partition),
]
_CHANGED: list[Column[Change]] = [
    *_PARTITION,
    Column("before", OFFSET, lambda change: change.before and change.before.offset),
    Column("after", OFFSET, lambda change: "unknown" if _is_unknown(change) else change.after and change.after.offset),
    Column("change", WORD, lambda change: _action(change)),
]
_FAILED: list[Column[Change]] = [
    *_PARTITION,
    Column("outcome", WORD, lambda change: change.outcome),
    Column("reason", TEXT, lambda change: change.error),
]
_CHECKED: list[Column[Check]] = [
    Column("verdict", WORD, lambda check: check.verdict, tone=lambda check: check.verdict),
    Column("check", WORD, lambda check: check.name),
    Column("reason", TEXT, lambda check: check.reason),
]


def plan(plan: Plan, notes: Iterable[str] = (), plan_file: str | None = None, command: str = "") -> Result:
    """Return a plan of offset writes: the partitions with their changes, and the checks.

    notes: sentences above the partitions, such as those of `planned_stop`. plan_file: the file with the
    whole plan; None if the plan was not saved. command: what to type next.
    """
    places = {"Cluster": plan.cluster_id}
    if plan.translation is not None:
        places = {"From cluster": plan.translation.cluster_id, "to cluster": plan.cluster_id}
    return Result(
        title=f"Consumer groups: {_tally(plan.changes)}",
        verdict=shown.Verdict(plan.verdict, _MEANING[plan.verdict], plan.verdict is not Verdict.REFUSE),
        places=places,
        parts=[
            *(Line(note, Tone.NOTE) for note in notes),
            changed_partitions([plan]),
            _checks(plan.checks),
        ],
        details=[_hand_overs(plan)],
        everything=(plan_file, "has every partition")
        if plan_file
        else ("--plan-out plan.json", "saves every partition"),
        command="" if plan.verdict is Verdict.REFUSE else command,
        ids={"intent": plan.intent, "content": plan.content},
    )


def changed_partitions(plans: Sequence[Plan]) -> Table[Change]:
    """Return a table of the changes of committed offsets, which a comment shows folded, one group after the other."""
    origins = {place: text for plan in plans for place, text in _origins(plan).items()}
    origin: Column[Change] = Column("from", TEXT, lambda change: origins.get((change.group, change.topic_partition)))
    return Table(
        columns=[*_CHANGED, *([origin] if origins else [])],
        rows=[change for plan in plans for change in plan.changes],
        thing="partition",
        most=_MOST_ROWS,
        elsewhere=": pass --plan-out to save all",
        groups=Groups(_tally),
    )


def execution(execution: Execution) -> Result:
    """Return the result of a write: the number of partitions by outcome, the failed ones, and remarks.

    It also says how often the groups that must no longer consume were read in the guard, and the measured outage.
    """
    counts = execution.count()
    summary = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in Outcome if counts[outcome])
    parts: list[Table[Any] | Line] = [
        Line(f"{counted(len(execution.changes), 'partition')}: {summary or 'nothing to do'}"),
    ]
    if execution.failed:
        parts.append(Table(columns=_FAILED, rows=execution.failed, thing="partition", most=_MOST_ROWS))
    if execution.guard_readings and execution.longest_gap is not None:
        gap = math.ceil(execution.longest_gap * 10) / 10
        how = f"read {counted(execution.guard_readings, 'time')}, at most {gap:g} s apart"
        parts.append(Line(f"watched after the write: {some(sorted(watched(execution)))} ({how})"))
    if outage := outage_in_words(execution):
        parts.append(Line(outage))
    if execution.by.operator:
        parts.append(Line(f"run by {execution.by}"))
    remarks = (*execution.moved, *execution.not_watched, *execution.added, *execution.remarks)
    return Result(parts=[*parts, *(Line(remark, Tone.REMARK) for remark in remarks)])


def _checks(checks: Sequence[Check]) -> Table[Check]:
    severity = list(Verdict).index
    worst_first = sorted(checks, key=lambda check: severity(check.verdict), reverse=True)
    counts = Counter(check.verdict for check in checks)
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    return Table(
        columns=_CHECKED,
        rows=checks,
        thing="check",
        folded=f"{counted(len(checks), 'check')}: {verdicts}",
        pressing=[each for each in worst_first if each.verdict not in (Verdict.PASS, Verdict.NOT_APPLICABLE)],
    )


def _hand_overs(plan: Plan) -> Table[_HandOver]:
    elsewhere = plan.translation.group if plan.translation else None
    topics: dict[tuple[str | None, str], set[str]] = defaultdict(set)
    counts: dict[tuple[str | None, str], Counter[Action]] = defaultdict(Counter)
    for change in plan.changes:
        pair = change.source_group or elsewhere, change.group
        topics[pair].add(change.topic)
        counts[pair][change.action] += 1
    rows = [_HandOver(*pair, of_pair, counts[pair]) for pair, of_pair in topics.items()]
    actions = [each for each in Action if each is not Action.NOT_MIRRORED or any(row.counts[each] for row in rows)]
    columns: list[Column[_HandOver]] = [
        Column("from", NAME._replace(unknown="(set)"), lambda row: row.source),
        Column("to", NAME, lambda row: row.target),
        Column("topics", COUNT, lambda row: len(row.topics)),
        *(Column(action, COUNT, _count_of(action)) for action in actions),
    ]
    return Table(columns=columns, rows=rows, thing="hand-over")


def _count_of(action: Action) -> Callable[[_HandOver], int]:
    return lambda row: row.counts[action]


def _is_unknown(change: Change) -> bool:
    """Return whether a mirror has not delivered the record at the offset after the change yet."""
    return change.action is Action.NOT_MIRRORED


def _action(change: Change) -> str:
    """Return what a change does, such as ``create``, ``unchanged`` or ``move +1,200``."""
    if change.action is Action.MOVE and change.before and change.after:
        by = change.after.offset - change.before.offset
        other = "leader epoch" if change.after.leader_epoch != change.before.leader_epoch else "metadata"
        return f"move {by:+,}" if by else other
    return change.action


def _tally(changes: Iterable[Change]) -> str:
    """Return the number of changes by action as text, such as ``9 partitions (6 create, 3 unchanged)``."""
    counts = Counter(change.action for change in changes)
    actions = ", ".join(f"{counts[action]:,} {action}" for action in Action if counts[action])
    return f"{counted(counts.total(), 'partition')} ({actions or 'nothing to do'})"


def _origins(plan: Plan) -> dict[tuple[str, TopicPartition], str]:
    """Return the source partition and offset of each target partition as text, such as ``orders-0 at 500``.

    The result is by target group and partition. If the mirror is behind in the partition, the text says by how many
    records. Empty if the groups are on one cluster.
    """
    partitions = plan.translation.partitions if plan.translation else ()
    texts = {each.copy: f"{each.source} at {each.offset}" + _lag(each) for each in partitions if each.copy is not None}
    return {
        (change.group, change.topic_partition): texts[change.topic_partition]
        for change in (plan.changes if texts else ())
        if change.topic_partition in texts
    }


def _lag(each: TranslatedOffset) -> str:
    return f", mirror {counted(each.behind.records, 'record')} behind" if each.behind and each.behind.records else ""
