"""Write offsets, from a file or a group, to target groups: plan, check, ask the user, plan again, write, read back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.barrier import Barrier, after_barrier, barrier_of
from migrate_groups.migration.carry_out import agree, watch_afterwards, write_plan
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.events import Events
from migrate_groups.migration.journal import Journal, claim_started, locked, read_journal
from migrate_groups.migration.make_plan import make_again, make_plan, plan_at_the_write, still_to_settle
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.receipt_refusals import (
    refuse_another_cluster,
    refuse_by_record,
    refuse_differences,
    refuse_other_run,
)
from migrate_groups.migration.started import offsets_differently, say_over, started_since
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.planning.checks.facts import FROM_FILE, Advice
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.schema import UNKNOWN_STATE
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.times import milliseconds_of, rfc_3339
from migrate_groups.text import counted, some


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest:
    """The input of `apply`: the offsets to write to target groups, and the options of the write.

    rows: ``group`` of each row is the target group. approved: the reviewed plan, whose options replace ``options``;
    None if no plan was reviewed. source: the group from which the rows were just read; None if they are from a file.
    """

    rows: SnapshotTable
    options: WriteOptions
    approved: Plan | None = None
    source: str | None = None


def read_request(
    reader: GroupReader, source: str, to_groups: Sequence[str], options: WriteOptions, clock: Clock
) -> ApplyRequest:
    """Return the request that writes all current committed offsets of the group ``source`` to each of ``to_groups``.

    Raises `GroupNotFound`; `Refused` for a share group, or if the client's principal sees no topic of the group;
    `UsageError` if ``to_groups`` has the group itself or an invalid name.
    """
    taken = take_snapshot(reader, [source], clock)
    if not len(taken):
        raise Refused(
            f"group {source!r} has no committed offset on a topic that {reader.principal} may describe; nothing was "
            "written"
        )
    rows = name_groups(taken, to_groups, fan_out=True, restore=False)
    return ApplyRequest(rows=rows, options=options, source=source)


def plan_apply(reader: GroupReader, wanted: ApplyRequest, file: ReceiptFile, events: Events) -> Plan | None:
    """Return the plan that writes the offsets of a request. Reads only.

    If an earlier call has written these offsets and a target group has started since, returns None, or raises
    `PartlyApplied` if a source group still consumes or can't be read.

    Raises `Refused` if the receipt (the record of the run) or the approved plan forbids the write; `UsageError` if the
    receipt is of another migration.
    """
    shown = _shown(reader, wanted, file, events)
    return shown and shown[0]


def _shown(
    reader: GroupReader, wanted: ApplyRequest, file: ReceiptFile, events: Events
) -> tuple[Plan, Barrier, Journal] | None:
    """Return the plan to show to the user, how to wait for commits before the plan is made again, and the claims.

    Returns None, and raises errors, as `plan_apply`.
    """
    refuse_by_record(file.receipt, Verb.HAND_OVER)
    refuse_another_cluster(file, reader)
    if (started := started_since(one_cluster(reader), file.receipt)) is not None:
        differences = offsets_differently(file.receipt, wanted.rows.rows(), are_read_now=bool(wanted.source))
        refuse_differences(file, differences)
        say_over(one_cluster(reader), started, file, events)
        return None
    with events.working(_reading(wanted)):
        if wanted.approved:
            plan = make_again(reader, wanted.rows, wanted.approved, _advice(wanted))
        else:
            plan = make_plan(reader, wanted.rows, wanted.options, file.receipt, _advice(wanted))
    refuse_other_run(one_cluster(reader), file, plan)
    journal = read_journal(one_cluster(reader), plan, file.receipt, Verb.HAND_OVER)
    barrier = barrier_of(reader, plan)
    return plan.with_checks((*barrier.checks, *journal.checks)), barrier, journal


def apply(clients: Clients, wanted: ApplyRequest, file: ReceiptFile, clock: Clock, events: Events) -> Execution | None:
    """Write the offsets of a request, and return the record of this write.

    Returns None if an earlier call has written them and a target group has started since. If a source group then still
    consumes or can't be read, raises `PartlyApplied`. If an error is raised, this call wrote nothing.

    Raises `Refused` if a check or the user forbids the write; `UsageError` if the receipt (the record of the run) is of
    another migration.
    """
    found = _shown(clients.writer, wanted, file, events)
    if found is None:
        claim_started(one_cluster(clients.writer), file, clock.now())
        return None
    shown, barrier, journal = found
    agree(shown, wanted.rows.rows, events)
    with locked(one_cluster(clients.writer), journal, file) as journal:
        if (left := still_to_settle(wanted.rows, shown.options.settle, clock.now())) >= 1:
            events.doing(f"waiting {left:.0f} s to see that no consumer commits")
        with events.working(f"waiting until {shown.options.settle:g} s after the offsets were read"):
            clock.sleep(left)
        with after_barrier(clients.writer, barrier, events):
            with events.working(f"{_reading(wanted)} again"):
                plan = plan_at_the_write(clients.writer, wanted.rows, shown, file.receipt, _advice(wanted))
            refuse_other_run(one_cluster(clients.writer), file, plan)
            execution = write_plan(clients, plan, file, clock, events, journal)
    return watch_afterwards(clients, execution, file, clock, events)


def _reading(wanted: ApplyRequest) -> str:
    return f"reading {counted(len(wanted.rows), 'partition')} of {counted(len(wanted.rows.groups()), 'group')}"


def _advice(wanted: ApplyRequest) -> Advice:
    """Return what checks tell the user to do next, for rows from a file or rows that were just read from a group."""
    if wanted.source is None:
        from_log = {row.taken_at for row in wanted.rows.rows() if row.group_state == UNKNOWN_STATE}
        times = some([rfc_3339(milliseconds_of(at)) for at in from_log if at is not None])
        where = f"from the log of {OFFSETS_TOPIC} as of {times}, which does not show whether the old group had stopped"
        return replace(FROM_FILE, unasked=where) if from_log else FROM_FILE
    options = [f"--to-group {shlex.quote(group)}" for group in wanted.rows.groups() if group]
    fork = (
        f"copy the live group: migrate-groups rewind --group {shlex.quote(wanted.source)} --to-current -o copy.csv, "
        f"then migrate-groups apply copy.csv {' '.join(options)}{' --fan-out' * (len(options) > 1)}"
    )
    return Advice(read_again="run the same command again", still_running=f"{FROM_FILE.still_running}, or {fork}")
