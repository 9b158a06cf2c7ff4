"""Keep committed offsets, which may expire, and log end offsets that were read while the source group ran."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.take import Reading
from migrate_groups.model.groups import ObservedGroup
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.topics import TopicDescription, recreated_topics, topic_ids
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted


@dataclass(slots=True)
class LastCommitted:
    """The last known committed offsets of the source group.

    With the option ``on_removed`` "restore", they replace committed offsets that expire before the write. stopped:
    whether the group had stopped when they were read.
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
        """Remove the offsets of topics that were deleted and created again since the snapshot ``baseline``.

        topics: the topics as they are now.
        """
        recreated = recreated_topics(((row.topic, row.topic_id) for row in baseline.rows()), topic_ids(topics))
        self.committed = {each: offset for each, offset in self.committed.items() if each.topic not in recreated}

    def seen(self, look: ObservedGroup) -> bool:
        """Keep the committed offsets of an observation of the source group; return whether it has any."""
        if not look.committed or not look.description.exists:
            return False
        # The caller waits for the stop, and an observation has committed offsets only once the group has stopped.
        self.stopped = True
        return self._note(look)

    def refuse_unless_restorable(self, group: str, options: WriteOptions) -> None:
        """Raise `Refused` if the last known offsets of a group that no longer exists may not be handed over.

        They may be handed over if ``on_removed`` is "restore" and the group had stopped when they were read.
        """
        gone = (
            f"group {group!r} has no committed offset any more: {counted(len(self.committed), 'committed offset')} "
            "expired or deleted since this run began"
        )
        if not self.stopped:
            raise Refused(
                f"{gone}; the group still ran when they were read, so it is not known where it stopped: check the "
                "offsets in baseline.parquet in the run directory, and write the right ones with apply; nothing was "
                "written"
            )
        if options.on_removed != "restore":
            raise Refused(
                f"{gone}; pass --on-removed restore to hand over the offsets read before; nothing was written"
            )

    def _note(self, look: ObservedGroup) -> bool:
        known = {partition: committed for partition, committed in look.committed.items() if committed is not None}
        self.committed.update(known)
        return bool(known)


@dataclass(slots=True)
class EndsWhileConsumed:
    """Log end offsets at which target groups start in partitions without a committed offset.

    They are used with the option ``on_uncommitted`` "latest".

    - proven: the offsets to start at. A member still consumed the topic later, so no record is skipped.
    - unproven: log end offsets that become ``proven`` if a member is seen on the topic later.
    """

    reader: GroupReader
    partitions: Collection[TopicPartition]
    unproven: Mapping[TopicPartition, int] = field(default_factory=dict)
    proven: Mapping[TopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def of(reader: GroupReader, baseline: Reading, options: WriteOptions) -> EndsWhileConsumed:
        """Return the log end offsets of the partitions without a committed offset, as ``unproven``.

        They become ``proven`` if a member is seen on the topic later. The result is empty if the option
        ``on_uncommitted`` is not "latest". baseline: the source group as read before the wait for its stop.
        """
        ends = {
            partition: baseline.bounds[partition].end
            for partition, committed in baseline.observed.committed.items()
            if options.on_uncommitted == "latest" and committed is None and partition in baseline.bounds
        }
        watching = EndsWhileConsumed(reader=reader, partitions=ends.keys())
        watching._note(ends)
        return watching

    def seen(self, look: ObservedGroup) -> None:
        """Add an observation of the source group, made during the wait for its stop.

        If a member still consumes a topic, the topic's log end offsets in ``unproven`` become ``proven``. Then the
        topic's log end offsets are read again.
        """
        # In other states a KIP-848 member that is subscribed to the topic may have none of its partitions.
        members = look.description.members if look.description.state == "Stable" else ()
        held = frozenset[str]().union(*(member.topics for member in members))
        still = [partition for partition in self.partitions if partition.topic in held]
        if still:
            proven = {partition: self.unproven[partition] for partition in still if partition in self.unproven}
            self.proven = {**self.proven, **proven}
            self._note({partition: bounds.end for partition, bounds in self.reader.log_ranges(still).items()})

    def _note(self, ends: Mapping[TopicPartition, int]) -> None:
        """Add log end offsets to ``unproven``, except those above the last stable offset.

        Offsets in ``unproven`` are used only if a member is seen on the topic later.
        """
        stable = self.reader.last_stable_offsets(ends) if ends else {}
        # Above the last stable offset a transaction is open: `read_committed` members have not received its records.
        reached = {partition: end for partition, end in ends.items() if stable.get(partition, -1) >= end}
        self.unproven = {**self.unproven, **reached}
