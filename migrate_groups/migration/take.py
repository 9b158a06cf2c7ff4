"""Take a snapshot: committed offsets of groups, live or not, with the log's ends at the same moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from migrate_groups.clock import Clock
from migrate_groups.cluster.ports import GroupDescription, GroupReader, TopicPartition
from migrate_groups.errors import GroupNotFound, Refused, UsageError
from migrate_groups.offsets.selection import TopicPattern
from migrate_groups.offsets.snapshot import Row, Snapshot
from migrate_groups.text import some


def take_snapshot(reader: GroupReader, groups: Sequence[str], clock: Clock, *, topics: Iterable[str] = ()) -> Snapshot:
    """Return a snapshot of these groups.

    One row for every partition of every topic that a group has a commit, an assignment or a subscription for, and of
    ``topics``.
    Raises `GroupNotFound`; `Refused` for a share group; and as `GroupReader`.
    """
    described = [existing_group(reader, group) for group in dict.fromkeys(groups)]
    share = [group.group for group in described if group.group_type == "share"]
    if share:
        raise Refused(f"group {some(share)} is a share group: it commits no offsets of its own (KIP-932)")
    cluster_id = reader.cluster_id()
    return Snapshot.of_rows(row for group in described for row in _rows(reader, group, cluster_id, clock, topics))


def existing_group(reader: GroupReader, group: str) -> GroupDescription:
    """Describe a group. Raises `GroupNotFound` where it does not exist, `UsageError` where it has no name."""
    if not group:
        raise UsageError("a group name is empty")
    description = reader.describe_group(group)
    if not description.exists:
        raise GroupNotFound(f"group {group!r} does not exist on this cluster; check the name and --bootstrap-server")
    return description


def topics_of(reader: GroupReader, group: GroupDescription) -> frozenset[str]:
    """Return every topic that the group has a commit, an assignment or a subscription for."""
    return reader.committed_topics(group.group).union(*(member.topics for member in group.members))


def check_visible(reader: GroupReader, patterns: Iterable[TopicPattern]) -> None:
    """Ask for every topic that a pattern names, of which a group's own answers leave out those without Describe.

    Raises `NotAuthorized`, naming them; and as `GroupReader`.
    """
    reader.describe_topics({pattern.name for pattern in patterns if pattern.name is not None})


def _rows(
    reader: GroupReader, group: GroupDescription, cluster_id: str, clock: Clock, topics: Iterable[str]
) -> Iterator[Row]:
    described = reader.describe_topics(topics_of(reader, group).union(topics))
    partitions = [
        TopicPartition(name, partition) for name, topic in described.items() for partition in topic.partitions
    ]
    committed = reader.committed(group.group, partitions)
    taken_at = clock.now()
    bounds = reader.log_bounds(partitions)
    for partition in partitions:
        offset, ends = committed[partition], bounds.get(partition)
        yield Row(
            cluster_id=cluster_id,
            taken_at=taken_at,
            group=group.group,
            source_group=None,
            group_state=group.state,
            group_type=group.group_type,
            topic=partition.topic,
            topic_id=described[partition.topic].topic_id,
            partition=partition.partition,
            offset=offset.offset if offset else None,
            leader_epoch=offset.leader_epoch if offset else None,
            metadata=offset.metadata if offset else "",
            log_start_offset=ends.start if ends else None,
            log_end_offset=ends.end if ends else None,
        )
