"""Carry out a cut-over: wait for the source group to stop, write its offsets to target groups, watch it afterwards."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from migrate_groups.clock import Clock
from migrate_groups.errors import InvalidInput, MigrateGroupsError, Refused, UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.migration.carry_out import agree, is_over, refuse_other_run, watch_afterwards, write_plan
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import guard
from migrate_groups.migration.hand_over.clusters import Clusters, OneCluster
from migrate_groups.migration.hand_over.cut_over import CutOver
from migrate_groups.migration.hand_over.prepared import Prepared, prepare
from migrate_groups.migration.ports import Clients, GroupReader, HeldGroup
from migrate_groups.migration.progress import not_known
from migrate_groups.migration.reading.fence import take_fence
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.result import WriteResult, result_of
from migrate_groups.model.fence import Fence
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.planning.checks.mirror import PLACES
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.intent import intent_differences, split_differences
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan, Verdict
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import some

if TYPE_CHECKING:
    from migrate_groups.migration.across.mirror import Mirror


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateRequest:
    """The input of `migrate`, which hands over a source group's offsets to target groups.

    file: the split, and its bytes as they were loaded. options: the options of the write. run: the run directory. wait:
    seconds to wait for the source group to stop. hold: keep consumers out of the source group until the watch after the
    write (``guard`` seconds) is over. approved: the file name of the plan that was reviewed, and that plan; None if no
    plan was reviewed. mirror: the cluster of the source group and that of the target groups; None if they are the same.
    """

    file: SplitFile
    options: WriteOptions
    run: RunDir
    wait: float = 600.0
    hold: bool = False
    approved: tuple[str, Plan] | None = None
    mirror: Mirror | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` if topics stay with the source group and ``hold`` would keep their consumers out too."""
        if self.hold and self.file.spec.stay:
            raise UsageError(
                "--hold would also stop the consumers of the topics that stay with the old group: drop --hold"
            )


def plan_migration(reader: GroupReader, wanted: MigrateRequest, clock: Clock, events: Events) -> Prepared | None:
    """Return the provisional plan from the cluster's current state. Reads only.

    The plan is provisional, because `migrate` makes it again once the source group has stopped. Returns None if the run
    has handed over already and a target group has started since. But if the source group then still consumes or can't
    be read, raises `PartlyApplied`.

    Raises `Refused` if the receipt (the record of the run) forbids a hand-over, if groups, partitions or cluster differ
    from those of the plan in ``wanted.approved``, if a target group that has started has lost a committed offset, or if
    the source group no longer exists and its last known offsets may not be used (option ``vanished``); `UsageError` if
    the options differ from those of that plan, or if the run directory is of another migration; `InvalidInput` if the
    split does not cover the group's topics; `GroupNotFound`, `ClusterUnavailable`, `NotAuthorized` and
    `PendingCommits`.
    """
    with open_receipt(wanted.run.receipt, read_only=True) as file:
        refuse_by_record(file.receipt, Verb.HAND_OVER)
        clusters = _clusters(reader, wanted)
        if _is_over(clusters, wanted, file, events):
            return None
        return _prepared(clusters, wanted, file, clock, events)


