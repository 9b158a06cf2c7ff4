"""The change of one partition's committed offset: what is wanted, what is decided, and what came of the write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from operator import attrgetter

from msgspec import structs

from migrate_groups.model.partitions import CommittedOffset, PartitionValue, TopicPartition

Order = tuple[str, str, int]
"""A group, a topic and a partition number: the key and the sort order of changes."""


class Origin(StrEnum):
    """The origin of the offset at which a target group is to start in a partition."""

    COMMITTED = "committed"
    """The source group's committed offset, or the offset in the file."""
    RESTORED = "restored"
    """The source group's committed offset when it was last seen. It has expired since, or was deleted."""
    PROVEN_END = "proven end"
    """The source group has no committed offset. The target group starts at a log end offset that was read while a
    member consumed the topic and no transaction was open below it. In a plan made before the source group stops, it is
    the current log end offset."""
    ADDED = "added"
    """The partition was added to the topic since the run began, and has no committed offset. The target group starts at
    the log start offset."""
    UNCOMMITTED = "uncommitted"
    """The source group has no committed offset, and none of the other origins applies."""
    NOT_MIRRORED = "not mirrored"
    """The offset is not known yet, because a mirror to another cluster has not delivered the records up to it."""
    ABSENT = "absent"
    """The topic has the partition, but the snapshot has no row for it."""


class Action(StrEnum):
    """What a change does to a group's committed offset for a partition.

    - create: set it where the group has none.
    - move: replace its offset, metadata or leader epoch.
    - delete: delete it.
    - unchanged: leave it, because it is already as planned.
    - not mirrored: not known yet, because a mirror has not delivered the records up to the offset to hand over. A plan
      with such a change is shown, and never written.
    """

    CREATE = "create"
    MOVE = "move"
    DELETE = "delete"
    UNCHANGED = "unchanged"
    NOT_MIRRORED = "not mirrored yet"


class Outcome(StrEnum):
    """The outcome of one change of a committed offset.

    - confirmed: the offset was written, and two clients read it back as planned.
    - confirmed by one client: the offset was written, and only the client that wrote it read it back.
    - unchanged: the offset was in place before, so nothing was sent.
    - refused: the broker refused the write, another client changed the offset, or two clients read back different
      offsets.
    - unknown: the offset may be in place, for instance because a broker did not answer.
    - not attempted: no request is recorded.
    """

    CONFIRMED = "confirmed"
    CONFIRMED_BY_ONE = "confirmed by one client"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_ATTEMPTED = "not attempted"


class Relation(StrEnum):
    """How a group's current committed offset relates to a change of it.

    - ours: this migration wrote it, or may have written it.
    - before: it is the one from before the change.
    - gone: there is none any more: it expired, or another client deleted it.
    - behind, ahead: another client committed a lower or a higher offset than the change sets.
    - other: another client committed. The offset is the one that the change sets, or the change deletes it.
    """

    OURS = "ours"
    BEFORE = "before"
    GONE = "gone"
    BEHIND = "behind"
    AHEAD = "ahead"
    OTHER = "other"


