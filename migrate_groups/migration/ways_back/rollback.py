"""Undo a hand-over whose target groups have not run: restore the committed offsets from before the hand-over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import committed_of, describe_groups
from migrate_groups.migration.reading.survey import facts_of_way_back, permissions_unless_hidden, unread
from migrate_groups.migration.receipt_refusals import refuse_by_record
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.model.topics import is_still
from migrate_groups.planning.change import Action, Change, Order, sorted_changes
from migrate_groups.planning.checks.facts import RollbackFacts
from migrate_groups.planning.checks.permission import needed_on_way_back
from migrate_groups.planning.checks.registry import planned, read_on
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.checks.target import options_of_write
from migrate_groups.planning.partition_states import PartitionState
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, State, Verb
from migrate_groups.planning.survey import Survey


def plan_rollback(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that sets the target groups' offsets back to those from before the hand-over, or deletes them.

    The plan also restores offsets that the source group has lost. Checks refuse if a target group has members or has
    committed since. After `delete-offsets --group`, which needs no hand-over, the plan restores the offsets that were
    deleted last.

    Raises `Refused` if the receipt (the record of the run) forbids it.
    """
    refuse_by_record(receipt, Verb.ROLLBACK)
    earlier, states = receipt.to_roll_back()
    # Includes partitions whose offset was in place before the run: the rollback does not change it, and records these
    # partitions as undone.
    undone = [partition.change for partition in states.values() if partition.takes(Verb.ROLLBACK, *WORKS)]
    wrote = any(change.action is not Action.UNCHANGED for change in undone)
    if earlier is None or (not wrote and not receipt.is_done(Verb.ROLLBACK)):
        why = (
            "the receipt has no deleted offset, for instance because the topic was deleted and created again while the "
            "deletion was interrupted"
            if receipt.is_of_deletion
            else "the last hand-over wrote nothing; if another run wrote the offsets, roll back with its receipt"
        )
        raise Refused(f"nothing to roll back: {why}")
    facts = RollbackFacts(
        survey=unread(reader), options=earlier.options, receipt=receipt, earlier=earlier, states=states
    )
    inverses = [change.inverse for change in undone]
    return planned(Scope.ROLLBACK, read_on(Scope.ROLLBACK, facts, lambda known: _read(reader, known, inverses)))


def _read(reader: GroupReader, facts: RollbackFacts, inverses: Sequence[Change]) -> RollbackFacts:
    """Return the facts with what was read of the cluster, and with the changes that follow from it.

    inverses: the changes that undo those of the run.
    """
    receipt, states = facts.receipt, facts.states
    # After a copy the source group goes on by itself: its offsets are not those of this run.
    at_hand_over = {} if receipt.is_copy else _stopped(receipt.to_restore.values())
    needed = needed_on_way_back([*inverses, *at_hand_over.values()])
    permissions = permissions_unless_hidden(reader, needed)
    topics = reader.describe_topics({topic for _, topic, _ in (*states, *at_hand_over)})
    stopped = {
        order: change
        for order, change in at_hand_over.items()
        if is_still(facts.earlier.topic_ids.get(change.topic), topics.get(change.topic)) is not False
    }
    # Includes partitions for which brokers refused the hand-over, because their target group must not have committed
    # since either.
    survey = Survey(
        cluster_id=facts.survey.cluster_id,
        cluster_facts=facts_of_way_back(reader, permissions),
        topics=topics,
        committed=committed_of(reader, [*states, *receipt.added(topics), *stopped]),
    )
    undone = [structs.replace(inverse, before=survey.now(inverse.order)) for inverse in inverses]
    # Otherwise no group would have a committed offset for the partition after the rollback.
    restored = [change for order, change in stopped.items() if survey.now(order) is None]
    groups = {group for group, *_ in states} | {change.group for change in restored}
    groups_now = describe_groups(reader, sorted(groups))
    others = [*undone, *stopped.values()]
    bounds, unread_logs = _log_ranges(reader, _partitions(restored), _partitions(others))
    return replace(
        facts,
        survey=replace(survey, groups=groups_now, bounds=bounds, logs_unread=unread_logs),
        options=options_of_write(facts.options, {change.group for change in [*undone, *restored]}),
        changes=sorted_changes([*undone, *restored]),
        topic_ids=facts.earlier.topic_ids,
        needed=needed,
        stopped=stopped,
    )


def _partitions(changes: Iterable[Change]) -> set[TopicPartition]:
    return {change.topic_partition for change in changes}


def _log_ranges(
    reader: GroupReader, restored: Collection[TopicPartition], others: Collection[TopicPartition]
) -> tuple[Mapping[TopicPartition, LogRange], str]:
    """Return the log ranges, and why those of ``others`` could not be read; an empty text if they could.

    Raises `ClusterUnavailable` if those of ``restored`` can't be read.
    """
    bounds = reader.log_ranges(restored)
    try:
        return {**bounds, **reader.log_ranges(others)}, ""
    except ClusterUnavailable as error:  # these are only warned about
        return bounds, str(error)


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