def migrate(clients: Clients, wanted: MigrateRequest, clock: Clock, events: Events) -> WriteResult | None:
    """Hand over the source group's offsets to the target groups, and return the result.

    Returns None if an earlier run has handed over and a target group has started since. The same call resumes an
    interrupted run. These are the steps:

    - Make a provisional plan, ask the user, and wait until the source group has stopped.
    - Keep consumers out of the source group, if ``hold`` is set.
    - Read the log end offsets of ``__consumer_offsets``, which `audit` needs.
    - Read the committed offsets, and make the final plan.
    - Write the offsets, read them back, and save the files of the run.
    - Watch the source group. If it is on another cluster, check whether the mirror has since delivered records a second
      time.

    If an error is raised, this call has written nothing: `Refused` if the user does not agree, the receipt or a check
    forbids the write, or the source group does not stop in time; `UsageError` or `InvalidInput` if options, split and
    run directory do not fit; `PartlyApplied` if an earlier run has handed over and a target group has started, but the
    source group still consumes or can't be read; `GroupNotFound`, `ClusterUnavailable`, `NotAuthorized` and
    `PendingCommits`.
    """
    writer, run, clusters = clients.writer, wanted.run, _clusters(clients.writer, wanted)
    clients = clients._replace(elsewhere=clusters.elsewhere)
    with run.made(), open_receipt(run.receipt) as file:
        refuse_by_record(file.receipt, Verb.HAND_OVER)
        if _is_over(clusters, wanted, file, events):
            return None
        shown = _prepared(clusters, wanted, file, clock, events)
        agree(shown.plan, shown.rows, events, provisional=True)
        run.keep_baseline(shown.reading.rows())
        stop = _planned_stop(shown, wanted)
        if stop.must_stop or not stop.source.members:
            which = "consuming the moved topics" if shown.spec.stay else "its applications"
            most = span_in_words(timedelta(seconds=wanted.wait))
            events.said(f"waiting up to {most} for {shown.spec.source} to stop: stop {which} now")
        steps = CutOver(
            clusters,
            shown,
            clock,
            wait=wanted.wait,
            events=events,
            keep_baseline=run.keep_baseline,
        )
        steps.wait_for_stop()
        with writer.held(shown.spec.source) if wanted.hold else nullcontext() as held:
            run.keep_fences(_fences(clusters, clock, events), resumed=shown.receipt.hand_over is not None)
            final = steps.read()
            refuse_other_run(file, final.plan)
            execution = write_plan(clients, final.plan, file, clock, events)
            keep(clusters, wanted, final, execution, file, clock, events)
            execution = watch_afterwards(writer, execution, file, clock, events, clusters.elsewhere)
            repeated = clusters.delivered_again(execution) if execution.options.guard else ""
            if repeated:
                execution = execution.remarked(repeated)
                file.record(execution)
        if held is not None:
            execution = _watched_after_hold(writer, held, shown.spec.source, execution, clock, events)
            file.record(execution)
        return replace(result_of(execution, file), delivered_again=repeated)


def _is_over(clusters: Clusters, wanted: MigrateRequest, file: ReceiptFile, events: Events) -> bool:
    """Return whether the run has handed over this split and a target group has started since. If so, tell the user."""
    spec = wanted.file.spec
    return is_over(
        clusters.target,
        file,
        events,
        clusters.elsewhere,
        lambda: split_differences(file.receipt, spec, wanted.run.load_baseline(spec.source)),
    )


def _clusters(target: GroupReader, wanted: MigrateRequest) -> Clusters:
    """Return the cluster or the two clusters of a hand-over.

    With one cluster, raises `InvalidInput` if a target group is the source group. With two clusters, raises
    `InvalidInput` if both are the same, and `UsageError` if ``wanted.hold`` is set: to keep consumers out, this tool
    would join the source group, but nothing is to be changed on its cluster.
    """
    if wanted.mirror is None:
        wanted.file.spec.check_other_groups()
        return OneCluster(target)
    if wanted.hold:
        raise UsageError("--hold joins the old group, but nothing is written to its cluster: drop --hold")
    from migrate_groups.migration.hand_over.two_clusters import TwoClusters

    wanted.mirror.check()
    return TwoClusters(target, wanted.mirror)


def _prepared(clusters: Clusters, wanted: MigrateRequest, file: ReceiptFile, clock: Clock, events: Events) -> Prepared:
    """Return the provisional plan (it is made again after the stop), and tell the user which members must stop.

    Raises `UsageError` if the options differ from those of the plan in ``wanted.approved``, or if the receipt is of
    another migration. Raises `Refused` if the groups, partitions or cluster differ from those of the approved plan.
    """
    spec = wanted.file.spec
    baseline = wanted.run.load_baseline(spec.source)
    with events.working(f"reading group {spec.source}", not_known):
        prepared = prepare(clusters, spec, wanted.options, clock, file.receipt, baseline, hold=wanted.hold)
    if not _lacks_places(prepared.plan):
        _check_approved(wanted.approved, prepared.plan, file.receipt)
        refuse_other_run(file, prepared.plan)
    events.stop_planned(_planned_stop(prepared, wanted))
    return prepared


def _lacks_places(plan: Plan) -> bool:
    """Return whether a plan is refused because it lacks partitions whose offset in a mirror's copy is not known."""
    return any(check.name == PLACES and check.verdict is Verdict.REFUSE for check in plan.checks)


def _planned_stop(prepared: Prepared, wanted: MigrateRequest) -> PlannedStop:
    spec, observed, plan = prepared.spec, prepared.reading.observed, prepared.plan
    handed_over = {each.topic for each in prepared.wanted.partitions}
    return PlannedStop(
        source=observed.description,
        moved=plan.source_topics if spec.stay else None,
        stay=tuple(sorted(observed.topics.keys() - handed_over)),
        partitions=len(plan.changes),
        settle=plan.options.settle,
        wait=wanted.wait,
        resumed=prepared.receipt.hand_over is not None,
    )


