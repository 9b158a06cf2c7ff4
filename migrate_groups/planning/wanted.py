"""The input of a plan: each partition that a target group takes over, and the offset to start at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum

from migrate_groups.model.partitions import CommittedOffset, PartitionValue, TopicPartition
from migrate_groups.planning.survey import Survey
from migrate_groups.snapshots.row import Row


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


class Wanted(PartitionValue, frozen=True, kw_only=True):
    """A partition that a target group takes over, and the offset at which the group is to start.

    - group: the target group.
    - source_group: the group that hands over the partition; None if there is none.
    - committed: the committed offset to take over; None if there is none.
    - start: the offset to use if ``committed`` is None, such as the log start offset; None if none is known.
    - cluster_id, topic_id: the cluster and the topic from which the offset was read; None if not known.
    """

    group: str
    source_group: str | None
    topic: str
    partition: int
    committed: CommittedOffset | None
    origin: Origin
    start: int | None = None
    cluster_id: str | None = None
    topic_id: str | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and the partition number as one value."""
        return TopicPartition(self.topic, self.partition)

    @property
    def offset(self) -> int | None:
        """The offset at which the target group is to start; None if the option ``uncommitted`` must decide it."""
        if self.committed is not None:
            return self.committed.offset
        return self.start if self.origin is Origin.ADDED else None


def wanted_rows(rows: Iterable[Row]) -> list[Wanted]:
    """Return a `Wanted` (a partition and the offset to start at) for each snapshot row that has a target group."""
    return [
        Wanted(
            group=row.group,
            source_group=row.source_group,
            topic=row.topic,
            partition=row.partition,
            committed=row.committed,
            origin=Origin.UNCOMMITTED if row.offset is None else Origin.COMMITTED,
            cluster_id=row.cluster_id,
            topic_id=row.topic_id,
        )
        for row in rows
        if row.group is not None
    ]


def absent(wanted: Sequence[Wanted], survey: Survey) -> list[Wanted]:
    """Return the partitions that ``wanted`` lacks, for topics that a source group hands over.

    A partition is returned once for each target group of its topic, without a committed offset.
    """
    present: dict[tuple[str, str], dict[int, Wanted]] = defaultdict(dict)
    for each in wanted:
        present[each.group, each.topic][each.partition] = each
    return [
        Wanted(
            group=group,
            source_group=like.source_group,
            topic=topic,
            partition=partition,
            committed=None,
            origin=Origin.ABSENT,
            cluster_id=like.cluster_id,
            topic_id=like.topic_id,
        )
        for (group, topic), of_topic in present.items()
        if topic in survey.topics
        and (like := next((each for each in of_topic.values() if each.source_group is not None), None)) is not None
        for partition in survey.topics[topic].partitions
        if partition not in of_topic
    ]
