"""Undo a hand-over whose target groups have not run: restore the committed offsets from before the hand-over."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.reading.take import committed_by_order
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.ways_back.common import (
    options_of_write,
    permissions_wanted,
    permitted,
    plan_for_wrong_cluster,
    same_cluster,
)
from migrate_groups.migration.ways_back.rollback_checks import (
    in_range,
    is_deleted_or_recreated,
    nobody_in,
    not_committed_since,
    same_topics,
    source_group,
)
from migrate_groups.planning.change import Action, Change, Order, sorted_changes
from migrate_groups.planning.partition_states import PartitionState
from migrate_groups.planning.plan import Check, Plan, Verdict
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, State, Verb
from migrate_groups.text import counted, named


def plan_rollback(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that sets the target groups' offsets back to those from before the hand-over, or deletes them.

    The plan also restores offsets that the source group has lost. Checks refuse if a target group has members or has
    committed since. After `delete-offsets --group`, which needs no hand-over, the plan restores the offsets that were
    deleted last.

    Raises `Refused` if the receipt (the record of the run) forbids it; `ClusterUnavailable`, `NotAuthorized` and
    `PendingCommits`.
    """
    refuse_by_record(receipt, Verb.ROLLBACK)
    execution, states = receipt.to_roll_back()
    # Includes partitions whose offset was in place before the run: the rollback does not change it, and records these
    # partitions as undone.
    undone = {order: partition for order, partition in states.items() if partition.takes(Verb.ROLLBACK, *WORKS)}
    wrote = any(partition.change.action is not Action.UNCHANGED for partition in undone.values())
    if execution is None or (not wrote and not receipt.is_done(Verb.ROLLBACK)):
        why = (
            "the receipt has no deleted offset, for instance because the topic was deleted and created again while the "
            "deletion was interrupted"
            if receipt.is_of_deletion
            else "the last hand-over wrote nothing; if another run wrote the offsets, roll back with its receipt"
        )
        raise Refused(f"nothing to roll back: {why}")
    cluster = same_cluster(reader, execution)
    if cluster.verdict is Verdict.REFUSE:
        return plan_for_wrong_cluster(reader, execution, cluster)
    inverses = [partition.change.inverse for partition in undone.values()]
    at_hand_over = _stopped(receipt.to_restore.values())
    wanted = permissions_wanted([*inverses, *at_hand_over.values()])
    permissions = permissions_unless_hidden(reader, wanted)
    topics = reader.describe_topics({topic for _, topic, _ in (*states, *at_hand_over)})
    stopped = {
        order: change
        for order, change in at_hand_over.items()
        if not is_deleted_or_recreated(topics, execution, change.topic)
    }
    # Includes partitions for which brokers refused the hand-over, because their target group must not have committed
    # since either.
    now = committed_by_order(reader, states)
    added = committed_by_order(reader, receipt.added(topics))
    changes = [structs.replace(inverse, before=now[inverse.order]) for inverse in inverses]
    of_sources = committed_by_order(reader, stopped)
    # Otherwise no group would have a committed offset for the partition after the rollback.
    restored = [change for order, change in stopped.items() if of_sources[order] is None]
    return Plan(
        cluster_id=reader.cluster_id(),
        options=options_of_write(execution.options, {change.group for change in [*changes, *restored]}),
        changes=sorted_changes([*changes, *restored]),
        topic_ids=execution.topic_ids,
        checks=(
            cluster,
            permitted(reader, wanted, permissions),
            same_topics(topics, execution, {change.topic for change in changes}),
            nobody_in(reader, {group for group, *_ in states}),
            not_committed_since(execution, states.values(), now, added),
            source_group(reader, execution, stopped, of_sources),
            in_range(reader, restored, changes, of_sources),
            *_earlier_deletions(receipt, {change.order for change in changes}),
        ),
    )


def _earlier_deletions(receipt: Receipt, undone: set[Order]) -> list[Check]:
    """Return a warning if earlier deletions of offsets are not undone by the rollback; otherwise an empty list.

    undone: group, topic and partition of each offset that this rollback sets again.
    """
    left = [change for change in receipt.deleted if change.order not in undone]
    if not left:
        return []
    topics = {change.topic for change in left}
    reason = f"{counted(len(left), 'offset')} of {named('topic', topics)}, deleted before that, stay deleted until the "
    return [Check.warned("earlier deletions", f"{reason}next rollback of this receipt")]


def _stopped(states: Iterable[PartitionState]) -> dict[Order, Change]:
    """Return, by partition of a source group, the change that sets the offset at which the group stopped.

    This is the group's committed offset at the hand-over. If there was none, it is the offset that the target group
    got. states: the partitions of the target groups.
    """
    found = {}
    for partition in states:
        change = partition.change
        offset = change.source_committed or (None if partition.state is State.NEW else change.after)
        for source in partition.sources if offset is not None else ():
            found[source, change.topic, change.partition] = Change(
                source_group=change.group,
                group=source,
                topic=change.topic,
                partition=change.partition,
                before=None,
                after=offset,
            )
    return found
