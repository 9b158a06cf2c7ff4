"""What the verbs need of a cluster: interfaces, which the adapters in `migrate_groups.kafka` implement.

The real clients and the tests' cluster in memory implement them alike: one contract suite holds them to it.
A dry run is handed a `GroupReader`, which has no method that writes.
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
    LogRange,
    Timestamps,
    TopicPartition,
)
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.model.topics import TopicDescription


class OffsetsReader(Protocol):
    """Reads committed offsets: what the second client is asked for."""

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        """Return the committed offset of each of these partitions; ``None`` where nothing is committed.

        Read with ``require_stable`` (KIP-447): pending transactional commits are waited for.
        Raises `ClusterUnavailable`, `NotAuthorized`; `PendingCommits` where one stays so until the time-out.
        """
        ...

    def committed_by_group(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return for each group what `committed` returns, or the error that it raises; it raises none of them.

        All groups are asked at once: with one request for each coordinator (KIP-709, Kafka 3.0), or side by side.
        """
        ...


class GroupReader(OffsetsReader, Protocol):
    """Reads groups, topics and offsets. Raises `ClusterUnavailable` or `NotAuthorized` from every method."""

    principal: str
    """Who asks, in the words of Kafka's ACLs as far as a client can know them: ``User:alice``."""

    def cluster_id(self) -> str:
        """Return the id that the brokers report for their cluster."""
        ...

    def list_groups(self) -> Sequence[GroupListing]:
        """Return every group that this principal may describe, sorted by name, of whatever type."""
        ...

    def describe_group(self, group: str) -> GroupDescription:
        """Describe a group of any type; one that does not exist is ``Dead``.

        Raises `Refused` where what a consumer sent is not Kafka's consumer protocol: nobody can tell what it holds.
        """
        ...

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription]:
        """Describe several groups, as `describe_group` does one, with one request for each coordinator."""
        ...

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Describe topics; those that do not exist are left out. Never creates a topic.

        None: all that this principal may describe, Kafka's own included.
        """
        ...

    def all_committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset | None]:
        """Return what the group has committed, wherever that is; ``None``: a transactional commit is pending there.

        A topic that this principal may not describe is missing here without an error, and so is a partition whose first
        commit is still pending (docs/kafka-behaviour.md#pending-transactions): `committed` asks for what is missing.
        """
        ...

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """Return both ends of each partition's log; a partition that does not exist or has no leader is left out.

        ends, starts: those that were read before, and are good enough: they are returned as they are, and not asked
        for. But an end stands only where the leader that answers for the start has told this reader, in the same epoch
        of its leadership (KIP-320), that the log reaches so far; else it is read anew: another leader may have cut the
        log (an unclean election). A partition of which nothing is left to ask for is there, whatever has become of it.
        """
        ...

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's last stable offset, beyond which no ``read_committed`` consumer is handed anything.

        It is the log's end, or the first record of a transaction that is open. A partition that does not exist or has
        no leader is left out.
        """
        ...

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Return each partition's first record with its timestamp or a later one; ``None`` where there is none.

        timestamps: milliseconds since 1970. First by offset, whatever the order of timestamps. Records of open and
        aborted transactions count, and so do transaction markers, which have the broker's time
        (docs/kafka-behaviour.md#logs). A partition that does not exist or has no leader is left out. Raises
        ``ValueError`` for a negative timestamp.
        """
        ...

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Return the first record in each span of offsets that a ``read_committed`` consumer is handed, or ``None``.

        Transaction markers, aborted records and what compaction has removed are none. A partition that does not answer
        in some seconds, for instance since its transaction is open, is left out: it may have one.
        """
        ...

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return what this principal may do with each of these groups and topics, whether they exist or not (KIP-430).

        Nothing at all: it may not even be described. ``None``: the brokers don't say. Never raises `NotAuthorized`.
        """
        ...

    def offsets_retention(self) -> timedelta | None:
        """Return how long a group's offsets outlive its last member: ``offsets.retention.minutes`` of a broker.

        ``None`` where this principal lacks DescribeConfigs on the cluster, or the brokers know no such setting.
        """
        ...


class HeldGroup(Protocol):
    """An Empty group that nobody else can join or commit to."""

    lost: str | None
    """Why the group may not be held any more; None while it is."""


class GroupWriter(GroupReader, Protocol):
    """Writes committed offsets, for groups without members only (the coordinator refuses others)."""

    def alter_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """Commit these offsets in one request, which must fit (see ``migration.write``); one answer a partition."""
        ...

    def alter_offsets_by_group(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Commit as `alter_offsets` does, with one request a group, side by side."""
        ...

    def delete_offsets(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """Delete the committed offsets of these partitions (KIP-496); one answer a partition."""
        ...

    def delete_group(self, group: str) -> WriteAnswer:
        """Delete a group with all its committed offsets; the coordinator refuses one that has members."""
        ...

    def held(self, group: str) -> AbstractContextManager[HeldGroup]:
        """Hold an Empty group for the length of a ``with`` block; its own membership is not described meanwhile.

        Raises `Refused` where somebody is in it.
        """
        ...


class Clients(NamedTuple):
    """Two implementations of a client: one reads and writes, the second one reads back after it."""

    writer: GroupWriter
    second: OffsetsReader


class OffsetsTopicReader(Protocol):
    """Reads partitions of the offsets topic. Never joins a group, and commits nothing. Needs Read on the topic."""

    def read(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LogPiece]:
        """Yield what is in the log from these positions on, until all ends are reached.

        A transaction that is still open holds readers back: after the time-out without a new record the reading ends
        short of the end. Raises `ClusterUnavailable` or `NotAuthorized`.
        """
        ...
