"""Cut over: wait for the source group to stop, write its offsets to target groups, watch the source group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import InvalidInput, MigrateGroupsError, Refused, UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.migration.barrier import after_barrier
from migrate_groups.migration.carry_out import agree, watch_after_hold, watch_afterwards, write_plan
from migrate_groups.migration.clusters import Clusters, Mirror
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import with_first_commits
from migrate_groups.migration.hand_over.cut_over import CutOver
from migrate_groups.migration.hand_over.prepared import MigrateRequest, Prepared, prepare
from migrate_groups.migration.journal import Journal, claim_started, locked
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.receipt_refusals import (
    refuse_another_cluster,
    refuse_by_record,
    refuse_differences,
    refuse_other_run,
    refuse_returned,
)
from migrate_groups.migration.started import say_over, started_since
from migrate_groups.migration.write_result import WriteResult, result_of
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.planning.change import partitions_by_group
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.checks.mirror import TRANSLATED_OFFSETS
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.intent import intent_differences, shorter_settle, split_differences
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import some


def plan_migration(reader: GroupReader, wanted: MigrateRequest, clock: Clock, events: Events) -> Prepared | None:
    """Return the plan to show to the user before the source group stops. Reads only.

    If an earlier call has handed over and a target group has started since, returns None, or raises `PartlyApplied` if
    the source group still consumes or can't be read.

    Raises `Refused` if the receipt (the record of the run) or the reviewed plan forbids it; `InvalidInput` if the split
    lacks a topic; `UsageError` for wrong options; `GroupNotFound`.
    """
    clusters = Clusters(wanted.mirror.source.groups if wanted.mirror else reader, reader, wanted.mirror)
    _check_clusters(wanted)
    with open_receipt(wanted.run.receipt, read_only=True) as file:
        shown = _shown(clusters, wanted, file, clock, events)
    if shown is not None:
        events.stop_planned(_planned_stop(shown, wanted, clusters))
    return shown


def migrate(clients: Clients, wanted: MigrateRequest, clock: Clock, events: Events) -> WriteResult | None:
    """Hand over the source group's offsets to the target groups, and return the result.

    If an earlier call has handed over and a target group has started since, returns None, or raises `PartlyApplied` if
    the source group still consumes or can't be read. If an error is raised, this call wrote nothing.

    Raises `Refused` if a check or the user forbids it, or the source group does not stop; `UsageError` or
    `InvalidInput` for wrong input; `GroupNotFound`.
    """
    writer, run = clients.writer, wanted.run
    clusters = Clusters(wanted.mirror.source_writer if wanted.mirror else writer, writer, wanted.mirror)
    _check_clusters(wanted)
    clients = clients._replace(elsewhere=clusters.elsewhere)
    with run.made(), open_receipt(run.receipt, by=wanted.by) as file, _with_end(events), ExitStack() as until_written:
        shown = _agreed_before(wanted, file) or _shown(clusters, wanted, file, clock, events)
        if shown is None:
            claim_started(clusters, file, clock.now())
            return None
        stop = _planned_stop(shown, wanted, clusters)
        events.stop_planned(stop)
        agree(shown.plan, shown.rows, events, provisional=True)
        journal = until_written.enter_context(locked(clusters, shown.journal, file))
        if wanted.agreed is None:
            run.keep_baseline(shown.reading.rows())
        if wanted.mirror is not None and not wanted.mirror.is_return:
            _await_mirror(wanted.mirror, stop, shown.plan, clock, events)
        events.stop_agreed(stop)
        if stop.must_stop or not stop.source.members:
            which = "consuming the moved topics" if shown.spec.stay else "its applications"
            most = span_in_words(timedelta(seconds=wanted.wait))
            events.doing(f"waiting up to {most} for {shown.spec.source} to stop: stop {which} now")
        steps = CutOver(
            clusters,
            shown,
            clock,
            wait=wanted.wait,
            events=events,
            keep_baseline=run.keep_baseline,
            get_ready=lambda: _make_ready(clients, shown, journal),
        )
        if wanted.agreed is not None:
            steps.saw_before(wanted.agreed.topics, wanted.agreed.ran_until)
        final = None
        while final is None:
            steps.wait_for_stop()
            source = shown.reading.observed
            holding = writer.held(shown.spec.source, source.committed.keys(), source.description.assignor)
            with holding if wanted.hold else nullcontext() as held:
                with (
                    after_barrier(clusters.source, shown.source_barrier, events) as passed_at_source,
                    after_barrier(writer, shown.barrier, events) as passed,
                ):
                    steps.take_checkpoints()
                    final = steps.read()
                    if final is None:
                        continue
                    final = final.judged_by((*passed_at_source, *passed, *journal.checks))
                    refuse_other_run(clusters, file, final.plan)
                    resumed = shown.receipt.hand_over_to_resume
                    run.keep_stop_checkpoints(
                        steps.checkpoints, final.plan, resumed=resumed.content if resumed else None
                    )
                    execution = write_plan(clients, final.plan, file, clock, events, journal)
                execution = _with_stop(execution, steps.ran_until, resumed)
                file.record(execution)
                until_written.close()
                keep(clusters, wanted, final, execution, file, clock, events)
                execution = watch_afterwards(clients, execution, file, clock, events)
                repeated = _delivered_again(wanted.mirror, execution)
                if repeated:
                    execution = execution.remarked(repeated)
                    file.record(execution)
            if held is not None:
                execution = watch_after_hold(clients, held, execution, file, clock, events)
        execution = _with_first_commits(clusters.source, final, execution, file)
        return replace(result_of(execution, file), delivered_again=repeated)


def _with_first_commits(reader: GroupReader, final: Prepared, execution: Execution, file: ReceiptFile) -> Execution:
    """Return the record of the write with first commits of the source group since then; if there are any, save it."""
    before = final.reading.observed.committed
    found = with_first_commits(reader, execution, final.spec.source, before, final.spec.stay)
    if found != execution:
        file.record(found)
    return found


def _make_ready(clients: Clients, shown: Prepared, journal: Journal) -> None:
    """Make the clients ready for the write of a plan: connect to the coordinators of all groups that it commits for."""
    targets = partitions_by_group(shown.plan.changes)
    facts, probes = journal.facts, shown.barrier.probes
    others = [
        *(probes.groups if probes else ()),
        *(journal_group(group.name) for group in facts.groups if group.cluster == facts.elsewhere),
    ]
    if shown.plan.options.second_client != "none":
        clients.second.make_ready(targets)
    clients.writer.make_ready({**dict.fromkeys(others, ()), **targets})


@contextmanager
def _with_end(events: Events) -> Iterator[None]:
    """Call ``events.ending`` at the end of the block, but not after an interrupt, which must end the command soon."""
    try:
        yield
    except MigrateGroupsError:
        events.ending()
        raise
    events.ending()


def _with_stop(execution: Execution, ran_until: datetime | None, resumed: Execution | None) -> Execution:
    """Return the record of the write with the time until which the source group ran.

    ran_until: the last reading in which it ran; None if it was not seen running. resumed: the write that this one
    resumes; its time counts if the group has not run since. None if there is none.
    """
    ran_until = ran_until or (resumed.outage.ran_until if resumed else None)
    return replace(execution, outage=structs.replace(execution.outage, ran_until=ran_until))


def _check_clusters(wanted: MigrateRequest) -> None:
    """Check which clusters the groups are on.

    Raises `InvalidInput` if a target group is the source group, or if two clusters are the same; `UsageError` if
    ``wanted.hold`` is set with two clusters.
    """
    if wanted.mirror is None:
        wanted.file.spec.check_other_groups()
    elif wanted.hold:
        raise UsageError("--hold can't join the old group in a move to another cluster: drop --hold")
    else:
        wanted.mirror.check()


def _delivered_again(mirror: Mirror | None, execution: Execution) -> str:
    """Return a remark that names copies to which a mirror has delivered records again since the plan; empty if none."""
    if mirror is None or mirror.is_return or execution.translation is None or not execution.options.guard:
        return ""
    from migrate_groups.migration.across.mirror_lag import delivered_again

    return delivered_again(mirror, execution.translation)


def _await_mirror(mirror: Mirror, stop: PlannedStop, plan: Plan, clock: Clock, events: Events) -> None:
    """Wait for a mirror before the source group has to stop. Raises `Refused` if it does not come near in time."""
    from migrate_groups.migration.hand_over.mirror_wait import wait_for_mirror

    # A group that has stopped waits only for its own offsets.
    wait_for_mirror(mirror, plan, clock, stop.wait, events, is_running=bool(stop.must_stop))


def _shown(
    clusters: Clusters[GroupReader], wanted: MigrateRequest, file: ReceiptFile, clock: Clock, events: Events
) -> Prepared | None:
    """Return the plan to show to the user. Returns None, and raises errors, as `plan_migration`."""
    refuse_by_record(file.receipt, Verb.HAND_OVER)
    refuse_returned(file)
    if clusters.is_one:
        refuse_another_cluster(file, clusters.source)
    spec = wanted.file.spec
    baseline = wanted.run.load_baseline(spec.source)
    started = started_since(clusters, file.receipt)
    if started is not None:
        refuse_differences(file, split_differences(file.receipt, spec, baseline))
        say_over(clusters, started, file, events)
        return None
    with events.working(f"reading group {spec.source}"):
        prepared = prepare(clusters, wanted, file.receipt, baseline, clock)
    if not _lacks_offsets(prepared.plan):
        _check_approved(wanted.approved, prepared.plan, file.receipt, events)
        refuse_other_run(clusters, file, prepared.plan)
    return prepared


def _agreed_before(wanted: MigrateRequest, file: ReceiptFile) -> Prepared | None:
    """Return the plan to which the user has agreed before; None if there is none, or another process has written since.

    Its offsets, and the facts that may have changed, are read again before the write, as those of any plan.
    """
    if wanted.agreed is None or wanted.agreed.shown.receipt.executions != file.receipt.executions:
        return None
    return wanted.agreed.shown.of_run(file.receipt)


def _lacks_offsets(plan: Plan) -> bool:
    """Return whether a check refuses the plan because offsets in a mirror's copies are not known."""
    return any(check.name == TRANSLATED_OFFSETS and check.verdict is Verdict.REFUSE for check in plan.checks)


