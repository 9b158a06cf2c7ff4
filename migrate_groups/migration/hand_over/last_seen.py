"""Keep facts that can no longer be read once the source group has stopped.

They are committed offsets, which may expire, and log end offsets from the time when members still consumed the topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.take import ObservedGroup, Reading
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.topics import TopicDescription, is_recreated
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted


@dataclass(slots=True)
class LastCommitted:
    """The last known committed offsets of the source group.

    If some or all of them expire before the hand-over, and the option ``vanished`` is "restore", these last known
    offsets are handed over. stopped: whether the group had stopped when they were read.
    """

    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    stopped: bool = False

    @staticmethod
    def of_observation(look: ObservedGroup) -> LastCommitted:
        """Return the committed offsets in one observation of the group."""
        last = LastCommitted(stopped=look.description.stopped)
        last._note(look)
        return last

    @staticmethod
    def of_baseline(baseline: SnapshotTable) -> LastCommitted:
        """Return the committed offsets in the snapshot of the source group that an interrupted run saved."""
        rows = [*baseline.rows()]
        committed = {row.topic_partition: row.committed for row in rows if row.committed}
        return LastCommitted(committed, stopped=all(row.group_state == "Empty" for row in rows))

    def forget_recreated(self, baseline: SnapshotTable, topics: Mapping[str, TopicDescription]) -> None:
        """Remove the offsets of topics that were deleted and created again since the baseline.

        They do not apply to the new topics. topics: the topics as they are now.
        """
        for row in baseline.rows():
            if row.topic in topics and is_recreated(row.topic_id, topics[row.topic].topic_id):
                self.committed.pop(row.topic_partition, None)

    def seen(self, look: ObservedGroup) -> bool:
        """Keep the committed offsets of an observation of the source group; return whether it has any.

        The observation is made while this tool waits for the group to stop. It has committed offsets only if the group
        has stopped.
        """
        if not look.committed or not look.description.exists:
            return False
        self.stopped = True
        return self._note(look)

    def refuse_unless_restorable(self, group: str, options: WriteOptions) -> None:
        """Raise `Refused` if the last known offsets of a group that no longer exists can't be handed over.

        They can't be handed over if the option ``vanished`` is not "restore", or if the group still ran when they were
        read. The caller has found that the group does not exist.
        """
        gone = (
            f"group {group!r} has no committed offset any more: {counted(len(self.committed), 'committed offset')} "
            "expired or deleted since this run began"
        )
        if options.vanished != "restore":
            raise Refused(f"{gone}; pass --vanished restore to hand over the offsets read before; nothing was written")
        if not self.stopped:
            raise Refused(
                f"{gone}; the group still ran when they were read, so it is not known where it stopped: check the "
                "offsets in baseline.parquet in the run directory, and write the right ones with apply; nothing was "
                "written"
            )

    def _note(self, look: ObservedGroup) -> bool:
        known = {partition: committed for partition, committed in look.committed.items() if committed is not None}
        self.committed.update(known)
        return bool(known)


@dataclass(slots=True)
class EndsWhileConsumed:
    """The offsets at which target groups start in partitions without a committed offset of the source group.

    They are used with the option ``uncommitted`` "latest". Such an offset is the last log end offset that was read
    while a member of the source group still consumed the topic. The log end offset at the time of the write would be
    too high: records that were produced after the last member had left would be skipped.

    While the source group runs, the log end offsets are read again and again. A log end offset is proven, and may be
    used, if both of these conditions hold:

    - A later observation finds the group Stable, with a member on the topic. So a member still consumed the topic after
      the log end offset was read. In other states this is not certain: a KIP-848 member that is subscribed to the topic
      may have none of its partitions.
    - The last stable offset has reached the log end offset. Otherwise a transaction was open, and a ``read_committed``
      member had not received its records.

    partitions: the partitions without a committed offset; none if ``uncommitted`` is not "latest". unproven: by
    partition, a log end offset that a later observation has to prove. proven: by partition, the offset to start at.
    """

    reader: GroupReader
    partitions: Collection[TopicPartition]
    unproven: Mapping[TopicPartition, int] = field(default_factory=dict)
    proven: Mapping[TopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def of(reader: GroupReader, baseline: Reading, options: WriteOptions) -> EndsWhileConsumed:
        """Return the log end offsets of the partitions without a committed offset, as ``unproven``.

        Unproven: it is not known yet whether a member consumed the topic after they were read. The result has no
        partitions if the option ``uncommitted`` is not "latest". baseline: what was read of the source group before
        this tool waits for it to stop.
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
        """Add an observation of the source group, made while this tool waits for it to stop.

        If the group is Stable and a member is assigned or subscribed to a topic, the topic was still consumed after its
        log end offsets were last read. So target groups may start at those offsets, and they become ``proven``. Then
        the log end offsets are read again, for the next observation.
        """
        members = look.description.members if look.description.state == "Stable" else ()
        held = frozenset[str]().union(*(member.topics for member in members))
        still = [partition for partition in self.partitions if partition.topic in held]
        if still:
            proven = {partition: self.unproven[partition] for partition in still if partition in self.unproven}
            self.proven = {**self.proven, **proven}
            self._note({partition: bounds.end for partition, bounds in self.reader.log_ranges(still).items()})

    def _note(self, ends: Mapping[TopicPartition, int]) -> None:
        """Add log end offsets to ``unproven``, until a member is seen to consume the topic after they were read.

        Those above the last stable offset are left out: ``read_committed`` members have not received all records before
        them.
        """
        stable = self.reader.last_stable_offsets(ends) if ends else {}
        reached = {partition: end for partition, end in ends.items() if stable.get(partition, -1) >= end}
        self.unproven = {**self.unproven, **reached}
