"""What a run has done, what the brokers say now, and what each command may do next. Reads only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from migrate_groups.clock import Clock
from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, PartlyApplied
from migrate_groups.files.read import is_file
from migrate_groups.files.runs.receipt_file import ReceiptFile, run_of_return
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.migration.clusters import Clusters
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import consumed_since
from migrate_groups.migration.journal import refuse_taken
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.groups import describe
from migrate_groups.migration.reading.requests import committed_by_order, describe_groups
from migrate_groups.migration.reading.status import GroupStatus
from migrate_groups.migration.receipt_refusals import (
    another_cluster,
    check_clusters_named,
    refuse_by_record,
    refuse_moved,
)
from migrate_groups.migration.started import say_over, started_since
from migrate_groups.migration.ways_back.go_back import left_to_do
from migrate_groups.migration.write_result import result_of
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.change import share_groups
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import UNFINISHED, State, Step, Verb
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, some

_NOTHING = "; nothing was written"


class Answer(StrEnum):
    """Whether a command may run now.

    - allowed: the receipt and the brokers allow it now. It checks everything again before it writes.
    - refused: the command would end with an error.
    - done: the command would write nothing, because nothing is left to do.
    - not known: the cluster did not answer, or refused a permission.
    """

    ALLOWED = "allowed"
    REFUSED = "refused"
    DONE = "done"
    NOT_KNOWN = "not known"


_NO_START = (Answer.REFUSED, Answer.NOT_KNOWN)
"""Of the last write's command, run again: answers after which no group may be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What a command may do with the run now. reason: why, or what it would do."""

    verb: Verb
    answer: Answer
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLag:
    """The lag of a group's topic. before: when the old group had stopped; None if not known. now: None if not known."""

    group: str
    topic: str
    before: int | None
    now: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """What a run has done, what the brokers say now, and what each command may do next.

    groups: the source groups that exist, then the target groups. missing: those that do not exist. lags: one for each
    target group and topic of the last hand-over. added: the partitions that were added to the topics since, and that no
    target group has been given. another_cluster: why this is not the cluster of the run; empty if it is. next: what to
    do, as a command or a sentence.
    """

    receipt: Receipt
    commands: Sequence[Next]
    groups: Sequence[GroupStatus]
    missing: Sequence[str]
    lags: Sequence[TopicLag] = ()
    added: Sequence[TopicPartition] = ()
    another_cluster: str = ""
    next: str = ""

    def of(self, verb: Verb) -> Next:
        """Return what this command may do now."""
        return next(each for each in self.commands if each.verb is verb)


def _next_step(
    found: RunStatus, file: ReceiptFile, commands: Mapping[Verb, str], clusters: Clusters[GroupReader]
) -> str:
    states = {partition.state for partition in found.receipt.partition_states.values()}
    if first := found.another_cluster or _unfinished_step(found, commands, states):
        return first
    if states <= {State.NEW}:
        return commands[Verb.HAND_OVER]
    if amiss := _amiss(found, file, commands, clusters):
        return amiss
    hand_over = found.of(Verb.HAND_OVER)
    if states & {State.HANDED_OVER, State.UNDONE, State.HANDED_BACK} and hand_over.answer in _NO_START:
        return hand_over.reason
    if State.HANDED_OVER in states:
        return _after_hand_over(found, commands)
    if states & {State.UNDONE, State.HANDED_BACK}:
        return f"the old applications may run, not the new ones; to hand over again: {commands[Verb.HAND_OVER]}"
    if State.DELETED in states:
        return f"nothing; to set the deleted offsets again: {commands[Verb.ROLLBACK]}"
    if State.CLEANED in states:
        return f"nothing; to undo the run: {commands[Verb.HAND_BACK]}"
    return "nothing"


def _after_hand_over(found: RunStatus, commands: Mapping[Verb, str]) -> str:
    is_copy = found.receipt.is_copy
    if found.of(Verb.HAND_OVER).answer is Answer.ALLOWED:
        undo = _or_undo(found, commands, "to undo before they commit")
        if found.added:
            again = f"run {commands[Verb.HAND_OVER]} again, which sets where they start in {some(found.added)}"
            return f"before the new groups start, {again}, added since{undo}"
        return f"start the new groups{'' if is_copy else ', not the old one'}{undo}"
    if is_copy:
        return "nothing: the new groups have started with a copy (--copy), and the old one may go on"
    return f"the new groups have started, and the old one must stay stopped: {_proof(found, commands)}"


def _proof(found: RunStatus, commands: Mapping[Verb, str]) -> str:
    """Return how to prove a hand-over whose target groups have started, or after a fail-over how to return."""
    if (last := found.receipt.last_hand_over) is not None and last.is_fail_over:
        return f"once its cluster has returned, {commands[Verb.HAND_BACK]}"
    if share_groups(partition.change for partition in found.receipt.begun_or_done.values()):
        return "audit shows whether it has"
    is_refused = found.of(Verb.DELETE_OFFSETS).answer is Answer.REFUSED
    later = "" if is_refused else f", and a day later {commands[Verb.DELETE_OFFSETS]}"
    return f"prove the run with reconcile{later}"


