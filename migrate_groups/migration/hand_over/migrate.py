"""The whole cut-over in one process, and the files that it writes to the run directory."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

from migrate_groups.clock import Clock
from migrate_groups.errors import InvalidInput, MigrateGroupsError, Refused, UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.migration.carry_out import agree, is_over, refuse_other_run, watch_afterwards, write_plan
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import guard
from migrate_groups.migration.hand_over.cut_over import CutOver, Prepared, prepare
from migrate_groups.migration.ports import Clients, GroupReader, HeldGroup
from migrate_groups.migration.reading.fence import take_fence
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.result import WriteResult, result_of
from migrate_groups.model.fence import Fence
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.intent import intent_differences
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.snapshot import Snapshot
from migrate_groups.text import some

# Consumers that the hold kept out try again within seconds, and would process records that were handed over
# (docs/kafka-behaviour.md#holding-a-group).
_WATCHED_AFTER_HOLD = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateRequest:
    """The input of a cut-over.

    file: the split, and its bytes as they were loaded. options: the options of the write. run: the run directory. wait:
    seconds to wait for the source group to stop. hold: keep consumers out of the source group until the watch after the
    write (``guard`` seconds) is over. approved: the name of the file of the plan that was reviewed, and that plan.
    """

    file: SplitFile
    options: WriteOptions
    run: RunDir
    wait: float = 600.0
    hold: bool = False
    approved: tuple[str, Plan] | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` if ``hold`` is set and the source group keeps topics, because its consumers must go on."""
        if self.hold and self.file.spec.stay:
            raise UsageError(
                "--hold keeps all consumers out of the old group, and some topics stay with it; drop --hold"
            )


def plan_migration(reader: GroupReader, wanted: MigrateRequest, clock: Clock, events: Events) -> Prepared | None:
    """Return the provisional plan from the cluster's current state. Reads only.

    None if the run has handed over already and its target groups have started. Raises the errors of `prepare` and
    `is_over`; `Refused` if the receipt forbids a hand-over, or if the plan's intent differs from that of the plan in
    ``wanted.approved``; `UsageError` if the run directory is of another migration.
    """
    with open_receipt(wanted.run.receipt, read_only=True) as file:
        refuse_by_record(file.receipt, Verb.HAND_OVER)
        if is_over(reader, file, events):
            return None
        return _prepared(reader, wanted, file, clock)


def migrate(clients: Clients, wanted: MigrateRequest, clock: Clock, events: Events) -> WriteResult | None:
    """Hand over the source group's offsets to the target groups, and return the result.

    The steps: make a provisional plan, ask the user, wait until the source group has stopped, keep its consumers out
    (``hold``), read the log ends of ``__consumer_offsets`` for `audit`, read the offsets and make the final plan,
    write, read back, save the files of the run, watch the source group. The same call resumes an interrupted run.
    Returns None if an earlier run has handed over and its target groups have started.

    Raises the errors of `plan_migration` and `CutOver`, and `Refused` if the user does not agree; nothing is written
    then.
    """
    writer, run = clients.writer, wanted.run
    run.make()
    with open_receipt(run.receipt) as file:
        refuse_by_record(file.receipt, Verb.HAND_OVER)
        if is_over(writer, file, events):
            return None
        shown = _prepared(writer, wanted, file, clock)
        agree(shown.plan, shown.rows, events, provisional=True)
        run.keep_baseline(shown.reading.rows())
        events.said(f"waiting up to {wanted.wait:g} s for {shown.spec.source} to stop: stop its applications now")
        steps = CutOver(
            writer,
            shown,
            clock,
            wait=wanted.wait,
            progress=events.still_running,
            keep_baseline=run.keep_baseline,
        )
        steps.wait_for_stop()
        with writer.held(shown.spec.source) if wanted.hold else nullcontext() as held:
            run.keep_fence(_fence(writer, clock, events), resumed=shown.receipt.hand_over is not None)
            final = steps.read()
            refuse_other_run(file, final.plan)
            execution = write_plan(clients, final.plan, file, clock, events)
            keep(writer, wanted, final, execution, file, clock, events)
            execution = watch_afterwards(writer, execution, file, clock, events)
        if held is not None:
            execution = _watched_after_hold(writer, held, shown.spec.source, execution, clock, events)
            file.record(execution)
        return result_of(execution, file)


