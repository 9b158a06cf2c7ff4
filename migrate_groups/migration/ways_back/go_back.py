"""Carry out a rollback, hand-back or delete-offsets: plan, ask the user, plan again, write.

A rollback restores the offsets from before the hand-over. A hand-back moves the source group to the target groups'
offsets. Delete-offsets deletes the source group's offsets of handed-over partitions.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from migrate_groups.clock import Clock
from migrate_groups.errors import PartlyApplied, Refused
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.barrier import Barrier, after_barrier, barrier_of
from migrate_groups.migration.carry_out import agree, settle, watch_afterwards, write_plan
from migrate_groups.migration.clusters import Client, Clusters, one_cluster, writers
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import consumed_since, look_at_watched
from migrate_groups.migration.journal import Journal, locked, read_journal, refuse_taken
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.reading.requests import describe_groups
from migrate_groups.migration.reading.survey import unread
from migrate_groups.migration.receipt_refusals import another_cluster, check_clusters_named
from migrate_groups.migration.stop import Wait, prove_stopped
from migrate_groups.migration.ways_back.delete_group_offsets import OffsetsToDelete, plan_deletion
from migrate_groups.migration.ways_back.delete_source_offsets import delete_source_offsets
from migrate_groups.migration.ways_back.hand_back import plan_hand_back
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.checks.facts import Facts
from migrate_groups.planning.checks.origin import cluster_of_receipt
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import some

_ALREADY = {
    Verb.ROLLBACK: "is rolled back already",
    Verb.HAND_BACK: "is handed back already",
    Verb.DELETE_OFFSETS: "has no offsets left to delete",
}
_UNLESS_FORWARD = (
    ", unless the old group has not started, and is moved forward by rewind --group NEW --to-current and apply "
    "--on-existing forward"
)


def _is_done(
    clusters: Clusters[GroupReader], file: ReceiptFile, verb: Verb, events: Events, *, watch_again: bool = False
) -> bool:
    """Return whether a command (rollback, hand-back or delete-offsets) was completed before; if so, tell the user.

    Raises `Refused` if another run has the partitions since, or this is another cluster; `PartlyApplied` if a group
    that had to stop still consumed after the write, or could not be watched. watch_again: return False instead if a
    group could not be watched.
    """
    last = file.receipt.last(verb)
    if last is None or not file.receipt.is_done(verb):
        return False
    # Another cluster has no claims, so that it would say that the partitions are still the source group's.
    now = unread(_written(clusters, verb))
    verdict, reason = cluster_of_receipt(Facts(survey=now, options=last.options, earlier=last))
    if verdict is Verdict.REFUSE:
        refuse_forbidden([Check(name="cluster", verdict=verdict, reason=reason)])
    refuse_taken(_with_claims(clusters, file.receipt, verb), file.receipt, verb)
    done = f"{file.path} {_ALREADY[verb]}"
    not_watched = last.not_watched
    if not (not_watched or file.receipt.is_of_deletion):
        signs, is_live, not_watched = consumed_since(_written(clusters, verb), last)
        if is_live:
            raise PartlyApplied(
                f"{done}, but {signs}: stop its consumers, because what they read from there on is processed twice; "
                "nothing was written"
            )
        if signs:
            unless = "" if verb is Verb.DELETE_OFFSETS else _UNLESS_FORWARD
            said = f"{done}, but {signs}; what it has read is processed twice{unless}"
            raise PartlyApplied(f"{said}; nothing was written")
    if not_watched:
        if watch_again:
            return False
        raise PartlyApplied(
            f"{done}, but {not_watched[0]}: run the same command without --dry-run, which watches it now; nothing "
            "was written"
        )
    events.said(f"{done}; nothing was written")
    return True


def plan_way_back(
    clusters: Clusters[GroupReader],
    verb: Verb,
    file: ReceiptFile,
    clock: Clock,
    deletion: OffsetsToDelete | None = None,
) -> Plan:
    """Return the plan of a rollback, hand-back or delete-offsets, from the clusters' current state. Reads only.

    clusters: a rollback of a move may be given only the target groups' cluster; then it leaves the claims on the other
    one. deletion: for ``delete-offsets --group``: what to delete, as in `plan_deletion`.

    Raises `Refused` if the receipt (the record of the run) forbids the command, or there is nothing to write;
    `UsageError` if the other cluster is missing or not needed.
    """
    return _WayBack(clusters, verb, file, clock, deletion).shown()[0]


def left_to_do(
    clusters: Clusters[GroupReader],
    verb: Verb,
    file: ReceiptFile,
    clock: Clock,
    events: Events,
    deletion: OffsetsToDelete | None = None,
) -> Plan | None:
    """Return the plan of a way back; None if an earlier call has done everything: then tell the user. Reads only.

    The arguments and errors are those of `plan_way_back` and, for what was done, of `go_back`.
    """
    if deletion is None and _is_done(clusters, file, verb, events):
        return None
    plan = plan_way_back(clusters, verb, file, clock, deletion)
    return None if deletion and _nothing_to_delete(plan, file, events) else plan


def _nothing_to_delete(plan: Plan, file: ReceiptFile, events: Events) -> bool:
    """Return whether the plan of a deletion has no offset to delete, and no check refuses it. If so, tell the user."""
    if plan.changes or plan.refusals(at_the_write=False):
        return False
    events.said(f"{file.path} {_ALREADY[Verb.DELETE_OFFSETS]}; nothing was written")
    return True


def go_back(
    clusters: Clusters[Clients],
    verb: Verb,
    file: ReceiptFile,
    clock: Clock,
    events: Events,
    *,
    wait: float = 0.0,
    deletion: OffsetsToDelete | None = None,
) -> Execution | None:
    """Carry out a rollback, hand-back or delete-offsets, and return the record of this write.

    Returns None if nothing was left to do. If an error is raised, this call wrote nothing. wait: seconds that a
    hand-back waits for all groups to stop. clusters, deletion: as in `plan_way_back`.

    Raises `Refused` if a check or the user forbids it, or the wait runs out; `PartlyApplied` if a group that had to
    stop still consumed after an earlier call's write; `UsageError` if the other cluster is missing or not needed.
    """
    of_both, clients = writers(clusters), _written(clusters, verb)
    reader = clients.writer
    if verb is Verb.DELETE_OFFSETS and not clusters.is_one:
        clients = clients._replace(elsewhere=of_both.target)
    if deletion is None and _is_done(of_both, file, verb, events, watch_again=True):
        return None
    last = file.receipt.last(verb)
    if deletion is None and last is not None and file.receipt.is_done(verb):
        # The groups that must no longer consume could not be watched after the write, so they are watched now.
        events.said(f"{file.path} {_ALREADY[verb]}; its groups could not be watched after the write")
        execution = look_at_watched(reader, last)
        file.record(execution)
        return watch_afterwards(clients, execution, file, clock, events)
    way = _WayBack(of_both, verb, file, clock, deletion)
    shown, barrier, journal = way.shown()
    if deletion and _nothing_to_delete(shown, file, events):
        return None
    agree(shown, lambda: (), events, provisional=verb is Verb.HAND_BACK)
    with locked(_with_claims(of_both, file.receipt, verb), journal, file) as journal:
        if verb is Verb.HAND_BACK:
            _wait_for_both(reader, shown, clock, events, wait)
        else:
            # A consumer without membership shows only by its commits, so the plan is made twice, `settle` seconds
            # apart.
            settle(shown, clock, events)
        # A deletion waits for no commit of the target groups: their offsets are there, and such a commit is a later
        # one.
        with after_barrier(clients.writer, barrier, events):
            plan = way.plan(shown)
            refuse_forbidden(plan.refusals(at_the_write=True))
            _refuse_lost(shown, plan)
            execution = write_plan(clients, plan, file, clock, events, journal)
    if not any(partition.handed_over_by for partition in file.receipt.partition_states.values()):
        return execution  # no source group processes the records of these groups again
    return watch_afterwards(clients, execution, file, clock, events)


class _WayBack(NamedTuple):
    """A rollback, hand-back or delete-offsets, with the arguments of `plan_way_back`."""

    clusters: Clusters[GroupReader]
    verb: Verb
    file: ReceiptFile
    clock: Clock
    deletion: OffsetsToDelete | None

    def shown(self) -> tuple[Plan, Barrier, Journal]:
        """Return the plan to show to the user, how to wait for commits before it is made again, and the claims."""
        plan, receipt = self.plan(), self.file.receipt
        journal = read_journal(_with_claims(self.clusters, receipt, self.verb), plan, receipt, self.verb)
        barrier = barrier_of(_written(self.clusters, self.verb), plan)
        plan = plan.with_checks((*barrier.checks, *journal.checks))
        is_hand_back = self.verb is Verb.HAND_BACK
        return plan.provisional(("targets", "not moved")) if is_hand_back else plan, barrier, journal

    def plan(self, shown: Plan | None = None) -> Plan:
        """Return the plan as the clusters are now. shown: the plan that the user agreed to; None before that."""
        reader, receipt = _written(self.clusters, self.verb), self.file.receipt
        if self.deletion is not None:
            return plan_deletion(reader, self.deletion, self.file, shown)
        if self.verb is Verb.ROLLBACK:
            if not self.clusters.is_one:
                _check_both(self.clusters, receipt)
            return plan_rollback(reader, receipt)
        if self.verb is Verb.HAND_BACK:
            return plan_hand_back(reader, receipt, self.clock)
        return delete_source_offsets(self.clusters, receipt)


def _written(clusters: Clusters[Client], verb: Verb) -> Client:
    """Return the client of the cluster to which a way back writes. A hand-back has one cluster."""
    return clusters.source if verb is Verb.DELETE_OFFSETS else clusters.target


def _check_both(clusters: Clusters[GroupReader], receipt: Receipt) -> None:
    """Check the clusters of the rollback of a move.

    Raises `UsageError` if the run is no move; `Refused` if these are other clusters.
    """
    if receipt.executions:
        check_clusters_named(receipt.last_hand_over or receipt.executions[-1], is_target_named=True)
    if another := another_cluster(clusters, receipt):
        raise Refused(f"{another}; nothing was written")


def _with_claims(clusters: Clusters[Client], receipt: Receipt, verb: Verb) -> Clusters[Client | None]:
    """Return the clusters on which a way back reads and makes claims."""
    if receipt.elsewhere is None:
        return one_cluster(_written(clusters, verb))
    if verb is Verb.DELETE_OFFSETS:
        return Clusters(clusters.source, None)
    return Clusters(clusters.elsewhere, clusters.target)


def _refuse_lost(shown: Plan, plan: Plan) -> None:
    """Raise `Refused` if a group has lost a committed offset since ``shown``.

    That is one which it would give back, or which is higher than the one that it would get.
    """
    before = {change.order: change.before for change in shown.changes}
    given = {change.order for change in plan.changes if change.committed is not None}
    lost = [
        f"{change.group} {change.topic_partition} ({then.offset})"
        for change in plan.changes
        if change.before is None
        and change.after is not None
        and (then := before.get(change.order)) is not None
        and then.offset > change.after.offset
    ]
    lost += [
        f"{change.source_group} {change.topic_partition} ({change.committed.offset})"
        for change in shown.changes
        if change.source_group and change.committed is not None and change.order not in given
    ]
    if lost:
        raise Refused(
            f"committed offset expired or deleted since the plan was shown: {some(lost)}; set it again with rewind and "
            "apply, because the group had read further; nothing was written"
        )


def _wait_for_both(reader: GroupReader, shown: Plan, clock: Clock, events: Events, wait: float) -> None:
    new = sorted({change.source_group for change in shown.changes if change.source_group})
    described = describe_groups(reader, sorted({change.group for change in shown.changes}))
    old = [group for group, each in described.items() if each.exists]
    seconds = shown.options.settle
    most = span_in_words(timedelta(seconds=wait))
    events.doing(
        f"waiting up to {most} for {some([*new, *old], most=10)} to stop: stop their applications now; the offsets "
        f"are written {seconds:g} s after the stop"
    )
    how = Wait(wait=wait, settle=seconds, progress=events.still_running, doing=events.doing)
    prove_stopped(reader, [*new, *old], clock, how)
