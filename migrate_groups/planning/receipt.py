"""The receipt: the record of a run, as a list of executions. Each execution is one write to the cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from migrate_groups.errors import Refused, Undetermined
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.model.topics import TopicDescription, recreated_topics
from migrate_groups.planning.change import Change, Order, Relation, share_groups
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.partition_states import PartitionState, partition_states_after
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import State, Step, Verb, advice
from migrate_groups.planning.translation import Translation
from migrate_groups.planning.written_by import NOT_KNOWN, WrittenBy
from migrate_groups.text import named, some


@dataclass(frozen=True)
class Receipt:
    """The record of a run: its executions, oldest first. Each execution is one write of offsets to the cluster.

    run: the id by which the journals on the cluster name the run; empty if nothing is saved.
    """

    executions: tuple[Execution, ...] = ()
    run: str = ""

    @cached_property
    def partition_states(self) -> Mapping[Order, PartitionState]:
        """The state and history of each partition after all writes of the migration.

        The keys are target group, topic and partition number. Without a hand-over, the group is the one from which
        offsets were deleted.
        """
        return partition_states_after(self.executions)

    @property
    def source_groups(self) -> frozenset[str]:
        """The groups that have handed over offsets in this migration; empty if there is none."""
        return frozenset().union(
            *(execution.source_groups for execution in self.executions if execution.verb is Verb.HAND_OVER)
        )

    @property
    def is_of_deletion(self) -> bool:
        """Whether this is the record of `delete-offsets --group`, which deletes offsets without a hand-over."""
        verbs = {execution.verb for execution in self.executions}
        return Verb.DELETE_OFFSETS in verbs and Verb.HAND_OVER not in verbs

    def to_roll_back(self) -> tuple[Execution | None, Mapping[Order, PartitionState]]:
        """Return the write that a rollback undoes, and the partitions that are not undone yet.

        The write is the last hand-over; None if there is none. The partitions are those of all hand-overs.

        In a record of `delete-offsets --group`, the write is the last deletion that is not undone. If all deletions are
        undone, the last deletion is returned, without partitions.
        """
        left = self._where(lambda partition: not partition.takes(Verb.ROLLBACK, Step.NO_OP))
        if not self.is_of_deletion:
            return self.last_hand_over, left
        deletions = [each for each in reversed(self.executions) if each.verb is Verb.DELETE_OFFSETS]
        for execution in deletions:
            changes = {change.order: change for change in execution.changes}
            if of_it := {
                order: partition for order, partition in left.items() if changes.get(order) == partition.change
            }:
                return execution, of_it
        return deletions[0], {}

    def last(self, verb: Verb) -> Execution | None:
        """Return the last write of this kind, as it was recorded; None if there is none."""
        return next((each for each in reversed(self.executions) if each.verb is verb), None)

    @cached_property
    def last_hand_over(self) -> Execution | None:
        """The last hand-over (write to target groups), as it was recorded; None if there is none."""
        return self.last(Verb.HAND_OVER)

    @property
    def is_copy(self) -> bool:
        """Whether the last hand-over made a copy (``--copy``), so that the source group goes on by itself."""
        return self.last_hand_over is not None and self.last_hand_over.options.copy

    @property
    def refused(self) -> dict[Order, PartitionState]:
        """The partitions whose write was refused in the last hand-over, by target group, topic and partition number."""
        last = self.last_hand_over.number if self.last_hand_over else None
        return self._where(lambda partition: partition.state is State.NEW and partition.execution == last)

    @property
    def begun_or_done(self) -> dict[Order, PartitionState]:
        """The partitions in which a write has at least begun, so that their state is not ``new``."""
        return self._where(lambda partition: partition.state is not State.NEW)

    def _where(self, holds: Callable[[PartitionState], bool]) -> dict[Order, PartitionState]:
        return {order: partition for order, partition in self.partition_states.items() if holds(partition)}

    @property
    def to_restore(self) -> Mapping[Order, PartitionState]:
        """Partitions for which a rollback restores the source group's committed offset if it expired or was deleted.

        The keys are target group, topic and partition number; the values are the partitions' states.
        """
        # Included: partitions that brokers refused, and those that a rollback of the last hand-over has undone already.
        return self.refused | self.begun_or_done

    @property
    def deleted(self) -> tuple[Change, ...]:
        """The deletions of `delete-offsets --group` that no rollback has undone yet."""
        return tuple(
            partition.change for partition in self.partition_states.values() if partition.state is State.DELETED
        )

    @cached_property
    def hand_over_to_resume(self) -> Execution | None:
        """The hand-over that `migrate` or `apply` resumes when run again; None if there is none.

        It is the last hand-over, with the partitions of all hand-overs that are handed over, those whose write has
        begun and has no outcome yet, and those refused in the last hand-over. It lacks partitions that were rolled back
        or handed back.
        """
        last = self.last_hand_over
        going_on = self._where(lambda partition: partition.takes(Verb.HAND_OVER, Step.RESUME))
        if last is None or not going_on:
            return None
        changes = sorted({**going_on, **self.refused}.items())
        return replace(last, changes=tuple(partition.change for _, partition in changes))

    def added(self, topics: Mapping[str, TopicDescription]) -> list[Order]:
        """Return each partition that was added to a topic since its hand-over: (target group, topic, partition number).

        topics: the topics as they are now. With the option ``on_uncommitted`` "leave" the result is empty, because a
        partition that the hand-over left out would look like an added one.
        """
        execution = self.last_hand_over
        if execution is None or execution.options.on_uncommitted == "leave":
            return []
        handed_over = {
            (group, topic) for (group, topic, _), partition in self.partition_states.items() if partition.handed_over_by
        }
        return [
            (group, topic, number)
            for group, topic in sorted(handed_over)
            if topic in topics
            for number in topics[topic].partitions
            if (group, topic, number) not in self.partition_states
        ]

    @property
    def elsewhere(self) -> Translation | None:
        """The last hand-over's source group and its offsets, if the group is on another cluster; otherwise None."""
        return self.last_hand_over.translation if self.last_hand_over else None

    def hand_over_to_judge(self) -> Execution:
        """Return the finished hand-over that `reconcile` and `audit` verify.

        It is the last hand-over, with the partitions of all hand-overs, and those refused in the last one.

        Raises `Undetermined` if a write has not finished. Raises `Refused` if nothing was handed over, or if any
        partition was rolled back or handed back.
        """
        states = _names_by_state(self.partition_states)
        for state in (State.WRITING, State.UNDOING, State.HANDING_BACK, State.CLEANING, State.DELETING):
            if places := states.get(state):
                raise Undetermined(f"no verdict yet: {some(places)}: {advice(state)}")
        for state in (State.UNDONE, State.HANDED_BACK, State.DELETED, State.RESTORED):
            if places := states.get(state):
                raise Refused(f"no hand-over to judge: {some(places)}: {advice(state)}")
        last = self.last_hand_over
        if last is None or not self.begun_or_done:
            raise Refused("no hand-over to judge: this run wrote nothing")
        judged = sorted((self.begun_or_done | self.refused).items())
        return replace(last, changes=tuple(partition.change for _, partition in judged))

    def source_offset(self, change: Change) -> int | None:
        """Return the source group's committed offset that this migration has handed over for a partition, or None.

        change: names the partition as it is named on the source group's cluster.
        """
        if self.elsewhere is None:
            return self._source_offsets.get(change.order)
        return self._source_offsets.get((change.source_group or "", change.topic, change.partition))

    @cached_property
    def _source_offsets(self) -> Mapping[Order, int]:
        """The offsets that the hand-over to resume hands over, by target group; in a move by source group."""
        if self.hand_over_to_resume is None:
            return {}
        if (source := self.hand_over_to_resume.translation) is not None:
            known = ((each, each.committed) for each in source.partitions)
            return {(source.group, *each.source): offset for each, offset in known if offset is not None}
        changes = self.hand_over_to_resume.changes
        return {change.order: change.source_committed.offset for change in changes if change.source_committed}

    def refusals(self, verb: Verb) -> list[str]:
        """Return why the receipt forbids a verb, such as rollback; empty if it allows the verb.

        Each message names the partitions in one state that forbids the verb.
        """
        refusing = self._where(lambda partition: partition.takes(verb, Step.REFUSE))
        shares = share_groups(partition.change for partition in self.begun_or_done.values())
        if verb in (Verb.HAND_BACK, Verb.DELETE_OFFSETS) and self.is_copy:
            return [
                "this run made a copy (--copy), so the old group keeps its offsets and may go on: to undo the copy, "
                "run rollback before the new groups commit, or delete-group after"
            ]
        if verb is Verb.HAND_BACK and shares:
            return [
                f"{named('share group', shares)} can't hand back, because start offsets do not show which records it "
                "has acknowledged (KIP-932): before its first member joins, use rollback"
            ]
        return [
            f"{some(places)}: {advice(state, is_elsewhere=self.elsewhere is not None)}"
            for state, places in _names_by_state(refusing).items()
        ]

    def is_done(self, verb: Verb) -> bool:
        """Return whether a verb, such as rollback, was completed before, so that nothing is left to do for it."""
        steps = {partition.step(verb) for partition in self.partition_states.values()} - {Step.SKIP}
        return steps == {Step.NO_OP}

    def begun(self, verb: Verb, plan: Plan, started_at: datetime, by: WrittenBy = NOT_KNOWN) -> Execution:
        """Return the record of a plan's write, as it is before the first request is sent.

        If this write resumes the last one of the receipt, it gets the same number. A rollback then restores the offsets
        from before the first of the two, or the offset that another client has committed since. by: who writes.
        """
        execution = replace(Execution.of(plan, started_at, verb, number=len(self.executions) + 1), by=by)
        last = self.executions[-1] if self.executions else None
        # A hand-over can always be resumed, another write only if it has failed changes.
        resumed = last if last and last.verb is verb and (verb is Verb.HAND_OVER or last.failed) else None
        earlier = self.hand_over_to_resume if verb is Verb.HAND_OVER else resumed
        if earlier is None:
            return execution
        # Offsets of a topic that was deleted and created again do not apply to the new topic.
        same_topics = _of_same_topics(earlier, plan)
        execution = execution.resuming({change.order: change for change in same_topics})
        if resumed is None:
            return execution
        planned = {change.order for change in execution.changes}
        kept = [
            change
            for change in _of_same_topics(resumed, plan)
            if change.order not in planned and (change.settled or verb is Verb.HAND_OVER)
        ]
        changes = sorted((*execution.changes, *kept), key=lambda change: change.order)
        topic_ids = {**resumed.topic_ids, **plan.topic_ids}
        return replace(execution, number=resumed.number, changes=tuple(changes), topic_ids=topic_ids)

    def with_execution(self, execution: Execution) -> Receipt:
        """Return the receipt with this write added, or in place of the write with the same number."""
        executions = (*self.executions[: execution.number - 1], execution, *self.executions[execution.number :])
        return replace(self, executions=executions)

    def own_writes(self) -> Mapping[Order, tuple[CommittedOffset | None, ...]]:
        """Return, for each partition of a target group, the committed offsets that a new hand-over may overwrite.

        They are the offsets that this migration wrote, or may have written. After a hand-back to the source group, only
        the offset that the target group had at that time may be overwritten, also if a rollback has restored it since.
        None stands for no committed offset.
        """
        is_back = (State.HANDED_BACK, State.UNDONE)
        return {
            order: (partition.left,) if partition.state in is_back else partition.change.written
            for order, partition in self.partition_states.items()
            if partition.state in is_back or partition.takes(Verb.HAND_OVER, Step.RESUME)
        }

    def moved_since(self, now: Mapping[Order, CommittedOffset | None]) -> list[Change]:
        """Return the partitions whose target group no longer has the offset that the last hand-over confirmed.

        now: the committed offsets of target groups.
        """
        return [
            change
            for change in (self.hand_over_to_resume.changes if self.hand_over_to_resume else ())
            if change.order in now and _has_moved(change, now[change.order])
        ]


NOTHING_WRITTEN = Receipt()
"""The record of a run before its first execution."""


def _has_moved(change: Change, now: CommittedOffset | None) -> bool:
    # A confirmed partition that is back at its offset from before the hand-over has moved, because it is not known how
    # far the group had consumed. If the group may have had the new offset for a time, only a higher offset shows that
    # it has consumed.
    relation = change.relation(now)
    if relation is Relation.OURS or (relation is Relation.BEFORE and not change.replaced):
        return False
    return change.settled or (bool(change.own) and relation is Relation.AHEAD)


def _of_same_topics(execution: Execution, plan: Plan) -> list[Change]:
    """Return the changes of an execution, without those of topics that were deleted and created again since.

    A topic whose id is not known counts as the same topic.
    """
    recreated = recreated_topics(execution.topic_ids.items(), plan.topic_ids)
    return [each for each in execution.changes if each.topic not in recreated]


def _names_by_state(states: Mapping[Order, PartitionState]) -> Mapping[State, list[str]]:
    names: dict[State, list[str]] = defaultdict(list)
    for (group, topic, number), partition in states.items():
        names[partition.state].append(f"{group} {topic}-{number}")
    return names
