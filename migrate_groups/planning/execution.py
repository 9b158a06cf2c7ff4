"""One write of offsets, as the receipt records it: for each partition the committed offset before and after."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from msgspec import structs

from migrate_groups.model.partitions import PartitionValue, TopicPartition
from migrate_groups.planning.change import Action, Change, Order, Outcome, Relation
from migrate_groups.planning.outage import NOT_MEASURED, Outage
from migrate_groups.planning.plan import Plan, Write
from migrate_groups.planning.run_states import Verb
from migrate_groups.planning.written_by import NOT_KNOWN, WrittenBy


class Source(PartitionValue, frozen=True, kw_only=True):
    """A partition that a source group has handed over, as it is named on the cluster of that group.

    stopped_at: the offset at which the source group stopped, usually its committed offset; None if it is not known.
    """

    group: str
    partition: TopicPartition
    stopped_at: int | None

    @property
    def order(self) -> Order:
        """The key of this value: source group, topic and partition number."""
        return self.group, *self.partition


def _source(change: Change, group: str) -> Source:
    return Source(group=group, partition=change.topic_partition, stopped_at=change.handed_over_at)


@dataclass(frozen=True, kw_only=True)
class Execution(Write):
    """One write of offsets to the cluster, as it was carried out.

    - number: the position of the write in the receipt (the record of a run), from 1.
    - verb: the kind of the write, such as hand-over or rollback.
    - intent, content: the hashes of the plan, without and with offsets.
    - moved: messages about groups that consume the partitions after the write, although they must have stopped.
    - not_watched: messages about groups that could not be read, so that they may still consume.
    - added: messages about partitions that were added to the topics after the write was planned, and for which a target
      group has no committed offset.
    - remarks: other messages for the user.
    - guard_readings: how often the groups that must no longer consume were read during the guard after the write; 0 if
      there was no guard, so that it is not known whether they consumed again.
    - longest_gap: the longest time in seconds between two of these readings, or from the start of the guard to the
      first one; None if there was none.
    - outage: of a hand-over, for how long no group consumed the partitions.
    - by: who wrote, and why. A resumed write has what its last run had.
    """

    number: int = 1
    verb: Verb = Verb.HAND_OVER
    intent: str
    content: str
    started_at: datetime
    moved: tuple[str, ...] = ()
    not_watched: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    guard_readings: int = 0
    longest_gap: float | None = None
    outage: Outage = NOT_MEASURED
    by: WrittenBy = NOT_KNOWN

    @staticmethod
    def of(plan: Plan, started_at: datetime, verb: Verb = Verb.HAND_OVER, number: int = 1) -> Execution:
        """Return the record of a plan's write, as it is before the first request is sent.

        number: the position of the write in the receipt, from 1. Raises ``ValueError`` if an offset to write is not
        known yet.
        """
        if any(change.action is Action.NOT_MIRRORED for change in plan.changes):
            raise ValueError("the plan has an offset that is not known yet")
        return Execution(
            number=number,
            verb=verb,
            cluster_id=plan.cluster_id,
            options=plan.options,
            intent=plan.intent,
            content=plan.content,
            started_at=started_at,
            topic_ids=plan.topic_ids,
            translation=plan.translation,
            changes=tuple(
                structs.replace(change, outcome=Outcome.UNCHANGED) if change.action is Action.UNCHANGED else change
                for change in plan.changes
            ),
        )

    def resuming(self, earlier: Mapping[Order, Change]) -> Execution:
        """Return this write of offsets, changed so that it continues an interrupted write.

        A rollback then restores the offsets from before the interrupted write. Where another client has committed
        since, it restores that client's offset. earlier: the changes of the interrupted write.
        """
        return replace(self, changes=tuple(_resumed(each, earlier.get(each.order)) for each in self.changes))

    def origins(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return, by target group and topic, the source groups that hand over the topic; an empty set if none does."""
        # From all partitions of a topic, because a partition that was added during the run has no source group.
        claims: dict[tuple[str, str], set[str | None]] = defaultdict(set)
        for change in self.changes:
            claims[change.group, change.topic].add(change.source_group)
        return {place: frozenset(group for group in groups if group is not None) for place, groups in claims.items()}

    def sources(self) -> Mapping[Order, tuple[Source, ...]]:
        """Return the source groups of each partition, by target group, topic and partition number.

        A tuple is empty if the offset was set without a source group.
        """
        changes = self.changes
        if (there := self.translation) is not None:
            of_copy = {
                each.copy: Source(group=there.group, partition=each.source, stopped_at=each.stopped_at)
                for each in there.partitions
            }
            found = {change.order: of_copy.get(change.topic_partition) for change in changes}
            return {order: () if source is None else (source,) for order, source in found.items()}
        # Only a partition that was added during the run has no source group of its own.
        origins = self.origins() if any(change.source_group is None for change in changes) else {}
        return {
            change.order: (_source(change, change.source_group),)
            if change.source_group is not None
            else tuple(_source(change, group) for group in sorted(origins[change.group, change.topic]))
            for change in changes
        }

    def updated(self, changes: Iterable[Change]) -> Execution:
        """Return the execution with these changes in place of its own for the same group, topic and partition."""
        new = {change.order: change for change in changes}
        if not new:
            return self
        return replace(self, changes=tuple(new.get(change.order, change) for change in self.changes))

    def remarked(self, remark: str) -> Execution:
        """Return the execution with this message for the user added, if it is not there already."""
        return replace(self, remarks=tuple(dict.fromkeys((*self.remarks, remark))))

    def watched_as(self, other: Execution) -> Execution:
        """Return this record with what another one says of the groups that must no longer consume."""
        return replace(
            self,
            moved=other.moved,
            not_watched=other.not_watched,
            guard_readings=other.guard_readings,
            longest_gap=other.longest_gap,
        )

    @property
    def moved_in_words(self) -> str:
        """The first of the messages ``moved``, as past, with the time of the write."""
        return f"the {self.verb} of {self.started_at:%Y-%m-%d %H:%M} UTC said: {self.moved[0]}"

    def with_moved(self, reasons: Iterable[str]) -> Execution:
        """Return the execution with these messages added, about groups that consume although they must have stopped."""
        return replace(self, moved=tuple(dict.fromkeys((*self.moved, *reasons))))

    def with_reading(self, gap: float) -> Execution:
        """Return the execution with one more reading of the groups that must no longer consume.

        gap: the seconds since the previous reading, or since the start of the guard.
        """
        longest = max(gap, self.longest_gap or 0.0)
        return replace(self, guard_readings=self.guard_readings + 1, longest_gap=longest)

    def with_not_watched(self, reason: str) -> Execution:
        """Return the execution with this message added, about a group that could not be read after the write."""
        return replace(self, not_watched=tuple(dict.fromkeys((*self.not_watched, reason))))

    def count(self) -> Mapping[Outcome, int]:
        """Return how many changes have each outcome; 0 for an outcome that no change has."""
        return Counter(change.outcome for change in self.changes)

    @cached_property
    def failed(self) -> tuple[Change, ...]:
        """The changes whose offset is not known to be in place: refused, unknown or not attempted."""
        return tuple(change for change in self.changes if not change.settled)

    @property
    def is_whole(self) -> bool:
        """Whether all offsets are in place, and each group that must stop consuming was found to have stopped.

        Also, no partition without an offset was added to the topics.
        """
        return not (self.failed or self.moved or self.not_watched or self.added)

    @property
    def wrote_nothing(self) -> bool:
        """Whether every offset was in place before this write and before the interrupted writes that it resumes."""
        return all(change.action is Action.UNCHANGED for change in self.changes)


def _resumed(change: Change, earlier: Change | None) -> Change:
    if earlier is None or earlier.relation(change.before) not in (Relation.OURS, Relation.BEFORE):
        return change  # another client has committed, or the partition is new: its current offset is the pre-image
    own = tuple(each for each in dict.fromkeys(earlier.written) if each != change.after)
    resumed = structs.replace(change, before=earlier.before)
    if change.outcome is not Outcome.UNCHANGED:
        return structs.replace(resumed, own=own)
    if resumed.action is Action.UNCHANGED:
        return change
    # The interrupted run has put the offset in place: it is read back, and not written again.
    return structs.replace(resumed, outcome=Outcome.UNKNOWN, attempts=max(1, earlier.attempts), own=own)
