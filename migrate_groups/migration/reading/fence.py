"""Read the log end offsets of ``__consumer_offsets`` once the source group has stopped (the fence).

`audit` later reads the topic from these offsets on, to find every commit since then.
"""

from __future__ import annotations

from migrate_groups.clock import Clock
from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.fence import Fence
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.partitions import TopicPartition


def take_fence(reader: GroupReader, clock: Clock) -> Fence | None:
    """Return the fence: the current log end offset of each partition of ``__consumer_offsets``.

    In the fence, the log end offset of a partition without a leader is None. The result is None if the topic does not
    exist, or if the client's principal may not describe it. Raises `ClusterUnavailable`.
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
