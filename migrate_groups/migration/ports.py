"""The interfaces through which the use cases reach a Kafka cluster; `migrate_groups.kafka` implements them.

The tests' in-memory cluster implements them too. Contract tests verify that it and the real clients behave alike.
A dry run gets a `GroupReader`, which has no method that writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import NamedTuple, Protocol

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.model.answers import WriteAnswer
from migrate_groups.model.groups import GroupDescription, GroupListing
from migrate_groups.model.offsets_topic import LogPiece
from migrate_groups.model.partitions import (
    CommittedOffset,
    CommittedOffsets,
    LeaderEpoch,
    LogRange,
    Timestamps,
    TopicPartition,
)
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.model.topics import TopicDescription


class OffsetsReader(Protocol):
    """Reads committed offsets. The second client, which reads back what the first wrote, implements only this."""

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        """Return the group's committed offset for each of these partitions; ``None`` if it has none.

        Offsets are read with ``require_stable`` (KIP-447), which waits for pending transactional commits.
        Raises `ClusterUnavailable`, `NotAuthorized`; `PendingCommits` if a commit is still pending at the time-out.
        """
        ...

    def committed_by_group(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the committed offsets of each group for its partitions in ``wanted``, or the error of reading them.

        The error is the one that `committed` would raise. All groups are read at once: with one request for each
        coordinator (KIP-709, Kafka 3.0), or with concurrent requests.
        """
        ...


