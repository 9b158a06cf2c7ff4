"""What the writes of a migration did with each partition, and the partition's state now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec import structs

from migrate_groups.model.partitions import CommittedOffset, PartitionValue
from migrate_groups.planning.change import Change, Order, Outcome
from migrate_groups.planning.execution import Execution, Source
from migrate_groups.planning.run_states import State, Step, Verb, state_after, step


class PartitionState(PartitionValue, frozen=True, kw_only=True):
    """What the writes of a migration did with one partition of a target group, and the partition's state now.

    - state: such as handed over.
    - change: the partition's change in the last hand-over or deletion that included it, with the outcome.
    - sources: the source groups of the topic; empty if they are on another cluster than the target groups.
    - handed_over_by: the source groups of this partition, on any cluster, with the offsets at which they stopped.
    - execution: the number of the write that led to the state.
    - left: the target group's committed offset when the partition was last handed back to the source group; None: it
      was not. A rollback of the next hand-over restores this offset.
    """

    state: State
    change: Change
    sources: frozenset[str]
    handed_over_by: tuple[Source, ...] = ()
    execution: int
    left: CommittedOffset | None = None

    def step(self, verb: Verb) -> Step:
        """Return what a command, such as rollback, does with the partition in its state: write, skip or refuse."""
        return step(self.state, verb)

    def takes(self, verb: Verb, *steps: Step) -> bool:
        """Return whether a command, such as rollback, does one of these steps with the partition."""
        return step(self.state, verb) in steps


def partition_states_after(executions: Iterable[Execution]) -> Mapping[Order, PartitionState]:
    """Return what these writes did with each partition, and the partition's state now.

    The keys are group, topic and partition number. executions: the writes, oldest first.
    """
    states: dict[Order, PartitionState] = {}
    has_handed_over = False
    for execution in executions:
        has_handed_over |= execution.verb is Verb.HAND_OVER
        if execution.verb is Verb.HAND_OVER:
            _fold_hand_over(states, execution)
        elif execution.verb is Verb.DELETE_OFFSETS and not has_handed_over:
            _fold_deletion(states, execution)
        else:
            _fold_way_back(states, execution)
    return states


def _fold_hand_over(states: dict[Order, PartitionState], execution: Execution) -> None:
    origins, by = execution.origins(), execution.sources()
    planned = {change.order for change in execution.changes}
    left = {order: partition.left for order, partition in states.items()}
    for order in [order for order, partition in states.items() if _is_over(partition, is_planned=order in planned)]:
        del states[order]
    for change in execution.changes:
        # A refused partition is not handed over, unless its offset may have been in place.
        if change.outcome is Outcome.REFUSED:
            if not change.own and change.order in states and states[change.order].state is not State.NEW:
                continue
            state = State.HANDED_OVER if change.own else State.NEW
        else:
            state = state_after(execution.verb, settled=change.settled)
        states[change.order] = PartitionState(
            state=state,
            change=change,
            sources=origins[change.group, change.topic],
            handed_over_by=by[change.order],
            execution=execution.number,
            left=left.get(change.order),
        )


def _is_over(partition: PartitionState, *, is_planned: bool) -> bool:
    # A handed-back partition keeps its state if brokers refuse it now, so that the next hand-over may overwrite the
    # offset that the target group left.
    return partition.state is State.UNDONE or (partition.state is State.HANDED_BACK and not is_planned)


def _fold_deletion(states: dict[Order, PartitionState], execution: Execution) -> None:
    for change in execution.changes:
        # A refused partition still has its offset, unless the offset may have been deleted for a moment.
        if change.outcome is Outcome.REFUSED and not change.own:
            continue
        is_open = change.outcome in (Outcome.UNKNOWN, Outcome.NOT_ATTEMPTED)
        state = State.DELETING if is_open else State.DELETED
        states[change.order] = PartitionState(
            state=state, change=change, sources=frozenset(), execution=execution.number
        )


def _fold_way_back(states: dict[Order, PartitionState], execution: Execution) -> None:
    # A change of a rollback names a partition of the target group. A change of delete-offsets names a partition of the
    # source group.
    orders: dict[Order, list[Order]] = defaultdict(list)
    for order, partition in states.items():
        of_source = [source.order for source in partition.handed_over_by]
        for named in of_source if execution.verb is Verb.DELETE_OFFSETS else [order]:
            orders[named].append(order)
    not_restored = _not_restored(execution)
    for change in execution.changes:
        if change.outcome is Outcome.REFUSED and (execution.verb is not Verb.ROLLBACK or _is_left(change)):
            continue
        is_restored = (change.topic, change.partition) not in not_restored
        state = state_after(execution.verb, settled=change.settled and is_restored)
        if execution.verb is Verb.HAND_BACK:
            order = (change.source_group or "", change.topic, change.partition)
            partition = states.get(order) or _added_since(change, execution.number)
            states[order] = structs.replace(
                partition, state=state, execution=execution.number, left=change.source_committed
            )
            continue
        for order in orders[change.order]:
            partition = states[order]
            if _changes_state(change, execution.verb, partition):
                was_deleted = state is State.UNDONE and partition.change.after is None
                reached = State.RESTORED if was_deleted else state
                states[order] = structs.replace(partition, state=reached, execution=execution.number)


def _is_left(change: Change) -> bool:
    """Return whether a rollback has left a target group's offset, which another client has changed.

    Otherwise the group may have had the offset from before for a time. What was committed then does not show how far
    the group has read since the hand-over.
    """
    return change.after not in change.own


def _not_restored(execution: Execution) -> set[tuple[str, int]]:
    """Return the topics and partition numbers for which a rollback has not yet restored the source group's offset."""
    return {
        (change.topic, change.partition)
        for change in execution.changes
        if execution.verb is Verb.ROLLBACK and change.source_group is not None and not change.settled
    }


def _changes_state(change: Change, verb: Verb, partition: PartitionState) -> bool:
    # A change of a rollback that has a source group restores an expired offset of that group.
    is_of_partition = verb is Verb.DELETE_OFFSETS or change.source_group is None
    return is_of_partition and partition.takes(verb, Step.UNDO, Step.ALLOW, Step.RESUME)


def _added_since(change: Change, execution: int) -> PartitionState:
    """Return the state and history of a partition that was added to a topic after the topic's hand-over.

    change: the partition's change in a hand-back, which gives the topic back to the source group. execution: the number
    of that hand-back in the receipt.
    """
    moved = structs.replace(
        change,
        source_group=change.group,
        group=change.source_group or "",
        outcome=Outcome.UNCHANGED,
        attempts=0,
        error="",
        own=(),
    )
    return PartitionState(
        state=State.HANDED_OVER,
        change=moved,
        sources=frozenset({change.group}),
        handed_over_by=(Source(group=change.group, partition=moved.topic_partition, stopped_at=moved.handed_over_at),),
        execution=execution,
    )