def _unfinished_step(found: RunStatus, commands: Mapping[Verb, str], states: Collection[State]) -> str:
    """Return what to do if a write has begun and is not known to have finished; otherwise an empty text."""
    unfinished = [verb for state, verb in UNFINISHED.items() if state in states]
    if not unfinished:
        return ""
    undo = "" if Verb.ROLLBACK in unfinished else _or_undo(found, commands)
    return f"start no application, the write is not complete; finish it: {commands[unfinished[0]]}{undo}"


def _amiss(found: RunStatus, file: ReceiptFile, commands: Mapping[Verb, str], clusters: Clusters[GroupReader]) -> str:
    """Return what to do if something went wrong in or after the last write; otherwise an empty text."""
    last = found.receipt.executions[-1]
    try:
        result_of(last, file, again=commands[last.verb]).check()
    except PartlyApplied as error:
        failed = [f"{each.group} {each.topic_partition} ({each.error})" for each in last.failed]
        if not failed and last.moved:
            return _consumed(found, last, commands, clusters)
        if not failed:
            return str(error)
        again = f"fix this, and run {commands[last.verb]} again"
        return f"start no application; not confirmed: {some(failed, 3)}: {again}{_or_undo(found, commands)}"
    return ""


def _consumed(found: RunStatus, last: Execution, commands: Mapping[Verb, str], clusters: Clusters[GroupReader]) -> str:
    """Return what to do if a group consumed after the last write, although it had to stop."""
    again = found.of(last.verb)
    if again.answer in _NO_START:
        return again.reason
    watched = clusters.target if last.verb in (Verb.ROLLBACK, Verb.HAND_BACK) else clusters.source
    signs, is_live, _ = consumed_since(watched, last)
    if last.verb is not Verb.HAND_OVER:
        return f"{signs}: look at its offsets with describe"
    stop = "stop these consumers, start no new group" if is_live else "start no new group"
    return f"{signs}: {stop}, and run {commands[last.verb]} again{_or_undo(found, commands)}"


def _or_undo(found: RunStatus, commands: Mapping[Verb, str], lead: str = "or undo it") -> str:
    is_allowed = found.of(Verb.ROLLBACK).answer is Answer.ALLOWED
    return f"; {lead}: {commands[Verb.ROLLBACK]}" if is_allowed else ""


def run_status(
    clusters: Clusters[GroupReader], file: ReceiptFile, clock: Clock, commands: Mapping[Verb, str]
) -> RunStatus:
    """Return what a run has done, what the brokers say now, and what each command may do next.

    clusters: only the target groups' cluster if that of the source group is lost. file: the receipt of the run.
    commands: by verb, the command line or the call that carries it out, for the text of ``next``.

    Raises `UsageError` if the other cluster is missing or not needed.
    """
    receipt = file.receipt
    last = receipt.last_hand_over
    is_lost = last is not None and last.is_fail_over and clusters.is_one
    if last is not None and not is_lost:
        check_clusters_named(last, is_target_named=not clusters.is_one)
    reader, there = clusters.source, clusters.target
    asks: Mapping[Verb, Callable[[_Said], str]] = {
        Verb.HAND_OVER: lambda said: _hand_over(clusters, file, said),
        Verb.ROLLBACK: lambda said: _way_back(clusters, Verb.ROLLBACK, file, clock, said),
        Verb.HAND_BACK: lambda said: (
            _way_back(clusters, Verb.HAND_BACK, file, clock, said) if clusters.is_one else _move_back(file)
        ),
        Verb.DELETE_OFFSETS: lambda said: _way_back(clusters, Verb.DELETE_OFFSETS, file, clock, said),
    }
    is_there = is_lost and last is not None and reader.cluster_id() == last.cluster_id
    another = "" if is_there else another_cluster(clusters, receipt)
    back = None if another else run_of_return(file.path, receipt)
    returned = f"the group has moved back since: see the status of {back}, with both clusters exchanged" if back else ""
    answers = [
        Next(verb=verb, answer=Answer.REFUSED, reason=another or returned)
        if another or returned
        else _answered(verb, ask)
        for verb, ask in asks.items()
    ]
    target_groups = {group for group, *_ in receipt.partition_states}
    source_groups = frozenset[str]() if is_lost else receipt.source_groups
    sources, targets = _existing(reader, source_groups, clock), _existing(there, target_groups, clock)
    found = RunStatus(
        receipt=receipt,
        commands=answers,
        groups=[*sources, *targets],
        missing=[*_missing(source_groups, sources), *_missing(target_groups, targets)],
        lags=_lags(last, _at_stop(file, last), targets) if last else (),
        added=_added(there, receipt) if last and not another else (),
        another_cluster=another,
    )
    return replace(found, next=returned or _next_step(found, file, commands, clusters))


