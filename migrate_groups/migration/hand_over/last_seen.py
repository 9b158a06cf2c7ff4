"""What only the time before the stop can tell: commits that expire meanwhile, and log ends while a member consumed."""

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
    """What a group was last seen to have committed, and whether it had stopped by then.

    Where its commits expire during the wait, all of them even, this is what ``vanished = "restore"`` hands over.
    """

    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    stopped: bool = False

    @staticmethod
    def of_look(look: ObservedGroup) -> LastCommitted:
        """Return what one look saw."""
        last = LastCommitted(stopped=look.description.stopped)
        last._note(look)
        return last

    @staticmethod
    def of_baseline(baseline: Snapshot) -> LastCommitted:
        """Return what an interrupted run saw."""
        rows = [*baseline.rows()]
        committed = {row.topic_partition: row.committed for row in rows if row.committed}
        return LastCommitted(committed, stopped=all(row.group_state == "Empty" for row in rows))

    def seen(self, look: ObservedGroup) -> bool:
        """Take note of a look at the group once it had stopped; return whether it saw anything."""
        if not look.committed or not look.description.exists:
            return False
        self.stopped = True
        return self._note(look)

    def refuse_unless_restorable(self, group: str, options: WriteOptions) -> None:
        """Raise `Refused` where a group that is gone can't be handed over from what was last seen of it."""
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
    """The log's ends as they were while a member of the old group was last seen on their topic.

    A partition without a commit starts there (``uncommitted = "latest"``): nobody has seen what is produced after that.
    An end counts once a later look still finds a member there: one read after the last of them left, while others of
    the group go on with other topics, would skip records. And it counts only where no transaction was open below it,
    whose records a ``read_committed`` member had not been handed by then.
    """

    reader: GroupReader
    partitions: Collection[TopicPartition]
    unproven: Mapping[TopicPartition, int] = field(default_factory=dict)
    proven: Mapping[TopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def of(reader: GroupReader, baseline: Reading, options: WriteOptions) -> EndsWhileConsumed:
        """Return the ends of the baseline's partitions without a commit, which no later look has proved yet.

        There is nothing to watch where the options want no ends.
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
        """Take note of a look at the group."""
        held = frozenset[str]().union(*(member.topics for member in look.description.members))
        still = [partition for partition in self.partitions if partition.topic in held]
        if still:
            proven = {partition: self.unproven[partition] for partition in still if partition in self.unproven}
            self.proven = {**self.proven, **proven}
            self._note({partition: bounds.end for partition, bounds in self.reader.log_ranges(still).items()})

    def _note(self, ends: Mapping[TopicPartition, int]) -> None:
        """Note ends that have been read, where the last stable offset, which is read only now, is not before them."""
        stable = self.reader.last_stable_offsets(ends) if ends else {}
        reached = {partition: end for partition, end in ends.items() if stable.get(partition, -1) >= end}
        self.unproven = {**self.unproven, **reached}
