"""Find each partition's offset to hand over: the source group's committed offset, or a substitute if it has none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from migrate_groups.migration.hand_over.last_seen import LastCommitted
from migrate_groups.migration.reading.take import Reading
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Change, Origin
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.translation import Translation
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

    def wanted(self, reading: Reading) -> list[Change]:
        """Return what is wanted for each partition of a target group, sorted, from what was read of the source group.

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
        return sorted(found, key=attrgetter("order"))

    def _wanted(
        self, reading: Reading, group: str, partition: TopicPartition, committed: CommittedOffset | None
    ) -> Change:
        origin = Origin.COMMITTED
        if committed is None:
            origin, committed = self._without_commit(reading, group, partition)
        return Change(
            group=group,
            source_group=None if origin is Origin.ADDED else self.spec.source,
            is_share=group in self.spec.share_groups,
            topic=partition.topic,
            partition=partition.partition,
            origin=origin,
            wanted=committed,
            cluster_id=reading.cluster_id,
            topic_id=reading.observed.topics[partition.topic].topic_id,
        )

    def _without_commit(
        self, reading: Reading, group: str, partition: TopicPartition
    ) -> tuple[Origin, CommittedOffset | None]:
        """Return where a target group starts if the source group has no committed offset now, and the offset's origin.

        The offset is None if none is known.
        """
        if (last := self.last.committed.get(partition)) is not None:
            return Origin.RESTORED, last
        if (translation := self._translation) is not None and (known := translation.of(partition)) is not None:
            if known.committed is None:
                return Origin.ADDED, CommittedOffset(offset=known.offset)
            return Origin.RESTORED, CommittedOffset(offset=known.committed)
        earlier = self._earlier.get((group, *partition))
        if earlier is not None and earlier.after is not None:
            if earlier.source_committed is not None:  # the source offset has expired since
                return Origin.RESTORED, earlier.source_committed
            origin = Origin.ADDED if earlier.source_group is None else Origin.PROVEN_END
            return origin, CommittedOffset(offset=earlier.after.offset)
        bounds = reading.bounds.get(partition)
        # A partition that is missing in the interrupted run was added since, unless that run left out partitions
        # without a commit.
        of_earlier = (group, partition.topic) in self._earlier_topics and self.options.on_uncommitted != "leave"
        is_new = self.baseline is not None and partition not in self.baseline.observed.committed
        if bounds is not None and (of_earlier or is_new):
            return Origin.ADDED, CommittedOffset(offset=bounds.start)
        if partition in self.ends:
            return Origin.PROVEN_END, CommittedOffset(offset=self.ends[partition])
        return Origin.UNCOMMITTED, None

    @property
    def _translation(self) -> Translation | None:
        return self.receipt.hand_over_to_resume.translation if self.receipt.hand_over_to_resume else None

    @cached_property
    def _earlier(self) -> Mapping[tuple[str, str, int], Change]:
        hand_over = self.receipt.hand_over_to_resume
        changes = hand_over.changes if hand_over else ()
        return {change.order: change for change in changes if change.after is not None}

    @cached_property
    def _earlier_topics(self) -> frozenset[tuple[str, str]]:
        copied = {copy: topic for topic, copy in self._translation.topics} if self._translation else {}
        return frozenset((group, copied.get(topic, topic)) for group, topic, _ in self._earlier)


def ends_of_live(reading: Reading) -> Mapping[TopicPartition, int]:
    """Return the log end offset of each partition if the group is running; empty if the group is Empty or Dead.

    These offsets are only for the plan that is shown before the group has stopped.
    """
    if reading.observed.description.state in ("Empty", "Dead"):
        return {}
    return reading.ends
