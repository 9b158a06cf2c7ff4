"""The interfaces through which the use cases reach a Kafka cluster; `migrate_groups.kafka` implements them.

The tests' in-memory cluster implements them too. Contract tests verify that it and the real clients behave alike. A dry
run gets a `GroupReader`, which has no method that writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import NamedTuple, Protocol

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.log_ports import LogReader, RecordReader
from migrate_groups.model.answers import WriteAnswer
from migrate_groups.model.groups import GroupDescription, GroupListing
from migrate_groups.model.partitions import (
    CommittedOffset,
    CommittedOffsets,
    TopicPartition,
)
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.model.topics import TopicDescription


class OffsetsReader(Protocol):
    """Reads committed offsets.

    The second client (confluent-kafka) implements only this interface, because it only reads back what the first client
    (kafka-python) wrote.
    """

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        """Return the group's committed offset for each of these partitions; ``None`` if it has none.

        Offsets are read with ``require_stable`` (KIP-447), which waits for pending transactional commits. Raises
        `ClusterUnavailable` or `NotAuthorized`; `PendingCommits` if a commit is still pending at the time-out.
        """
        ...

    def committed_by_group(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the committed offsets of each group for its partitions in ``wanted``, or the error of reading them.

        The error is `ClusterUnavailable`, `NotAuthorized` or, if a transactional commit is still pending at the
        time-out, `PendingCommits`. All groups are read at once: with one request for each coordinator (KIP-709, Kafka
        3.0), or with concurrent requests.
        """
        ...


