"""The steps of every command that writes: ask the user, write with a receipt, watch groups that must not consume."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from migrate_groups.clock import Clock
from migrate_groups.errors import PartlyApplied, Refused, UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import guard, watched
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.prepare import refuse_forbidden
from migrate_groups.migration.started import started_since
from migrate_groups.migration.write import write
from migrate_groups.planning.execution import Execution, Outcome
from migrate_groups.planning.intent import resumed_differently
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, named, some


def refuse_other_run(file: ReceiptFile, plan: Plan) -> None:
    """Raise `UsageError` if the receipt is of another migration, or if target groups have committed since the run.

    A group has committed if it no longer has the committed offset that the run confirmed.
    """
    _refuse_differences(file, resumed_differently(file.receipt, plan))
    since = file.receipt.moved_since(plan)
    if since:
        raise UsageError(
            f"{some(since)}: the committed offset is no longer the one that {file.path} confirmed, so the group may "
            "have processed records since; to overwrite it anyway, name another receipt or run directory"
        )


def _refuse_differences(file: ReceiptFile, differences: Sequence[str]) -> None:
    if differences:
        raise UsageError(
            f"{file.path} is the receipt of another migration ({some(differences)}): name another receipt or run "
            "directory; rollback undoes the other migration, as long as its groups have not started"
        )


def is_over(
    reader: GroupReader,
    file: ReceiptFile,
    events: Events,
    elsewhere: GroupReader | None = None,
    differences: Callable[[], Sequence[str]] = tuple,
) -> bool:
    """Return whether the run has handed over and a target group has started since. If so, tell the user.

    file: the receipt of the run. elsewhere: reads the source groups, if they are on another cluster. differences:
    called if a target group has started; returns how that hand-over differs from the one that is asked for now.

    If a target group has started, raises `UsageError` if there are ``differences``; `PartlyApplied` if a source group
    still consumes what it handed over, or can't be read, because records that both groups read are processed twice;
    `Refused` if a target group has lost the committed offset of a partition.
    """
    started = started_since(reader, file.receipt, elsewhere)
    if started is None:
        return False
    _refuse_differences(file, differences())
    handed_over = f"{file.path}: handed over already, and started since: {named('group', started.groups)}"
    if started.moved:
        raise PartlyApplied(
            f"{handed_over}; {some(started.moved, 3)}: stop these consumers, because what they read is processed "
            "twice; nothing was written"
        )
    if started.not_watched:
        raise PartlyApplied(
            f"{handed_over}; {some(started.not_watched, 3)}: run the same command again, which looks at the group; "
            "nothing was written"
        )
    if started.lost:
        raise Refused(
            f"{handed_over}; no committed offset any more for {some(started.lost)}, so it is not known how far the "
            "group read: set the right offset with rewind and apply; nothing was written"
        )
    events.said(f"{handed_over}; nothing was written")
    return True


def agree(plan: Plan, rows: Callable[[], Iterable[Row]], events: Events, *, provisional: bool = False) -> None:
    """Show the plan and ask the user whether to write it.

    rows: returns the snapshot rows from which the plan was made. provisional: the plan is made again once the consumers
    have stopped, so pending checks, which may pass then, do not forbid the write yet. The user is not asked if the plan
    writes nothing, unless the plan is provisional. Raises `Refused` if a check forbids the write, or if the user does
    not agree.
    """
    events.planned(plan, rows)
    refuse_forbidden(plan.refusals(at_the_write=not provisional))
    if (provisional or plan.to_write()) and not events.agrees(plan, provisional=provisional):
        raise Refused("the answer was no; nothing was written")


def settle(shown: Plan, clock: Clock, events: Events) -> None:
    """Wait for as many seconds as the option ``settle`` of the plan says, and tell the user why.

    The caller makes the plan again after the wait, and so detects a consumer that has committed meanwhile.
    """
    if shown.options.settle:
        events.said(f"waiting {shown.options.settle:g} s to see that no consumer commits")
        clock.sleep(shown.options.settle)


def write_plan(
    clients: Clients, plan: Plan, file: ReceiptFile, clock: Clock, events: Events, verb: Verb = Verb.HAND_OVER
) -> Execution:
    """Write a plan, read the offsets back with both clients, and return the execution with the outcomes.

    The receipt is saved before the first request and after each step. With the option ``second_client`` "none", only
    the first client (kafka-python) reads back. Raises `InvalidInput` if the receipt can't be saved before the first
    request. A failure after that raises no error: it is in the outcomes of the partitions, or in ``file.failure``.
    """
    execution = file.receipt.begun(verb, plan, clock.now())

    def record(latest: Execution) -> None:
        nonlocal execution
        execution = latest
        file.record(latest)
        events.writing(file.told_by)

    def sent() -> tuple[int, int]:
        return len(execution.entries) - execution.count()[Outcome.NOT_ATTEMPTED], len(execution.entries)

    second = None if plan.options.second_client == "none" else clients.second
    with events.working(f"writing {counted(len(plan.changes), 'offset')} and reading them back", sent):
        execution = write(clients.writer, second, execution, record, clients.elsewhere)
    if execution.is_whole:
        events.read_back(verb, file.receipt.source_groups)
    return execution


def watch_afterwards(
    reader: GroupReader,
    execution: Execution,
    file: ReceiptFile,
    clock: Clock,
    events: Events,
    elsewhere: GroupReader | None = None,
) -> Execution:
    """Watch the groups that must no longer consume, after a write, and return the execution.

    These are the source groups after a hand-over or delete-offsets, and the target groups after a rollback or a
    hand-back. The option ``guard`` of the execution is the number of seconds. If a group consumes, a message that names
    it is added to ``moved`` of the returned execution. The receipt is saved with this execution. elsewhere: reads the
    source groups of a hand-over, if they are on another cluster.

    Nothing is watched if an offset was not read back as planned, or if one of these groups was already seen to consume
    or could not be read, because the user has to act first. The execution is then returned as it is.
    """
    groups, seconds = sorted(watched(execution)), execution.options.guard
    if not (execution.is_whole and seconds and groups):
        return execution
    events.said(f"watching {some(groups)} for {seconds:g} s: records consumed there from now on are processed twice")
    execution = guard(reader, execution, seconds, clock, elsewhere)
    file.record(execution)
    return execution
