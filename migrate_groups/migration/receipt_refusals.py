"""Refuse a command that does not fit the receipt (the record of the writes so far)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate_groups.errors import Refused, UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile, run_of_return
from migrate_groups.migration.clusters import Clusters
from migrate_groups.migration.journal import refuse_taken
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.survey import unread
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Order, Relation
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.checks.facts import RunDeletionFacts
from migrate_groups.planning.checks.origin import both_clusters
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.intent import cluster_differences, resumed_differently
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import some


def refuse_by_record(receipt: Receipt, verb: Verb) -> None:
    """Raise `Refused` if the earlier writes in the receipt forbid this kind of write.

    For instance, a rollback is forbidden once the target groups' offsets were handed back to the source group.
    """
    reasons = receipt.refusals(verb)
    if reasons:
        raise Refused(f"{'; '.join(reasons)}; nothing was written")


def refuse_returned(file: ReceiptFile) -> None:
    """Raise `Refused` if the group of the move in a receipt has returned: its next move is another run."""
    if back := run_of_return(file.path, file.receipt):
        raise Refused(
            f"the group has moved back since, by the run in {back}: to move it again, name another run directory "
            "(--run-dir); nothing was written"
        )


def check_clusters_named(hand_over: Execution, *, is_target_named: bool) -> None:
    """Raise `UsageError` if the number of clusters that the user named does not fit the migration.

    is_target_named: whether the user named a second cluster, for the target groups. This is needed for a migration
    between two clusters, and wrong for any other.
    """
    source = hand_over.translation
    if source is not None and not is_target_named:
        raise UsageError(
            f"the new groups are on another cluster, {hand_over.cluster_id}: pass --to-bootstrap-server or "
            f"--to-command-config for it, and the old group's cluster, {source.cluster_id}, as --bootstrap-server"
        )
    if source is None and is_target_named:
        raise UsageError(
            "all groups of this run are on one cluster: leave out --to-bootstrap-server and --to-command-config, or "
            "unset their variables"
        )


def another_cluster(clusters: Clusters[GroupReader], receipt: Receipt) -> str:
    """Return why these are not the clusters of the last hand-over or write in a receipt; empty if they are."""
    if not receipt.executions:
        return ""
    earlier = receipt.last_hand_over or receipt.executions[-1]
    source, target = unread(clusters.source), unread(clusters.target)
    verdict, reason = both_clusters(
        RunDeletionFacts(survey=source, targets=target, options=earlier.options, receipt=receipt, earlier=earlier)
    )
    return f"cluster: {reason}" if verdict is Verdict.REFUSE else ""


def refuse_other_run(clusters: Clusters[GroupReader | None], file: ReceiptFile, plan: Plan) -> None:
    """Raise an error if the plan must not be written on top of the writes in the receipt.

    Raises `UsageError` if the receipt is of another migration than the plan, and the error of `refuse_moved`.
    """
    refuse_differences(file, resumed_differently(file.receipt, plan))
    refuse_moved(clusters, file, {change.order: change.before for change in plan.changes})


def refuse_moved(
    clusters: Clusters[GroupReader | None], file: ReceiptFile, now: Mapping[Order, CommittedOffset | None]
) -> None:
    """Raise `Refused` if a target group no longer has an offset that the last hand-over in the receipt confirmed.

    now: the committed offsets of target groups. If another run has handed the partitions on, the error names it.
    """
    if since := file.receipt.moved_since(now):
        refuse_taken(clusters, file.receipt, Verb.HAND_OVER)
        moved = some([f"{each.group} {each.topic_partition}" for each in since], 3)
        is_ahead = all(each.relation(now[each.order]) is Relation.AHEAD for each in since)
        if is_ahead and not any(each.source_group for each in since):
            raise Refused(
                f"{moved}: the group has committed higher offsets since {file.path} was written, so it has started; to "
                "give it the same offsets once more, name another receipt, and pass --on-existing overwrite; nothing "
                "was written"
            )
        raise Refused(
            f"{moved}: the committed offset is no longer the one that {file.path} confirmed: it was set, was "
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
