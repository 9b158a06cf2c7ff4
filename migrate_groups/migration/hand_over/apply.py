"""Write offsets from a file to groups: plan, check, ask the user, plan again, write, read back."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.clock import Clock
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.carry_out import agree, is_over, refuse_other_run, watch_afterwards, write_plan
from migrate_groups.migration.events import Events
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.prepare import make_again, make_plan, plan_at_the_write
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.started import same_hand_over
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """The input of `apply`.

    rows: the offsets to write, with the group of each. approved: the plan that was reviewed before, if there is one; it
    is made again with its own options.
    """

    rows: Snapshot
    options: WriteOptions
    approved: Plan | None = None


def plan_application(reader: GroupReader, wanted: ApplyRequest, file: ReceiptFile, events: Events) -> Plan | None:
    """Return the plan from the cluster's current state. Reads only.

    None if the run has handed over these rows already and its target groups have started. Raises `Refused` if the
    receipt forbids a hand-over, or if partitions have changed since the approved plan was made; `UsageError` if the
    receipt is of another migration; the errors of `is_over`; and the errors of `GroupReader`.
    """
    refuse_by_record(file.receipt, Verb.HAND_OVER)
    if same_hand_over(file.receipt, wanted.rows.rows()) and is_over(reader, file, events):
        return None
    if wanted.approved:
        plan = make_again(reader, wanted.rows, wanted.approved)
    else:
        plan = make_plan(reader, wanted.rows, wanted.options, file.receipt)
    refuse_other_run(file, plan)
    return plan


def apply(clients: Clients, wanted: ApplyRequest, file: ReceiptFile, clock: Clock, events: Events) -> Execution | None:
    """Write the offsets and return the execution; None if the target groups have got them already and have started.

    Raises the errors of `plan_application`, `agree` and `plan_at_the_write`; nothing is written then.
    """
    shown = plan_application(clients.writer, wanted, file, events)
    if shown is None:
        return None
    agree(shown, wanted.rows.rows, events)
    plan = plan_at_the_write(clients.writer, wanted.rows, shown, clock, file.receipt)
    refuse_other_run(file, plan)
    execution = write_plan(clients, plan, file, clock, events)
    return watch_afterwards(clients.writer, execution, file, clock, events)