def _check_approved(approved: tuple[str, Plan] | None, plan: Plan, receipt: Receipt) -> None:
    """Raise an error that names each difference between a reviewed plan and the current plan, except in offsets.

    The error is `UsageError` if the options differ, and otherwise `Refused`. approved: the file name of the reviewed
    plan, and that plan; None means that there is nothing to compare.

    receipt: the record of the run. If it has a hand-over, which is resumed now, changes without a source group are not
    compared, because their partitions were added while the interrupted run waited.
    """
    if approved is None:
        return
    name, reviewed = approved
    if receipt.hand_over is not None and plan.translation is None:
        plan = replace(plan, changes=tuple(change for change in plan.changes if change.source_group))
    if differences := intent_differences(reviewed, plan):
        # An option that contradicts the plan is a wrong command line or spec, as with `apply`; all else is a refusal.
        kind = Refused if reviewed.options == plan.options else UsageError
        raise kind(f"the plan differs from {name}: {some(differences)}; have a new plan reviewed; nothing was written")


def _fences(clusters: Clusters, clock: Clock, events: Events) -> list[Fence]:
    """Return the log end offsets of ``__consumer_offsets`` on each cluster, from which `audit` later reads the topic.

    If they can't be read on one of the clusters, tell the user and return an empty list.
    """
    readers = [clusters.source] if clusters.elsewhere is None else [clusters.source, clusters.target]
    fences = [fence for reader in readers if (fence := take_fence(reader, clock)) is not None]
    if len(fences) == len(readers):
        return fences
    where = "" if len(readers) == 1 else " on both clusters"
    events.said(
        f"audit can't prove this cut-over later, because the log end offsets of {OFFSETS_TOPIC} can't be read{where}: "
        "grant Describe on it before migrate, and Read before audit"
    )
    return []


def keep(
    clusters: Clusters,
    wanted: MigrateRequest,
    final: Prepared,
    execution: Execution,
    file: ReceiptFile,
    clock: Clock,
    events: Events,
) -> None:
    """Save the files of the run after the write: split, snapshots and plan, and a snapshot of the target groups.

    If a partition is not confirmed or the source group still consumes, there is no snapshot of the target groups. If a
    file can't be written, no error is raised, because the offsets are in place: ``file.failure`` says so.

    The log end offsets are read here, after the write, because only the lag in the source group's snapshot needs them.
    The new applications may start as soon as the offsets are written, and do not wait for this.
    """
    reading, groups = final.reading, sorted({change.group for change in final.plan.changes})
    try:
        # Log start offsets were read right before the write. Log end offsets, which may be from before the source group
        # stopped, are read again.
        bounds = clusters.source.log_ranges(reading.observed.committed, starts=reading.starts)
        reading = replace(reading, bounds=bounds)
        reader = for_one_phase(clusters.target)
        # Request all topics at once, so that the snapshot requests none.
        reader.describe_topics({change.topic for change in final.plan.changes})
        known = {} if clusters.elsewhere else bounds
        after = take_snapshot(reader, groups, clock, known) if execution.is_whole else None
    except MigrateGroupsError as error:
        after = None
        events.said(f"{wanted.run.after} was not written: {error}; take a snapshot of the new groups instead")
    try:
        wanted.run.save(wanted.file.content, SnapshotTable.of_rows(reading.rows()), [*final.rows()], final.plan, after)
    except InvalidInput as error:
        file.note_unsaved_file(error)


def _watched_after_hold(
    reader: GroupReader, held: HeldGroup, source: str, execution: Execution, clock: Clock, events: Events
) -> Execution:
    """After this tool has left the source group, watch the group for ``options.guard`` seconds; return the execution.

    While this tool was a member, other consumers could not join or commit, so an earlier watch could not detect them.
    They try again, and process records that were handed over (docs/evidence/reliability.md#settle-and-hold). If they
    do, messages about it are added to ``moved`` of the returned execution. If this tool may not have been a member all
    the time, a message about that is added, and nothing is watched.
    """
    execution = execution.with_moved([held.lost] if held.lost else [])
    seconds = execution.options.guard
    if not (seconds and execution.is_whole):
        return execution
    events.said(f"{source} is no longer held: watching it for {seconds:g} s")
    return guard(reader, execution, seconds, clock)