def _planned_stop(prepared: Prepared, wanted: MigrateRequest, clusters: Clusters[GroupReader]) -> PlannedStop:
    observed, plan = prepared.reading.observed, prepared.plan
    handed_over = {each.topic for each in prepared.wanted}
    return PlannedStop(
        source=observed.description,
        moved=prepared.moved,
        stay=tuple(sorted(observed.topics.keys() - handed_over)),
        partitions=len(plan.changes),
        settle=plan.options.settle,
        wait=wanted.wait,
        resumed=prepared.receipt.hand_over_to_resume is not None,
        round_trip=max(clusters.source.round_trip(), clusters.target.round_trip()),
        mirror_lag=plan.translation.behind_seconds if plan.translation else 0.0,
    )


def _check_approved(approved: tuple[str, Plan] | None, plan: Plan, receipt: Receipt, events: Events) -> None:
    """Raise an error that names each difference between a reviewed plan and the current plan, except in offsets.

    The error is `UsageError` if the options differ, and otherwise `Refused`. If ``settle`` is shorter than reviewed,
    the user is only told, because it does not change what is written. approved: file name and content of the
    reviewed plan; None: nothing to compare.
    """
    if approved is None:
        return
    name, reviewed = approved
    if receipt.hand_over_to_resume is not None and plan.translation is None:
        # Changes without a source group are of partitions that were added while the interrupted run waited.
        plan = replace(plan, changes=tuple(change for change in plan.changes if change.source_group))
    if differences := intent_differences(reviewed, plan):
        # An option that contradicts the plan is a wrong command line or spec, as with `apply`; all else is a refusal.
        kind = Refused if reviewed.options.reviewed == plan.options.reviewed else UsageError
        raise kind(f"the plan differs from {name}: {some(differences)}; have a new plan reviewed; nothing was written")
    if shorter := shorter_settle(name, reviewed.options, plan.options):
        events.said(shorter)