class GroupReader(OffsetsReader, Protocol):
    """Reads groups, topics and offsets. Raises `ClusterUnavailable` or `NotAuthorized` from every method."""

    principal: str
    """The principal of this client as Kafka's ACLs name it, as far as a client can know it: ``User:alice``."""
    second_client_lacks: str
    """Why the second client can't log in to this cluster; empty if it can."""

    def cluster_id(self) -> str:
        """Return the id that the brokers report for their cluster."""
        ...

    def list_groups(self) -> Sequence[GroupListing]:
        """Return all groups of any type that this principal may describe, sorted by name."""
        ...

    def describe_group(self, group: str) -> GroupDescription:
        """Return the description of a group of any type; a group that does not exist is ``Dead``.

        Raises `Refused` if a member's metadata is not Kafka's consumer protocol: the member's topics are then unknown.
        """
        ...

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription]:
        """Return the description of each group, as `describe_group` does, with one request for each coordinator."""
        ...

    def described_by_group(self, groups: Collection[str]) -> Mapping[str, GroupDescription | MigrateGroupsError]:
        """Return the description of each group; a group that does not exist is ``Dead``.

        If a group can't be described, its value is the error: for instance `NotAuthorized`, or `Refused` if a member's
        metadata is not Kafka's consumer protocol.
        """
        ...

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Return the descriptions of these topics; a topic that does not exist is left out. Never creates a topic.

        ``topics`` None: all topics that this principal may describe, including Kafka's internal topics.
        """
        ...

    def all_committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset | None]:
        """Return all committed offsets of a group; ``None`` if a transactional commit is pending for the partition.

        Two kinds of partitions are left out without an error. To get them or an error, name them in `committed`:
        those of a topic that this principal may not describe (docs/kafka-behaviour.md#what-a-principal-may-not-see),
        and those whose first commit is still pending (docs/kafka-behaviour.md#pending-transactions).
        """
        ...

    def committed_now(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the result of `committed_by_group` without waiting: partitions with a pending commit are left out."""
        ...

    def all_committed_by_group(
        self, groups: Collection[str]
    ) -> Mapping[str, Mapping[TopicPartition, CommittedOffset | None] | MigrateGroupsError]:
        """Return all committed offsets of each group, or the error of reading them.

        An offset is ``None`` if a transactional commit is pending for the partition. As with `all_committed`,
        partitions of hidden topics and pending first commits are left out. All groups are read at once: with one
        request for each coordinator (KIP-709, Kafka 3.0).
        """
        ...

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """Return the log start and log end offset of each partition.

        A partition that does not exist or has no leader is left out.

        ends, starts: log end and log start offsets that were read before and need not be read again. If only the end of
        a partition is given, the start is requested, and the end is used only if the leader has told this reader in the
        same leader epoch (KIP-320) that the log reaches it. If not, the end is read again, because another leader may
        have truncated the log (docs/kafka-behaviour.md#logs). If both are given, they are returned without a request,
        even if the partition no longer exists.
        """
        ...

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's last stable offset; ``read_committed`` consumers get no records at or after it.

        It is the log end offset, or the offset of the first record of an open transaction. A partition that does not
        exist or has no leader is left out.
        """
        ...

    def epoch_ends(self, epochs: Collection[LeaderEpoch]) -> Mapping[LeaderEpoch, int]:
        """Return the offset at which each of these leader epochs ended: the log has no record of it at or after that.

        Later epochs of the partition start there (OffsetForLeaderEpoch, KIP-320). Left out are a partition's current
        leader epoch, a higher one, and a partition that does not exist or has no leader.
        """
        ...

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Return each partition's first record whose timestamp is at or after the given one; ``None`` if there is none.

        timestamps: milliseconds since 1970. The first record is the one with the lowest offset, even if the timestamps
        in the log are out of order. Records of open and aborted transactions count. So do transaction markers, which
        have the broker's time (docs/kafka-behaviour.md#logs). A partition that does not exist or has no leader is left
        out. Raises ``ValueError`` for a negative timestamp.
        """
        ...

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Return the first record that a ``read_committed`` consumer gets in each span of offsets; ``None``: no record.

        Transaction markers, aborted records and records that are compacted away do not count. A partition that does
        not answer within some seconds, for instance because a transaction is open, is left out: it is not known
        whether it has a record.
        """
        ...

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return the operations that this principal may perform on each group and topic (KIP-430), existing or not.

        An empty set: this principal may not even describe it. ``None``: the brokers do not say. Never raises
        `NotAuthorized`.
        """
        ...

    def offsets_retention(self) -> timedelta | None:
        """Return how long committed offsets are kept: ``offsets.retention.minutes`` of a broker.

        ``None`` if this principal lacks DescribeConfigs on the cluster, or if the broker does not report the setting.
        See docs/kafka-behaviour.md#expiry.
        """
        ...

    def initial_rebalance_delay(self) -> timedelta | None:
        """Return how long an Empty classic group waits for more members: ``group.initial.rebalance.delay.ms``.

        ``None`` if this principal lacks DescribeConfigs on the cluster, or if the broker does not report the setting.
        """
        ...


class HeldGroup(Protocol):
    """A group that this tool has joined, so that no consumer can join it and clients that are not members can't commit.

    Brokers still accept a transactional commit from a client that is not a member
    (docs/kafka-behaviour.md#holding-a-group).
    """

    lost: str | None
    """Why the group may no longer be held; None while it is held."""


class GroupWriter(GroupReader, Protocol):
    """Writes and deletes committed offsets, and deletes groups.

    The coordinator accepts offsets only for a group without members, and a deletion of offsets only for topics that no
    member subscribes to (docs/kafka-behaviour.md#altering-offsets).
    """

    def alter_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """Commit these offsets in one request; return the answer for each partition.

        Brokers limit the size of a request to about 14,000 partitions; the caller splits larger writes.
        """
        ...

    def alter_offsets_by_group(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Commit the offsets of several groups, with one concurrent request for each; return the answers by group."""
        ...

    def delete_offsets(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """Delete the group's committed offsets of these partitions (KIP-496); return the answer for each partition."""
        ...

    def delete_group(self, group: str) -> WriteAnswer:
        """Delete a group with all its committed offsets; the coordinator refuses if the group has members."""
        ...

    def held(self, group: str) -> AbstractContextManager[HeldGroup]:
        """Be a member of an Empty group during a ``with`` block, so that no consumer can join it.

        The block gets an object whose ``lost`` says why the group may no longer be held. Descriptions of the group by
        this reader leave out the member. Raises `Refused` if the group has members.
        """
        ...


class Clients(NamedTuple):
    """Two independent clients: the first reads and writes, the second reads back what the first has written."""

    writer: GroupWriter
    second: OffsetsReader


class OffsetsTopicReader(Protocol):
    """Reads partitions of ``__consumer_offsets``. Joins no group and commits nothing. Needs Read on the topic."""

    def read(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LogPiece]:
        """Yield the records of each partition from its offset in ``positions`` up to its offset in ``ends``.

        Both are by partition number. An open transaction holds records back: if no new record comes within the
        time-out, reading ends before the end offset. Raises `ClusterUnavailable` or `NotAuthorized`.
        """
        ...