class Change(PartitionValue, frozen=True, kw_only=True):
    """The change of a group's committed offset for one partition, from what is wanted to what came of the write.

    What is wanted:

    - source_group: the group that hands over the partition to ``group``; None if there is none.
    - is_share: whether ``group`` is a share group (KIP-932), whose start offsets take the place of committed offsets.
    - origin: where the offset to start at comes from.
    - wanted: this offset; None if none is known. With `Origin.PROVEN_END` the option ``on_uncommitted`` decides
      whether it is used.
    - cluster_id, topic_id: the cluster and the topic from which it was read; None if not known.

    What is decided:

    - before, after: the group's committed offset before the write, and after it. None: no committed offset.
    - raised_from: the lower offset that the log start offset replaces in ``after``; None if nothing was replaced.
    - given_up: the lower offset that is not written, because the option ``on_existing`` is ``forward`` and the group
      keeps ``before``; otherwise None.

    What came of it, in a receipt:

    - outcome: whether ``after`` is in place.
    - attempts: how many times the change was sent.
    - error: why the offset is not known to be in place; empty if there was no error.
    - own: offsets that interrupted runs of this migration wrote to the partition, or may have written. None stands for
      a deletion. If the change was refused, but its offset may have been in place for a time, that offset is included.
    """

    source_group: str | None
    group: str
    topic: str
    partition: int
    is_share: bool = False
    origin: Origin = Origin.COMMITTED
    wanted: CommittedOffset | None = None
    cluster_id: str | None = None
    topic_id: str | None = None
    before: CommittedOffset | None = None
    after: CommittedOffset | None = None
    raised_from: int | None = None
    given_up: CommittedOffset | None = None
    outcome: Outcome = Outcome.NOT_ATTEMPTED
    attempts: int = 0
    error: str = ""
    own: tuple[CommittedOffset | None, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and the partition number as one value."""
        return TopicPartition(self.topic, self.partition)

    @property
    def order(self) -> Order:
        """The key by which changes are sorted: group, topic and partition number."""
        return self.group, self.topic, self.partition

    @property
    def committed(self) -> CommittedOffset | None:
        """The committed offset to take over, of the source group or from a file; None if there is none."""
        return self.wanted if self.origin is Origin.COMMITTED or self.origin is Origin.RESTORED else None

    @property
    def source_committed(self) -> CommittedOffset | None:
        """The source group's committed offset when it was read; None if it had none, or if there is no source group."""
        return self.committed if self.source_group is not None else None

    @property
    def start(self) -> int | None:
        """The offset at which the group is to start; None if the option ``on_uncommitted`` must decide it."""
        return None if self.wanted is None or self.origin is Origin.PROVEN_END else self.wanted.offset

    @property
    def action(self) -> Action:
        """What the change does to the committed offset: create, move, delete or leave it unchanged.

        `Action.NOT_MIRRORED` if that is not known yet.
        """
        before, after = self.before, self.after
        if self.origin is Origin.NOT_MIRRORED:
            return Action.NOT_MIRRORED
        if before == after:
            return Action.UNCHANGED
        if before is None:
            return Action.CREATE
        return Action.MOVE if after is not None else Action.DELETE

    @property
    def handed_over_at(self) -> int | None:
        """The source group's committed offset at the hand-over. If it had none, the offset that the target group gets.

        None if both offsets are missing.
        """
        stopped = self.source_committed or self.after
        return None if stopped is None else stopped.offset

    @property
    def inverse(self) -> Change:
        """The change that undoes this one: it sets the committed offset from ``after`` back to ``before``."""
        return Change(
            source_group=None,
            group=self.group,
            topic=self.topic,
            partition=self.partition,
            is_share=self.is_share,
            before=self.after,
            after=self.before,
        )

    @property
    def settled(self) -> bool:
        """Whether the offset is in place: it was written and read back, or it was there before the write."""
        return self.outcome in (Outcome.CONFIRMED, Outcome.CONFIRMED_BY_ONE, Outcome.UNCHANGED)

    @property
    def written(self) -> tuple[CommittedOffset | None, ...]:
        """The offsets that this migration wrote to the partition, or may have written. None stands for a deletion.

        Offsets of interrupted runs that this run resumes are included.
        """
        # A run that resumes an interrupted one may write the offset from before again, and then has written it.
        is_left = self.action is Action.UNCHANGED and self.outcome is Outcome.UNCHANGED
        if is_left or self.outcome is Outcome.REFUSED:
            return self.own
        # A run that was killed before it recorded the broker's answer has left the outcome `not attempted`.
        return *self.own, self.after

    @property
    def replaced(self) -> bool:
        """Whether the offset from before is known to have been replaced: the new one was written and read back."""
        return self.settled and self.outcome is not Outcome.UNCHANGED

    def relation(self, now: CommittedOffset | None) -> Relation:
        """Return how the group's current committed offset relates to this change. now: None if there is none.

        Each caller says which relations it takes for a commit of the group's application. A higher offset shows that it
        has consumed. The offset from before does not, but where ``replaced`` it is not known why it is there again.
        """
        if now in self.written:
            return Relation.OURS
        if now == self.before:
            return Relation.BEFORE
        if now is None:
            return Relation.GONE
        if self.after is None or now.offset == self.after.offset:
            return Relation.OTHER
        return Relation.AHEAD if now.offset > self.after.offset else Relation.BEHIND

    def is_lowered(self, now: CommittedOffset | None) -> bool:
        """Return whether the group lacks the offset that the change sets, or has a lower one, whoever wrote that.

        Records before the offset that was set would then be processed twice. now: the current committed offset.
        """
        return self.after is not None and (now is None or now.offset < self.after.offset)

    def unknown(self, error: str) -> Change:
        """Return the change with the outcome ``unknown`` and this error: the offset may be in place."""
        return structs.replace(self, outcome=Outcome.UNKNOWN, error=error)

    def refused(self, error: str, *, sent: bool = False) -> Change:
        """Return the change with the outcome ``refused`` and this error.

        sent: whether the group may have had the new offset for a time. If so, this offset is added to ``own``.
        """
        own = (*self.own, self.after) if sent and self.after not in self.own else self.own
        return structs.replace(self, outcome=Outcome.REFUSED, error=error, own=own)


def sorted_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes sorted by group, topic and partition."""
    return tuple(sorted(changes, key=attrgetter("group", "topic", "partition")))


def share_groups(changes: Iterable[Change]) -> list[str]:
    """Return the share groups of these changes, sorted."""
    return sorted({change.group for change in changes if change.is_share})


def partitions_by_group(changes: Iterable[Change]) -> dict[str, list[TopicPartition]]:
    """Return the partitions of the changes by group, in the same order."""
    return {group: [change.topic_partition for change in of_it] for group, of_it in by_group(changes).items()}


def by_group(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Return the changes by group, in the same order."""
    groups: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        groups[change.group].append(change)
    return groups