def keep(
    clusters: Clusters[GroupReader],
    wanted: MigrateRequest,
    final: Prepared,
    execution: Execution,
    file: ReceiptFile,
    clock: Clock,
    events: Events,
) -> None:
    """Save the split, the plan, and snapshots of the source and target groups in the run directory, after the write.

    There is no snapshot of share groups, and none of any target group if the write did not fully succeed. If a file
    can't be written, no error is raised, and ``file.failure`` says so.
    """
    reading, groups = final.reading, sorted({each.group for each in final.plan.changes if not each.is_share})
    try:
        # Log start offsets were read right before the write. Log end offsets, which may be from before the source group
        # stopped, are read again.
        # This is done after the write, so that the new applications need not wait for it.
        bounds = clusters.source.log_ranges(reading.observed.committed, starts=reading.starts)
        reading = replace(reading, bounds=bounds)
        reader = for_one_phase(clusters.target)
        # Request all topics at once, so that the snapshot requests none.
        reader.describe_topics({change.topic for change in final.plan.changes})
        known = bounds if clusters.is_one else {}
        after = take_snapshot(reader, groups, clock, known) if execution.is_whole and groups else None
    except MigrateGroupsError as error:
        after = None
        events.said(f"{wanted.run.after} was not written: {error}; take a snapshot of the new groups instead")
    try:
        wanted.run.save(wanted.file.content, SnapshotTable.of_rows(reading.rows()), [*final.rows()], final.plan, after)
    except InvalidInput as error:
        file.note_unsaved_file(error)