def _prepared(reader: GroupReader, wanted: MigrateRequest, file: ReceiptFile, clock: Clock) -> Prepared:
    """Return the provisional plan.

    Raises `Refused` if its intent differs from that of the plan in ``wanted.approved``; `UsageError` if the receipt is
    of another migration.
    """
    spec = wanted.file.spec
    baseline = wanted.run.load_baseline(spec.source)
    prepared = prepare(reader, spec, wanted.options, clock, file.receipt, baseline, hold=wanted.hold)
    _check_approved(wanted.approved, prepared.plan, file.receipt)
    refuse_other_run(file, prepared.plan)
    return prepared


def _check_approved(approved: tuple[str, Plan] | None, plan: Plan, receipt: Receipt) -> None:
    """Raise `Refused` naming each difference in intent between a reviewed plan, ``approved``, and the current plan.

    Changes without a source group do not count when a run is resumed: their partitions were added while the interrupted
    run waited.
    """
    if approved is None:
        return
    name, reviewed = approved
    if receipt.hand_over is not None:
        plan = replace(plan, changes=tuple(change for change in plan.changes if change.source_group))
    if differences := intent_differences(reviewed, plan):
        raise Refused(f"not what {name} says: {some(differences)}; have it reviewed again; nothing was written")


def _fence(reader: GroupReader, clock: Clock, events: Events) -> Fence | None:
    """Return the log end offsets of ``__consumer_offsets``, from which `audit` later reads it.

    None, with a message to the user, if they can't be read.
    """
    fence = take_fence(reader, clock)
    if fence is None:
        events.said(f"audit will not be able to prove this cut-over: {OFFSETS_TOPIC} needs Describe (and Read, then)")
    return fence


def keep(
    reader: GroupReader,
    wanted: MigrateRequest,
    final: Prepared,
    execution: Execution,
    file: ReceiptFile,
    clock: Clock,
    events: Events,
) -> None:
    """Write the files of the run: split, snapshots and plan, and a snapshot of the target groups.

    If the write is not whole, because a partition is not confirmed or the source group still consumes, there is no
    snapshot of the target groups. The new applications may start as soon as the offsets are written. To keep them from
    waiting, the log end offsets are read here, after the write: only the source group's lag in its snapshot needs them.
    If a file can't be written, ``file`` notes it and no error is raised, because the offsets are in place.
    """
    reading, groups = final.reading, sorted({change.group for change in final.plan.changes})
    try:
        # Log start offsets were read right before the write. Log end offsets, which may be from before the source group
        # stopped, are read again.
        reading = replace(reading, bounds=reader.log_ranges(reading.observed.committed, starts=reading.starts))
        reader = for_one_phase(reader)
        reader.describe_topics(reading.observed.topics)  # one request, so that the snapshot needs no other
        after = take_snapshot(reader, groups, clock, reading.bounds) if execution.is_whole else None
    except MigrateGroupsError as error:
        after = None
        events.said(f"{wanted.run.after} was not written: {error}")
    try:
        wanted.run.save(wanted.file.content, Snapshot.of_rows(reading.rows()), [*final.rows()], final.plan, after)
    except InvalidInput as error:
        file.not_kept(error)


def _watched_after_hold(
    reader: GroupReader, held: HeldGroup, source: str, execution: Execution, clock: Clock, events: Events
) -> Execution:
    """Watch the source group for some seconds after the hold has ended, and return the execution.

    `watch_afterwards` could find nothing, because the hold kept all consumers out. What the group did since, or why the
    hold was lost, is in ``moved`` of the execution.
    """
    execution = execution.with_moved([held.lost] if held.lost else [])
    seconds = min(execution.options.guard, _WATCHED_AFTER_HOLD)
    if not (seconds and execution.is_whole):
        return execution
    events.said(f"{source} is released, and watched for {seconds:g} s more")
    return guard(reader, execution, seconds, clock)
