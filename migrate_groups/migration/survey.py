"""Ask the cluster for all that a write involves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from migrate_groups.cluster.ports import GroupReader, TopicPartition
from migrate_groups.offsets.snapshot import Row
from migrate_groups.plan.survey import Survey


def survey(reader: GroupReader, rows: Sequence[Row]) -> Survey:
    """Return the facts about the groups, topics and partitions of these rows, each of which names its group.

    Every partition of every topic is asked for explicitly, so that a topic hidden by an ACL is an error and not an
    omission. Raises as `GroupReader`.
    """
    topics = reader.describe_topics({row.topic for row in rows})
    wanted: dict[str, set[TopicPartition]] = defaultdict(set)
    for row in rows:
        partitions = topics[row.topic].partitions if row.topic in topics else ()
        asked = {row.topic_partition, *(TopicPartition(row.topic, partition) for partition in partitions)}
        for group in (row.group, row.source_group):
            if group is not None:
                wanted[group] |= asked
    existing = {TopicPartition(name, partition) for name, topic in topics.items() for partition in topic.partitions}
    return Survey(
        cluster_id=reader.cluster_id(),
        groups={group: reader.describe_group(group) for group in wanted},
        committed={group: reader.committed(group, partitions) for group, partitions in wanted.items()},
        topics=topics,
        bounds=reader.log_bounds(existing),
    )
