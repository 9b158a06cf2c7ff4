"""Read the log end offsets of ``__consumer_offsets`` from which `audit` later reads the commits."""

from __future__ import annotations

from migrate_groups.clock import Clock
from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.fence import Fence
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.partitions import TopicPartition


def take_fence(reader: GroupReader, clock: Clock) -> Fence | None:
    """Return the current log end offset of each ``__consumer_offsets`` partition, from which `audit` later reads.

    The offset of a partition without a leader is None. The result is None if the client's principal may not describe
    the topic, or if the topic does not exist.
    """
    try:
        described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if described is None:
            return None
        partitions = [TopicPartition(OFFSETS_TOPIC, number) for number in described.partitions]
        bounds = reader.log_ranges(partitions)
    except NotAuthorized:
        return None
    ends = {each.partition: bounds[each].end if each in bounds else None for each in partitions}
    return Fence(cluster_id=reader.cluster_id(), taken_at=clock.now(), ends=ends)
