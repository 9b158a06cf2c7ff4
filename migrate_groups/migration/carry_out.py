"""The steps of every command that writes: ask the user, write with a receipt, watch the groups that must be stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from migrate_groups.clock import Clock
from migrate_groups.errors import PartlyApplied, Refused, UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import guard, watched
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.prepare import refuse_forbidden
from migrate_groups.migration.started import started_since
from migrate_groups.migration.write import write
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.intent import resumed_differently
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.snapshot import Row
from migrate_groups.text import some


def refuse_other_run(file: ReceiptFile, plan: Plan) -> None:
    """Raise `UsageError` if the receipt does not fit the plan.

    That is: the receipt is of another migration, or a committed offset is no longer the one that this run confirmed,
    so that the plan would overwrite a later commit.
    """
    differences = resumed_differently(file.receipt, plan)
    if differences:
        raise UsageError(
            f"{file.path} is the receipt of another migration ({some(differences)}): undo that with rollback, "
            "or name another receipt or run directory"
        )
    since = file.receipt.moved_since(plan)
    if since:
        raise UsageError(
            f"{some(since)}: the committed offset is not the one that {file.path} confirmed, so records may have "
            "been processed since; to write there anyway, name another receipt or run directory"
        )


def is_over(reader: GroupReader, file: ReceiptFile, events: Events) -> bool:
    """Return whether the run is over: it handed over, and a target group has started since.

    Raises `PartlyApplied` if a source group also still consumes what it handed over, because records that both groups
    read are processed twice. Raises `Refused` if a target group has no committed offset any more for a partition.
    """
    started = started_since(reader, file.receipt)
    if started is None:
        return False
    handed_over = f"{file.path}: handed over already, and {some(started.groups)} has started"
    if started.moved:
        raise PartlyApplied(
            f"{handed_over}; {some(started.moved, 3)}: stop it, those records are processed twice; nothing was written"
        )
    if started.lost:
        raise Refused(
            f"{handed_over}; no committed offset any more: {some(started.lost)}: nobody can tell how far the group "
            "went; nothing was written"
        )
    events.said(f"{handed_over}; nothing was written")
    return True


def agree(plan: Plan, rows: Callable[[], Iterable[Row]], events: Events, *, provisional: bool = False) -> None:
    """Show the plan and ask the user whether to write it.

    A ``provisional`` plan is made again once the consumers have stopped, so checks that may pass then (pending) do not
    forbid it yet. Raises `Refused` if a check forbids the write, or if the user does not agree.
    """
    events.planned(plan, rows)
    refuse_forbidden(plan.refusals(at_the_write=not provisional))
    if (provisional or plan.to_write()) and not events.agrees(plan, provisional=provisional):
        raise Refused("the answer was no; nothing was written")


def write_plan(
    clients: Clients, plan: Plan, file: ReceiptFile, clock: Clock, events: Events, verb: Verb = Verb.HAND_OVER
) -> Execution:
    """Write a plan, read the offsets back with both clients, and return the execution.

    The receipt is saved before the first request and after each step. With ``second_client`` "none", only the first
    client reads back.
    """

    def record(execution: Execution) -> None:
        file.record(execution)
        events.writing(file.told_by)

    second = None if plan.options.second_client == "none" else clients.second
    execution = write(clients.writer, second, file.receipt.begun(verb, plan, clock.now()), record)
    if execution.is_whole:
        events.read_back(verb)
    return execution


def watch_afterwards(
    reader: GroupReader, execution: Execution, file: ReceiptFile, clock: Clock, events: Events
) -> Execution:
    """Watch the groups that must no longer consume for ``guard`` seconds, an option, and return the execution.

    If one of them still consumes, ``moved`` of the execution and of the receipt says so. If a partition is not
    confirmed, or such a group was already seen to consume, nothing is watched, because the user has to act first.
    """
    groups, seconds = sorted(watched(execution)), execution.options.guard
    if not (execution.is_whole and seconds and groups):
        return execution
    events.said(f"watching {some(groups)} for {seconds:g} s: what it commits from now on is processed twice")
    execution = guard(reader, execution, seconds, clock)
    file.record(execution)
    return execution