def _added(reader: GroupReader, receipt: Receipt) -> list[TopicPartition]:
    try:
        topics = reader.describe_topics({topic for _, topic, _ in receipt.partition_states})
    except ClusterUnavailable:  # the answers about the commands say so
        return []
    return sorted({TopicPartition(topic, number) for _, topic, number in receipt.added(topics)})


def _existing(reader: GroupReader, groups: Iterable[str], clock: Clock) -> Sequence[GroupStatus]:
    """Return the status of the groups that exist, sorted by name."""
    existing = [group for group, found in describe_groups(reader, sorted(groups)).items() if found.exists]
    return describe(reader, existing, clock) if existing else ()


def _missing(groups: Iterable[str], found: Iterable[GroupStatus]) -> list[str]:
    return sorted({*groups} - {each.group for each in found})


class _Said(Events):
    """Callbacks that keep the last line that a command would print."""

    line = ""

    def said(self, line: str) -> None:
        self.line = line


def _answered(verb: Verb, ask: Callable[[_Said], str]) -> Next:
    """Return what a command may do. ask: returns what it would do; "" if it would only print a line."""
    said = _Said()
    try:
        allowed = ask(said)
    except ClusterUnavailable as error:
        return Next(verb=verb, answer=Answer.NOT_KNOWN, reason=str(error))
    except MigrateGroupsError as error:
        return Next(verb=verb, answer=Answer.REFUSED, reason=str(error).removesuffix(_NOTHING))
    reason = allowed or said.line.removesuffix(_NOTHING)
    return Next(verb=verb, answer=Answer.ALLOWED if allowed else Answer.DONE, reason=reason)


def _hand_over(clusters: Clusters[GroupReader], file: ReceiptFile, said: _Said) -> str:
    refuse_by_record(file.receipt, Verb.HAND_OVER)
    started = started_since(clusters, file.receipt)
    if started is not None:
        say_over(clusters, started, file, said)
        return ""
    if (resumed := file.receipt.hand_over_to_resume) is not None:
        now = committed_by_order(clusters.target, [change.order for change in resumed.changes])
        refuse_moved(clusters, file, now)
    refuse_taken(clusters, file.receipt, Verb.HAND_OVER)
    steps = {partition.step(Verb.HAND_OVER) for partition in file.receipt.partition_states.values()}
    return "reads back what is in place, and writes the rest" if Step.RESUME in steps else "hands over anew"


def _way_back(clusters: Clusters[GroupReader], verb: Verb, file: ReceiptFile, clock: Clock, said: _Said) -> str:
    plan = left_to_do(clusters, verb, file, clock, said)
    if plan is None:
        return ""
    refuse_forbidden(plan.refusals(at_the_write=False))
    pending = [check.name for check in plan.checks if check.verdict is Verdict.PENDING]
    return _what_it_does(plan) + (f"; pending: {', '.join(pending)}" if pending else "")


def _move_back(file: ReceiptFile) -> str:
    refuse_by_record(file.receipt, Verb.HAND_BACK)
    return "moves the group back to its cluster; its dry run reads the records and shows the offsets"


def _what_it_does(plan: Plan) -> str:
    """Return how many offsets a plan sets and deletes, with the groups."""
    changes = plan.to_write()
    parts = {
        "sets": [each for each in changes if each.after is not None],
        "deletes": [each for each in changes if each.after is None],
    }
    done = [
        f"{what} {counted(len(of_it), 'offset')} of {some({each.group for each in of_it})}"
        for what, of_it in parts.items()
        if of_it
    ]
    return " and ".join(done) or "writes nothing: every offset is in place"


def _at_stop(file: ReceiptFile, hand_over: Execution) -> Iterable[Row]:
    """Return the snapshot of the source group after its stop, with target groups; empty if the run has none."""
    split = RunDir(file.path.parent).split if file.path else None
    if split is None or not is_file(split) or tables.plan_of(split) != hand_over.content:
        return ()
    return tables.load(split).rows()


def _lags(hand_over: Execution, split: Iterable[Row], groups: Iterable[GroupStatus]) -> list[TopicLag]:
    before = _by_topic(split)
    now = _by_topic(row for group in groups for row in group.partitions)
    return [
        TopicLag(group=group, topic=topic, before=before.get((group, topic)), now=now.get((group, topic)))
        for group, topic in sorted({(change.group, change.topic) for change in hand_over.changes})
    ]


def _by_topic(rows: Iterable[Row]) -> dict[tuple[str, str], int | None]:
    """Return the sum of the lags of each group and topic; None if the lag of any partition is not known."""
    lags: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    for row in rows:
        lags[row.group or "", row.topic].append(row.lag)
    return {key: None if None in found else sum(filter(None, found)) for key, found in lags.items()}
