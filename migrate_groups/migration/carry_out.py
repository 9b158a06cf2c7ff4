"""The steps of every command that writes offsets: ask the user, write, watch the groups that must have stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from migrate_groups.clock import Clock
from migrate_groups.errors import PartlyApplied, Refused, UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.added_partitions import with_added_partitions
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import guard, watched
from migrate_groups.migration.journal import BothClusters, Journal, refuse_taken
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.put_back import not_yet_known, other_groups, put_back
from migrate_groups.migration.started import Started
from migrate_groups.migration.write import write
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Order, Outcome
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.intent import cluster_differences, resumed_differently
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, named, some


def refuse_other_run(file: ReceiptFile, plan: Plan) -> None:
    """Raise an error if the plan must not be written on top of the writes in the receipt.

    Raises `UsageError` if the receipt is of another migration than the plan, and the error of `refuse_moved`.
    """
    refuse_differences(file, resumed_differently(file.receipt, plan))
    refuse_moved(file, {change.order: change.before for change in plan.changes})


def refuse_moved(file: ReceiptFile, now: Mapping[Order, CommittedOffset | None]) -> None:
    """Raise `Refused` if a target group no longer has an offset that the last hand-over in the receipt confirmed.

    now: the committed offsets of target groups.
    """
    if since := file.receipt.moved_since(now):
        raise Refused(
            f"{some(since, 3)}: the committed offset is no longer the one that {file.path} confirmed: it was set, was "
            "deleted or has expired, so it is not known how far the group read: set it with apply --no-source-group; "
            "nothing was written"
        )


def refuse_differences(file: ReceiptFile, differences: Sequence[str]) -> None:
    """Raise `UsageError` if there are differences between the migration in the receipt and the requested one."""
    if differences:
        raise UsageError(
            f"{file.path} is the receipt of another migration ({some(differences)}): name another receipt or run "
            "directory; rollback undoes the other migration, as long as its groups have not started"
        )


def refuse_another_cluster(file: ReceiptFile, reader: GroupReader) -> None:
    """Raise `UsageError` if a hand-over on one cluster is in the receipt, and ``reader`` reads another cluster.

    There, the source group may not exist, and its offsets would seem lost.
    """
    earlier = file.receipt.last_hand_over
    if earlier is not None and earlier.translation is None:
        refuse_differences(file, cluster_differences(earlier.cluster_id, reader.cluster_id()))


def say_over(clusters: BothClusters[GroupReader], started: Started, file: ReceiptFile, events: Events) -> None:
    """Tell the user that the migration in the receipt is over, because a target group has started.

    Raises `PartlyApplied` if a source group still consumes or can't be read;
    `Refused` if a target group has lost a committed offset, or another run has undone the migration.
    """
    refuse_taken(clusters, file.receipt, Verb.ROLLBACK)
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


def agree(plan: Plan, rows: Callable[[], Iterable[Row]], events: Events, *, provisional: bool = False) -> None:
    """Show the plan and, if there is something to write, ask the user whether to write it.

    provisional: the plan will be made again after the consumers have stopped. A check with the verdict ``pending`` does
    not forbid the write yet.

    Raises `Refused` if a check forbids the write, or if the user does not agree.
    """
    events.planned(plan, rows)
    refuse_forbidden(plan.refusals(at_the_write=not provisional))
    if (provisional or plan.to_write()) and not events.agrees(plan, provisional=provisional):
        raise Refused("the answer was no; nothing was written")


def settle(shown: Plan, clock: Clock, events: Events) -> None:
    """Wait for the seconds in the plan's option ``settle``, and tell the user.

    The caller then checks that no consumer has committed during the wait.
    """
    if shown.options.settle:
        events.doing(f"waiting {shown.options.settle:g} s to see that no consumer commits")
        clock.sleep(shown.options.settle)


def write_plan(
    clients: Clients, plan: Plan, file: ReceiptFile, clock: Clock, events: Events, journal: Journal
) -> Execution:
    """Claim the partitions of a plan, write its offsets, read them back, and return the record of the write.

    The receipt file is saved before the first request and after each step. journal: what runs have claimed before.
    Raises `Refused` if another run has claimed a partition; `InvalidInput` if the first save fails. Later failures are
    in the outcomes or in ``file.failure``.
    """
    verb = journal.facts.verb
    journal = journal.for_plan(plan, file.receipt)
    execution = file.receipt.begun(verb, plan, clock.now(), file.by)

    def record(latest: Execution) -> None:
        nonlocal execution
        execution = latest
        file.record(latest)
        events.writing(file.told_by)

    def record_open(latest: Execution) -> None:
        record(journal.not_released(latest))

    def sent() -> tuple[int, int]:
        return len(execution.changes) - execution.count()[Outcome.NOT_ATTEMPTED], len(execution.changes)

    second = None if plan.options.second_client == "none" else clients.second
    others = other_groups(file.receipt, verb)
    # The groups that must no longer consume after a way back are on the cluster that is written to.
    elsewhere = clients.elsewhere if verb is Verb.HAND_OVER else None
    with events.working(f"writing {counted(len(plan.changes), 'offset')} and reading them back", sent):
        # Before the claim: the run that a claim names must have a receipt, with which the run is resumed or undone.
        begun = execution  # kept, because `record_open` replaces `execution` by what it saves
        record_open(begun)
        unclaimed = journal.claim(clock.now())
        # Of a write that is resumed, an offset may be in place: then the partition is still handed over, and claimed.
        execution = begun.updated(
            change.refused(unclaimed[change.order], sent=change.outcome is Outcome.UNKNOWN)
            for change in begun.changes
            if change.order in unclaimed and not change.settled
        )
        execution = write(
            clients.writer, second, execution, lambda latest: record_open(not_yet_known(latest, others)), elsewhere
        )
        execution = put_back(clients, execution, others, record_open)
        # Another run may hand over what this one could not claim, although the offset is in place.
        execution = execution.updated(
            change.unknown(unclaimed[change.order])
            for change in execution.changes
            if change.order in unclaimed and change.settled
        )
        if verb is not Verb.HAND_OVER:
            record(journal.settled(execution, file.receipt, clock.now()))
    if execution.is_whole:
        if verb is Verb.HAND_OVER:
            execution = replace(execution, outage=replace(execution.outage, start_at=clock.now()))
        events.read_back(verb, file.receipt.source_groups, wrote=bool(plan.to_write()))
    if verb is Verb.HAND_OVER:
        # Only now, because the new applications need not wait for it: until then, the claims say that the outcome is
        # not known.
        settled = journal.settled(execution, file.receipt, clock.now())
        if settled != execution:
            record(settled)
        else:
            file.record(execution)  # the time of START; the user has been told that the offsets are in place
    return execution


def watch_afterwards(
    reader: GroupReader,
    execution: Execution,
    file: ReceiptFile,
    clock: Clock,
    events: Events,
    elsewhere: GroupReader | None = None,
) -> Execution:
    """After a write, watch the groups that must no longer consume, such as the source group of a migration.

    Returns the record of the write. Its ``moved`` has messages about groups that still consume, and its
    ``not_watched`` about groups that can't be read. Nothing is watched if the write was not successful. If the option
    ``guard`` is 0, a remark says that nothing was watched.

    elsewhere: reads source groups that are on another cluster.
    """
    groups, seconds = sorted(watched(execution)), execution.options.guard
    # Otherwise the user has to act first.
    if not (execution.is_whole and groups):
        return execution
    if seconds:
        events.doing(
            f"watching {some(groups)} for {seconds:g} s: records consumed there from now on are processed twice"
        )
        execution = guard(reader, execution, seconds, clock, elsewhere)
        if execution.verb is Verb.HAND_OVER:
            execution = with_added_partitions(reader, execution, file.receipt, elsewhere)
    else:
        execution = execution.remarked(
            f"not watched after the write (guard 0s), so it is not known whether a consumer comes back: {some(groups)}"
        )
    file.record(execution)
    return execution
