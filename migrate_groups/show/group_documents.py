"""The JSON documents of the commands ``list`` and ``describe``. A value that is not known is null."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.show.documents import Document, Part


class ListedGroup(Part, frozen=True, kw_only=True):
    """A consumer group in the document of ``list``.

    - state, type: as Kafka names them.
    - members: null if not known.
    - topics: the topics for which the group has a committed offset, an assignment or a subscription. With ``--topic``,
      only the matching topics.
    - partitions: the number of partitions of ``topics``.
    - lag: the sum of the known lags of the partitions; null if no lag is known.
    - partitions_without_lag: the number of partitions whose lag is not known.
    - remarks: what is not known, and why.
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
    """The document that ``list`` prints: the consumer groups, sorted by name."""

    groups: Sequence[ListedGroup]


class DescribedMember(Part, frozen=True, kw_only=True):
    """A member of a consumer group in the document of ``describe``.

    - group_instance_id: null if the member is not static.
    - subscription: the topics that the member subscribes to by name; empty while a classic group rebalances.
    - subscription_regex: the regular expression that a KIP-848 member subscribes to; null if there is none.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: Sequence[TopicPartition]
    subscription: Sequence[str]
    subscription_regex: str | None


class DescribedPartition(Part, frozen=True, kw_only=True):
    """A partition of a consumer group in the document of ``describe``.

    - topic_id: null if the brokers report none.
    - committed_offset: null if there is none.
    - leader_epoch: the leader epoch of the committed offset; null if there is none.
    - metadata: the metadata of the committed offset; "" if there is none.
    - log_start_offset, log_end_offset: null if the partition has no leader or does not exist.
    - lag: the log end offset minus the committed offset; null if not known.
    - oldest_unread_at, time_lag_seconds: the timestamp and the age of the oldest unread record. They are null without
      ``--time-lag``, if no record is unread, or if not known.
    - member_ids: the members that the partition is assigned to.
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
    """A consumer group in the document of ``describe``.

    - state, type: as Kafka names them.
    - members: null if not known.
    - partitions: the partitions of the topics for which the group has a committed offset, an assignment or a
      subscription.
    - lag: the sum of the known lags of the partitions; null if no lag is known.
    - partitions_without_lag: the number of partitions whose lag is not known.
    - remarks: what is not known, and why.
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
    """The document that ``describe`` prints.

    groups: in the order of the command line; with ``--all-groups`` sorted by name.
    """

    groups: Sequence[DescribedGroup]
