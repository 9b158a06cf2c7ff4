"""Requests about groups and their committed offsets that raise the first error in place of returning it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from migrate_groups.errors import GroupNotFound, UsageError, raise_first
from migrate_groups.migration.ports import GroupReader, OffsetsReader
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset, CommittedOffsets, TopicPartition
from migrate_groups.planning.change import Order


def describe_groups(reader: GroupReader, groups: Collection[str]) -> Mapping[str, GroupDescription]:
    """Return the description of each group. A group that does not exist is ``Dead``.

    Raises the first error of `GroupReader.describe_groups`.
    """
    return raise_first(reader.describe_groups(groups))


def describe_group(reader: GroupReader, group: str) -> GroupDescription:
    """Return the description of a group; raises as `describe_groups`."""
    return describe_groups(reader, [group])[group]


def existing_group(reader: GroupReader, group: str) -> GroupDescription:
    """Return the description of a group.

    Raises `GroupNotFound`; `UsageError` for an empty name; the errors of `describe_groups`.
    """
    return existing(describe_group(reader, not_empty(group)))


def existing(description: GroupDescription) -> GroupDescription:
    """Return the description of a group unchanged. Raises `GroupNotFound` if the group does not exist."""
    if not description.exists:
        raise GroupNotFound(description.group)
    return description


def not_empty(group: str) -> str:
    """Return the name of a group unchanged. Raises `UsageError` if it is empty."""
    if not group:
        raise UsageError("a group name is empty: name a group")
    return group


def read_committed(
    reader: OffsetsReader, wanted: Mapping[str, Collection[TopicPartition]]
) -> Mapping[str, CommittedOffsets]:
    """Return the committed offsets of each group for its partitions in ``wanted``; None: no committed offset.

    Waits for pending transactional commits. Raises the first error of `OffsetsReader.committed`.
    """
    return raise_first(reader.committed(wanted))


def read_all_committed(reader: GroupReader, groups: Collection[str]) -> Mapping[str, CommittedOffsets]:
    """Return all committed offsets of each group; None: a transactional commit is pending for the partition.

    Does not wait. Leaves out the partitions that `GroupReader.committed` leaves out, and raises its first error.
    """
    return raise_first(reader.committed(dict.fromkeys(groups), wait=False))


def committed_by_order(reader: OffsetsReader, orders: Iterable[Order]) -> dict[Order, CommittedOffset | None]:
    """Return the current committed offset for each group, topic and partition in ``orders``; None: no committed offset.

    Waits and raises as `read_committed`.
    """
    return {
        (group, *partition): committed
        for group, offsets in committed_of(reader, orders).items()
        for partition, committed in offsets.items()
    }


def committed_of(reader: OffsetsReader, orders: Iterable[Order]) -> Mapping[str, CommittedOffsets]:
    """Return the same offsets as `committed_by_order`, by group and partition."""
    wanted: dict[str, dict[TopicPartition, None]] = defaultdict(dict)
    for group, topic, number in orders:
        wanted[group][TopicPartition(topic, number)] = None
    return read_committed(reader, wanted)


def own_topics(reader: GroupReader, description: GroupDescription) -> frozenset[str]:
    """Return the topics for which a group has a commit, an assignment or a subscription."""
    return own_topics_of(read_all_committed(reader, [description.group])[description.group], description)


def own_topics_of(committed: Iterable[TopicPartition], description: GroupDescription) -> frozenset[str]:
    """Return the topics for which a group has a commit, an assignment or a subscription.

    committed: the partitions for which it has a committed offset.
    """
    return frozenset(partition.topic for partition in committed).union(*(each.topics for each in description.members))