class GroupReader(OffsetsReader, LogReader, Protocol):
    """Reads groups, topics and offsets. Every method that reads may raise `ClusterUnavailable` or `NotAuthorized`."""

    principal: str
    """The client's principal as Kafka's ACLs name it, such as ``User:alice``, as far as a client can know it."""
    second_client_lacks: str
    """Why the second client (confluent-kafka) can't log in to the cluster; empty if it can."""

    def cluster_id(self) -> str:
        """Return the id that the brokers report for their cluster."""
        ...

    def list_groups(self) -> Sequence[GroupListing]:
        """Return all groups of any type that the client's principal may describe, sorted by name."""
        ...

    def describe_group(self, group: str) -> GroupDescription:
        """Return the description of a group of any type; a group that does not exist is ``Dead``.

        Raises `Refused` if a member's metadata is not in Kafka's consumer protocol, because the member's topics are not
        known then.
        """
        ...

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription]:
        """Return the description of each group, with one request for each coordinator.

        A group that does not exist is ``Dead``. Raises `Refused` if a member's metadata is not in Kafka's consumer
        protocol.
        """
        ...

    def described_by_group(self, groups: Collection[str]) -> Mapping[str, GroupDescription | MigrateGroupsError]:
        """Return the description of each group, or the error of reading it; a group that does not exist is ``Dead``.

        The error is for instance `NotAuthorized`, or `Refused` if a member's metadata is not in Kafka's consumer
        protocol.
        """
        ...

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Return the descriptions of these topics; a topic that does not exist is left out. Never creates a topic.

        topics: None means all topics that the client's principal may describe, including Kafka's internal topics.
        Raises `NotAuthorized` if the principal may not describe a topic that is named.
        """
        ...

    def all_committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset | None]:
        """Return all committed offsets of a group; ``None`` if a transactional commit is pending for the partition.

        Two kinds of partitions are left out without an error. To get their offsets or an error, name them in
        `committed`.

        - partitions of a topic that the client's principal may not describe
          (docs/kafka-behaviour.md#what-a-principal-may-not-see)
        - partitions whose first commit is still pending (docs/kafka-behaviour.md#pending-transactions)
        """
        ...

    def committed_now(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the committed offsets of each group for its partitions in ``wanted``, or the error of reading them.

        Unlike `committed_by_group`, this does not wait for pending transactional commits: their partitions are left
        out. A partition without a committed offset is ``None``.
        """
        ...

    def all_committed_by_group(
        self, groups: Collection[str]
    ) -> Mapping[str, Mapping[TopicPartition, CommittedOffset | None] | MigrateGroupsError]:
        """Return all committed offsets of each group, or the error of reading them.

        If a transactional commit is pending for a partition, the value is ``None``, or the partition is left out if it
        has no earlier committed offset. Partitions of topics that the principal may not describe are left out, too. All
        groups are read at once, with one request for each coordinator (KIP-709, Kafka 3.0).
        """
        ...

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return the operations that the client's principal may perform on each group and topic (KIP-430).

        The groups and topics need not exist. An empty set means that the principal may not even describe the group or
        topic. ``None`` means that the brokers do not return its operations. Never raises `NotAuthorized`.
        """
        ...

    def offsets_retention(self) -> timedelta | None:
        """Return how long committed offsets are kept: ``offsets.retention.minutes`` of a broker.

        ``None`` if the client's principal lacks DescribeConfigs on the cluster, or if the broker does not report the
        setting (docs/kafka-behaviour.md#expiry).
        """
        ...

    def compacted_topics(self, topics: Collection[str]) -> frozenset[str]:
        """Return the topics in ``topics`` whose ``cleanup.policy`` contains ``compact``.

        A topic is left out if the client's principal lacks DescribeConfigs on it, or if it does not exist.
        """
        ...

    def initial_rebalance_delay(self) -> timedelta | None:
        """Return how long an Empty classic group waits for more members: ``group.initial.rebalance.delay.ms``.

        ``None`` if the client's principal lacks DescribeConfigs on the cluster, or if the broker does not report the
        setting.
        """
        ...


class HeldGroup(Protocol):
    """A group that this tool has joined, so that no consumer can join it and clients that are not members can't commit.

    Brokers still accept a transactional commit from a client that is not a member
    (docs/kafka-behaviour.md#holding-a-group).
    """

    lost: str | None
    """Why the group may no longer be held by this tool; None while it is held."""


class GroupWriter(GroupReader, Protocol):
    """Writes and deletes committed offsets, and deletes groups.

    The coordinator accepts offsets only for a group without members. It accepts a deletion of offsets only for topics
    that no member subscribes to (docs/kafka-behaviour.md#altering-offsets). If a write fails, no error is raised: the
    `WriteAnswer` says whether it was refused, or whether its outcome is unknown.
    """

    def alter_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """Commit these offsets in one request; return the answer for each partition.

        A request can have about 14,000 partitions, because brokers limit its size; the caller splits larger writes.
        """
        ...

    def alter_offsets_by_group(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Commit the offsets of several groups, with one concurrent request for each group.

        Returns, by group, the answer for each partition.
        """
        ...

    def delete_offsets(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """Delete the group's committed offsets of these partitions (KIP-496); return the answer for each partition."""
        ...

    def delete_group(self, group: str) -> WriteAnswer:
        """Delete a group with all its committed offsets, and return the answer.

        The coordinator refuses if the group has members.
        """
        ...

    def held(self, group: str) -> AbstractContextManager[HeldGroup]:
        """Return a context manager within which this tool is a member of an Empty group, to keep consumers out.

        Within the ``with`` block, descriptions of the group by this reader leave out this tool's member. ``lost`` of
        the `HeldGroup` says why the group may no longer be held. Entering raises `Refused` if the group has members.
        """
        ...


class Clients(NamedTuple):
    """Two independent clients: kafka-python writes and reads, and confluent-kafka reads back what was written.

    elsewhere: if the groups are on two clusters, reads those on the cluster that ``writer`` does not write to: the
    source group of a hand-over, or the target groups of delete-offsets. Otherwise None.
    """

    writer: GroupWriter
    second: OffsetsReader
    elsewhere: GroupReader | None = None


class Side(NamedTuple):
    """The clients for one of two clusters: one for groups, topics and offsets, and one for records."""

    groups: GroupReader
    records: RecordReader
