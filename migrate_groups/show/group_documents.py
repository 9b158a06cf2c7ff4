"""The JSON documents of list and describe. A value that is not known is null."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.show.documents import Document, Part


class ListedGroup(Part, frozen=True, kw_only=True):
    """A group in `GroupList`.

    state, type: in Kafka's own words. members: their number.
    topics: those for which the group has a committed offset, an assignment or a subscription; with ``--topic`` only
    the matching ones. partitions: the number of their partitions.
    lag: the sum of the known lags of these partitions. partitions_without_lag: how many of them have an unknown lag.
    remarks: what is not known, and why.
    """

    group: str
    state: str
    type: str
    members: int | None
    topics: Sequence[str]
    partitions: int
    lag: int | None
    partitions_without_lag: int
    remarks: Sequence[str]


class GroupList(Document, frozen=True, kw_only=True, tag="migrate-groups/list"):
    """The document of ``list``: the groups, sorted by name."""

    groups: Sequence[ListedGroup]


class DescribedMember(Part, frozen=True, kw_only=True):
    """A member of a group.

    group_instance_id: null unless it is a static member. subscription: its topics by name; empty while a classic group
    rebalances. subscription_regex: the regular expression of a KIP-848 member, or null.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: Sequence[TopicPartition]
    subscription: Sequence[str]
    subscription_regex: str | None


class DescribedPartition(Part, frozen=True, kw_only=True):
    """A partition of a described group.

    committed_offset, leader_epoch, metadata: as committed; null, null and "" if no offset is committed.
    log_start_offset, log_end_offset: null if the partition has no leader or does not exist.
    lag: null if no offset is committed, or if the log end offset is not known.
    oldest_unread_at, time_lag_seconds: null without ``--time-lag``, if no record is unread, or if they are not known.
    member_ids: the members that the partition is assigned to.
    """

    topic: str
    topic_id: str | None
    partition: int
    committed_offset: int | None
    leader_epoch: int | None
    metadata: str
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    oldest_unread_at: datetime | None
    time_lag_seconds: float | None
    member_ids: Sequence[str]


class DescribedGroup(Part, frozen=True, kw_only=True):
    """A group in `GroupDescriptions`.

    state, type: in Kafka's own words. members: null if they are not known.
    partitions: those for which the group has a committed offset, an assignment or a subscription.
    lag: the sum of the known lags of these partitions. partitions_without_lag: how many of them have an unknown lag.
    remarks: what is not known, and why.
    """

    group: str
    state: str
    type: str
    members: Sequence[DescribedMember] | None
    partitions: Sequence[DescribedPartition]
    lag: int | None
    partitions_without_lag: int
    remarks: Sequence[str]


class GroupDescriptions(Document, frozen=True, kw_only=True, tag="migrate-groups/describe"):
    """The document of ``describe``: the groups in the order in which they were named; with ``--all-groups`` sorted."""

    groups: Sequence[DescribedGroup]
