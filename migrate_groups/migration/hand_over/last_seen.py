"""Keep what may be lost before the hand-over: commits that expire, and log end offsets while a member consumes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.take import ObservedGroup, Reading
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.snapshot import Snapshot
from migrate_groups.text import counted


@dataclass(slots=True)
class LastCommitted:
    """The last known committed offsets of the source group, and whether it had stopped when they were read.

    If some or all of its commits expire before the hand-over, they are handed over from here, if the option
    ``vanished`` is "restore".
    """

    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    stopped: bool = False

    @staticmethod
    def of_look(look: ObservedGroup) -> LastCommitted:
        """Return the committed offsets in one observation of the group."""
        last = LastCommitted(stopped=look.description.stopped)
        last._note(look)
        return last

    @staticmethod
    def of_baseline(baseline: Snapshot) -> LastCommitted:
        """Return the committed offsets in the snapshot of the source group that an interrupted run saved."""
        rows = [*baseline.rows()]
        committed = {row.topic_partition: row.committed for row in rows if row.committed}
        return LastCommitted(committed, stopped=all(row.group_state == "Empty" for row in rows))

    def seen(self, look: ObservedGroup) -> bool:
        """Add the committed offsets of an observation; return whether it has any.

        Only observations of a stopped group have committed offsets.
        """
        if not look.committed or not look.description.exists:
            return False
        self.stopped = True
        return self._note(look)

    def refuse_unless_restorable(self, group: str, options: WriteOptions) -> None:
        """Raise `Refused` if a group no longer exists and its last known offsets can't be handed over.

        That is, if the option ``vanished`` is not "restore", or if the group still ran when they were read.
        """
        gone = (
            f"group {group!r} has no committed offset any more: {counted(len(self.committed), 'commit')} expired, or "
            "were deleted, since this run began"
        )
        if options.vanished != "restore":
            raise Refused(f'{gone}; vanished = "restore" hands over what it had committed; nothing was written')
        if not self.stopped:
            raise Refused(
                f"{gone}, and it was last seen while it still ran: where it stopped is not known; look at "
                "baseline.parquet in the run directory, and apply what is right; nothing was written"
            )

    def _note(self, look: ObservedGroup) -> bool:
        known = {partition: committed for partition, committed in look.committed.items() if committed is not None}
        self.committed.update(known)
        return bool(known)


@dataclass(slots=True)
class EndsWhileConsumed:
    """The log end offsets from when a member of the source group last consumed the topic.

    With ``uncommitted = "latest"``, a target group starts there in a partition without a commit, because the source
    group has not read any record that was produced later. Two conditions make a log end offset proven:

    - A later observation still finds a member on the topic. Without it, the log end may have been read after the last
      such member left, and records before it that nobody read would be skipped.
    - The last stable offset has reached the log end. If it has not, a transaction was open below the log end, and a
      ``read_committed`` member had not received its records.

    partitions: those without a commit. unproven: log ends that a later observation has to prove.
    """

    reader: GroupReader
    partitions: Collection[TopicPartition]
    unproven: Mapping[TopicPartition, int] = field(default_factory=dict)
    proven: Mapping[TopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def of(reader: GroupReader, baseline: Reading, options: WriteOptions) -> EndsWhileConsumed:
        """Return the unproven log ends of the partitions without a commit in ``baseline``, the first reading.

        Empty unless the option ``uncommitted`` is "latest".
        """
        ends = {
            partition: baseline.bounds[partition].end
            for partition, committed in baseline.observed.committed.items()
            if options.uncommitted == "latest" and committed is None and partition in baseline.bounds
        }
        watching = EndsWhileConsumed(reader=reader, partitions=ends.keys())
        watching._note(ends)
        return watching

    def seen(self, look: ObservedGroup) -> None:
        """Add an observation of the group.

        For each topic on which it shows a member, log ends that were read earlier are proven, and are read again.
        """
        held = frozenset[str]().union(*(member.topics for member in look.description.members))
        still = [partition for partition in self.partitions if partition.topic in held]
        if still:
            proven = {partition: self.unproven[partition] for partition in still if partition in self.unproven}
            self.proven = {**self.proven, **proven}
            self._note({partition: bounds.end for partition, bounds in self.reader.log_ranges(still).items()})

    def _note(self, ends: Mapping[TopicPartition, int]) -> None:
        """Keep the log ends that the last stable offset has reached, as unproven; it is read after them."""
        stable = self.reader.last_stable_offsets(ends) if ends else {}
        reached = {partition: end for partition, end in ends.items() if stable.get(partition, -1) >= end}
        self.unproven = {**self.unproven, **reached}
