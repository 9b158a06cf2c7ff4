"""Find each partition's offset to hand over: the source group's committed offset, or a substitute if it has none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from migrate_groups.migration.hand_over.last_seen import LastCommitted
from migrate_groups.migration.reading.take import Reading
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Change
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.translation import Translation
from migrate_groups.planning.wanted import Origin, Wanted
from migrate_groups.snapshots.split import SplitSpec, cover


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """Facts from before the source group stopped, for partitions in which it has no committed offset any more.

    - spec: which target group gets which topics.
    - receipt: the record of the run, with offsets that an interrupted run wrote.
    - last: the last known committed offsets of the source group.
    - ends: log end offsets that were read while a member consumed the topic.
    - baseline: the source group as read before the wait for its stop; None until this wait.
    """

    spec: SplitSpec
    options: WriteOptions
    receipt: Receipt
    last: LastCommitted
    ends: Mapping[TopicPartition, int]
    baseline: Reading | None = None

    def wanted(self, reading: Reading) -> AllWanted:
        """Return the partitions and offsets that the target groups get, from what was read of the source group.

        Raises `InvalidInput` if the split does not cover the group's topics.
        """
        takers: dict[str, list[str]] = defaultdict(list)
        for group, taken in cover(self.spec, reading.observed.topics).targets.items():
            for topic in taken:
                takers[topic].append(group)
        found = [
            self._wanted(reading, group, partition, committed)
            for partition, committed in reading.observed.committed.items()
            for group in takers.get(partition.topic, ())
        ]
        partitions = sorted(found, key=attrgetter("group", "topic", "partition"))
        return AllWanted(knowledge=self, reading=reading, partitions=partitions)

    def _wanted(
        self, reading: Reading, group: str, partition: TopicPartition, committed: CommittedOffset | None
    ) -> Wanted:
        start: int | None = None
        source: str | None = self.spec.source
        if committed is not None:
            origin = Origin.COMMITTED
        elif (committed := self.last.committed.get(partition)) is not None:
            origin = Origin.RESTORED
        else:
            origin, committed, start = self._uncommitted(reading, group, partition)
            source = None if origin is Origin.ADDED else source
        return Wanted(
            group=group,
            source_group=source,
            topic=partition.topic,
            partition=partition.partition,
            committed=committed,
            origin=origin,
            start=start,
            cluster_id=reading.cluster_id,
            topic_id=reading.observed.topics[partition.topic].topic_id,
        )

    def _uncommitted(
        self, reading: Reading, group: str, partition: TopicPartition
    ) -> tuple[Origin, CommittedOffset | None, int | None]:
        """Return what a target group gets for a partition in which the source group has no committed offset now.

        The result is the origin of the offset, the source group's expired committed offset, and the offset to start at
        instead. At least one of the two offsets is None.
        """
        if (translation := self._translation) is not None and (known := translation.of(partition)) is not None:
            if known.committed is None:
                return Origin.ADDED, None, known.offset
            return Origin.RESTORED, CommittedOffset(offset=known.committed), None
        earlier = self._earlier.get((group, *partition))
        if earlier is not None and earlier.after is not None:
            if earlier.source_committed is not None:  # the source offset has expired since
                return Origin.RESTORED, earlier.source_committed, None
            added = earlier.source_group is None
            return Origin.ADDED if added else Origin.PROVEN_END, None, earlier.after.offset
        bounds = reading.bounds.get(partition)
        # A partition that is missing in the interrupted run was added since, unless that run left out partitions
        # without a commit.
        of_earlier = (group, partition.topic) in self._earlier_topics and self.options.uncommitted != "leave"
        is_new = self.baseline is not None and partition not in self.baseline.observed.committed
        if bounds is not None and (of_earlier or is_new):
            return Origin.ADDED, None, bounds.start
        if partition in self.ends:
            return Origin.PROVEN_END, None, self.ends[partition]
        return Origin.UNCOMMITTED, None, None

    @property
    def _translation(self) -> Translation | None:
        return self.receipt.hand_over.translation if self.receipt.hand_over else None

    @cached_property
    def _earlier(self) -> Mapping[tuple[str, str, int], Change]:
        hand_over = self.receipt.hand_over
        changes = (entry.change for entry in hand_over.entries) if hand_over else ()
        return {change.order: change for change in changes if change.after is not None}

    @cached_property
    def _earlier_topics(self) -> frozenset[tuple[str, str]]:
        copied = {copy: topic for topic, copy in self._translation.topics} if self._translation else {}
        return frozenset((group, copied.get(topic, topic)) for group, topic, _ in self._earlier)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllWanted:
    """The partitions and offsets that the target groups are to get, and the facts from which they were found.

    knowledge: facts from before the source group stopped. reading: the source group's description, committed offsets
    and log ranges. partitions: sorted by group, topic and partition.
    """

    knowledge: Knowledge
    reading: Reading
    partitions: Sequence[Wanted]


def ends_of_live(reading: Reading) -> Mapping[TopicPartition, int]:
    """Return the log end offset of each partition if the group is running; empty if the group is Empty or Dead.

    These offsets are only for the plan that is shown before the group has stopped.
    """
    if reading.observed.description.state in ("Empty", "Dead"):
        return {}
    return reading.ends
