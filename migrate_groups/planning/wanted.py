"""What a plan is made from: for each partition of a target group what its source group had committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum

from migrate_groups.model.partitions import CommittedOffset, PartitionValue, TopicPartition
from migrate_groups.planning.survey import Survey
from migrate_groups.snapshots.snapshot import Row


class Origin(StrEnum):
    """From where it is known at which offset a target group is to start."""

    COMMITTED = "committed"
    """The source group has it committed, or the file says so."""
    RESTORED = "restored"
    """The source group had it committed when it was last seen; it has expired since, or was deleted."""
    PROVEN_END = "proven end"
    """Nothing is committed: the log end offset from while a member consumed the topic, no transaction open below it."""
    ADDED = "added"
    """The partition was added since the plan was first made, and nobody has read it: its log start offset."""
    UNCOMMITTED = "uncommitted"
    """Nothing is committed, and nothing else is known."""
    ABSENT = "absent"
    """The file does not have the partition, which its topic has."""


class Wanted(PartitionValue, frozen=True, kw_only=True):
    """A partition that a target group is to get.

    group: the target. source_group: the one that hands over; None where the offset is simply set. committed: whole, as
    the source group has it; None where nothing is. start: the offset of a `PROVEN_END` or an `ADDED` partition.
    cluster_id and topic_id: where the offset was read, None where that is not known.
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
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def offset(self) -> int | None:
        """The offset to start at, whatever the options say; None where they decide."""
        if self.committed is not None:
            return self.committed.offset
        return self.start if self.origin is Origin.ADDED else None


def wanted_rows(rows: Iterable[Row]) -> list[Wanted]:
    """Return what the rows of a file ask for; those that name no group ask for nothing."""
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
    """Return the partitions of the topics that are handed over which are not among those that are asked for."""
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
        if topic in survey.topics and (like := next(iter(of_topic.values()))).source_group is not None
        for partition in survey.topics[topic].partitions
        if partition not in of_topic
    ]
