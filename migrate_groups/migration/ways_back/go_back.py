"""Carry out a rollback, hand-back or delete-offsets from the receipt of a run: plan, ask the user, re-plan, write."""

from __future__ import annotations

from migrate_groups.clock import Clock
from migrate_groups.errors import PartlyApplied
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.carry_out import agree, watch_afterwards, write_plan
from migrate_groups.migration.events import Events
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.prepare import make_plan, refuse_forbidden
from migrate_groups.migration.stop import Wait, prove_stopped
from migrate_groups.migration.ways_back.delete_offsets import delete_source_offsets
from migrate_groups.migration.ways_back.hand_back import hand_back
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import some

_ALREADY = {
    Verb.ROLLBACK: "is rolled back already",
    Verb.HAND_BACK: "is handed back already",
    Verb.DELETE_OFFSETS: "has no offsets left to delete",
}


def is_done(file: ReceiptFile, verb: Verb, events: Events) -> bool:
    """Return whether the receipt shows that this verb (rollback, hand-back, delete-offsets) is completely done.

    Raises `PartlyApplied` if the last execution of this verb saw members or commits of a group that must no longer
    consume.
    """
    if not file.receipt.is_done(verb):
        return False
    moved = next((execution.moved for execution in reversed(file.receipt.executions) if execution.verb is verb), ())
    if moved:
        raise PartlyApplied(
            f"{file.path} {_ALREADY[verb]}, but {moved[0]}: what it processed from there on is processed twice; "
            "nothing was written"
        )
    events.said(f"{file.path} {_ALREADY[verb]}; nothing was written")
    return True


def plan_way_back(reader: GroupReader, verb: Verb, file: ReceiptFile, clock: Clock) -> Plan:
    """Return the plan of a rollback, hand-back or delete-offsets from the cluster's current state. Reads only.

    The plan of a hand-back is provisional: it is made again once the target groups and the source group have stopped.
    """
    plan = _plan(reader, verb, file, clock)
    return plan.provisional(("targets", "not moved")) if verb is Verb.HAND_BACK else plan


def go_back(
    clients: Clients, verb: Verb, file: ReceiptFile, clock: Clock, events: Events, *, wait: float = 0.0
) -> Execution | None:
    """Carry out a rollback, hand-back or delete-offsets, and return its execution; None if it is done already.

    A hand-back waits up to ``wait`` seconds until the target groups and the source group have stopped. The other two
    check twice, ``settle`` seconds apart, that nothing was committed, because a consumer without membership shows only
    by its commits. Raises `Refused` if the receipt or a check forbids it, or if the user does not agree; nothing is
    written then.
    """
    if is_done(file, verb, events):
        return None
    reader = clients.writer
    shown = plan_way_back(reader, verb, file, clock)
    agree(shown, lambda: (), events, provisional=verb is Verb.HAND_BACK)
    if verb is Verb.HAND_BACK:
        _wait_for_both(reader, shown, clock, events, wait)
    else:
        _settle(shown, clock, events)
    plan = _plan(reader, verb, file, clock)
    refuse_forbidden(plan.refusals(at_the_write=True))
    execution = write_plan(clients, plan, file, clock, events, verb)
    return watch_afterwards(reader, execution, file, clock, events)


def _plan(reader: GroupReader, verb: Verb, file: ReceiptFile, clock: Clock) -> Plan:
    if verb is Verb.ROLLBACK:
        return plan_rollback(reader, file.receipt)
    if verb is Verb.HAND_BACK:
        return make_plan(reader, *hand_back(reader, file.receipt, clock))
    return delete_source_offsets(reader, file.receipt)


def _settle(shown: Plan, clock: Clock, events: Events) -> None:
    if shown.options.settle:
        events.said(f"looking again in {shown.options.settle:g} s: nothing may be committed meanwhile")
        clock.sleep(shown.options.settle)


def _wait_for_both(reader: GroupReader, shown: Plan, clock: Clock, events: Events, wait: float) -> None:
    new = sorted({change.source_group for change in shown.changes if change.source_group})
    described = reader.describe_groups(sorted({change.group for change in shown.changes}))
    old = [group for group, each in described.items() if each.exists]
    settle = shown.options.settle
    events.said(
        f"waiting up to {wait:g} s for {some(new)} to stop, and {some(old) or 'nobody else'}: stop their applications "
        f"now; once they have, this takes {settle:g} s to settle, and reading and writing"
    )
    prove_stopped(reader, [*new, *old], clock, Wait(wait=wait, settle=settle, progress=events.still_running))
