"""The interfaces through which commands reach a Kafka cluster. `migrate_groups.kafka` implements them.

A dry run gets a `GroupReader`, which has no method that writes.

A function that is given a client may raise the errors of its methods: `ClusterUnavailable` and `NotAuthorized`, and
`PendingCommits` where it waits for pending transactional commits. Its docstring names only other errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.log_ports import LogReader, OffsetsTopicReader, RecordReader
from migrate_groups.model.answers import WriteAnswer
from migrate_groups.model.apis import Offers
from migrate_groups.model.groups import GroupDescription, GroupWithOffsets, Wanted
from migrate_groups.model.partitions import (
    CommittedOffset,
    CommittedOffsets,
    OffsetLimits,
    TopicPartition,
)
from migrate_groups.model.permissions import Acls, Operation, Resource
from migrate_groups.model.topics import TopicDescription
from migrate_groups.planning.run_states import Verb


class OffsetsReader(Protocol):
    """Reads committed offsets.

    The second client (confluent-kafka) implements only this interface, because it only reads back what was written.
    """

    def cluster_id(self) -> str:
        """Return the id that the brokers report for their cluster."""
        ...

    def committed(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return each group's committed offset for its partitions in ``wanted``; ``None`` if it has none.

        Waits for pending transactional commits (KIP-447). The value of a group is an error if its offsets can't be
        read: `ClusterUnavailable`, `NotAuthorized`, or `PendingCommits` if a commit is still pending at the time-out.
        """
        ...

    def make_ready(self, wanted: Mapping[str, Collection[TopicPartition]]) -> None:
        """Find the coordinators of groups, and connect to them, so that later requests take one round trip each.

        wanted: for each group, partitions for which its committed offsets may be read. Raises no error, and may return
        before it is done.
        """
        ...


class GroupReader(OffsetsReader, LogReader, Protocol):
    """Reads groups, topics and offsets. Every method that reads may raise `ClusterUnavailable` or `NotAuthorized`."""

    principal: str
    """The client's principal as Kafka's ACLs name it, such as ``User:alice``, as far as a client can know it."""
    second_client_lacks: str
    """Why the second client (confluent-kafka) can't log in to the cluster; empty if it can."""

    def list_groups(self) -> Sequence[GroupDescription]:
        """Return all groups of any type that the client's principal may describe, sorted by name.

        Their members and assignors are left out, because ListGroups does not return them. The state is ``Unknown`` if
        the brokers are older than Kafka 2.6 (KIP-518).
        """
        ...

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription | MigrateGroupsError]:
        """Return the description of each group of any type, or the error. A group that does not exist is ``Dead``.

        The error is `ClusterUnavailable`, `NotAuthorized`, or `Refused` if a member's metadata is not in Kafka's
        consumer protocol.
        """
        ...

    def describe_with_offsets(self, wanted: Wanted) -> Mapping[str, GroupWithOffsets | MigrateGroupsError]:
        """Return each group's description, and its committed offsets as they were after it was described, or the error.

        The results and the errors are those of `describe_groups`, and then of `committed` without ``wait``.
        """
        ...

    def describe_after_ends(
        self, partitions: Collection[TopicPartition], group: str
    ) -> tuple[Mapping[TopicPartition, int], GroupWithOffsets | MigrateGroupsError]:
        """Return log end offsets, and then the result of `describe_with_offsets` for all offsets of a group.

        partitions: all of ``__consumer_offsets``. One without a leader is left out.
        """
        ...

    def round_trip(self) -> float:
        """Return the shortest time in seconds from a request to its response so far; 0 if it is not known."""
        ...

    def at_once(self, *calls: Callable[[], object]) -> list[Any]:
        """Call functions that send requests with this reader, in any order or side by side; return their results.

        So none of them may prove what another reads (docs/kafka-behaviour.md#which-reading-comes-after-which). Raises
        the error of the first function that raised one.
        """
        ...

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Return the descriptions of these topics. A topic that does not exist is left out, and is never created.

        topics: None means all topics that the client's principal may describe. Raises `NotAuthorized` if the principal
        may not describe a named topic.
        """
        ...

    def committed(
        self, wanted: Mapping[str, Collection[TopicPartition] | None], *, wait: bool = True
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the committed offsets of each group for its partitions in ``wanted``, or the error of reading them.

        For partitions of a share group, these are its start offsets, or the error `ShareGroupStarted` if it has had
        members (docs/kafka-behaviour.md#share-groups).

        wanted: ``None`` in place of partitions means all for which the group has a committed offset. Two kinds are then
        left out without an error:

        - partitions of topics that the principal may not describe
          (docs/kafka-behaviour.md#what-a-principal-may-not-see)
        - partitions whose first commit is still pending (docs/kafka-behaviour.md#pending-transactions)

        wait: as for `OffsetsReader.committed`. Without ``wait``, an offset is ``None`` if a transactional commit is
        pending for the partition, and a partition without a committed offset is left out.
        """
        ...

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return the operations that the client's principal may perform on each group and topic (KIP-430).

        An empty set: the principal may not describe the group or topic. ``None``: the brokers do not return its
        operations. Never raises `NotAuthorized`.
        """
        ...

    def acls(self, principals: Collection[str]) -> Acls:
        """Return the ACLs on groups and topics of these principals and of every user, or why they are not known."""
        ...

    def brokers(self) -> Sequence[int]:
        """Return the ids of the cluster's brokers, in ascending order."""
        ...

    def offers(self) -> Offers:
        """Return which of the APIs that this tool uses the brokers offer, and in which versions."""
        ...

    def offset_limits(self) -> OffsetLimits:
        """Return how long brokers keep committed offsets, and how long their metadata may be.

        A value is ``None`` if not known, for instance because the principal lacks DescribeConfigs on the cluster
        (docs/kafka-behaviour.md#expiry).
        """
        ...

    def maybe_compacted_topics(self, topics: Collection[str]) -> frozenset[str]:
        """Return those of the topics whose ``cleanup.policy`` contains ``compact``, or can't be read.

        It can't be read if the principal lacks DescribeConfigs on the topic, or if the topic does not exist.
        """
        ...

    def initial_rebalance_delay(self) -> timedelta | None:
        """Return ``group.initial.rebalance.delay.ms``: how long an Empty classic group waits for more members.

        ``None`` if not known, for instance because the principal lacks DescribeConfigs on the cluster.
        """
        ...


class HeldGroup(Protocol):
    """A group that this tool has joined as its first member, so that no consumer gets a partition of it.

    Meanwhile brokers refuse offset commits of other clients, except transactional ones
    (docs/kafka-behaviour.md#holding-a-group).
    """

    lost: str | None
    """Why the group may no longer be held by this tool; None while it is held."""


class GroupWriter(GroupReader, Protocol):
    """Writes and deletes committed offsets, and deletes groups.

    A failed write raises no error: its `WriteAnswer` is ``REFUSED`` or ``UNKNOWN``. The coordinator accepts offsets
    only for a group without members. It accepts a deletion of offsets only for topics that no member subscribes to
    (docs/kafka-behaviour.md#altering-offsets).
    """

    def alter_offsets(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Commit offsets of several groups, one request for each group; return the answers by group and partition.

        Within the context of `held`, the offsets of the held group are committed with this tool's membership. Then the
        coordinator refuses them if it has removed the member, for instance because its heartbeats did not arrive.
        Brokers refuse a request with more than about 14,000 partitions.
        """
        ...

    def commit_probes(self, probes: Collection[str], partition: TopicPartition) -> Mapping[str, WriteAnswer]:
        """Commit an offset for each probe group; return the answers. Coordinators are asked concurrently.

        A coordinator appends commits to a partition of ``__consumer_offsets`` in order, and answers when all in-sync
        replicas have them. So after the answer ``WRITTEN``, each commit that it accepted before for a group on the same
        partition is readable (docs/kafka-behaviour.md#commits-that-wait-for-replication).
        partition: an existing partition, for which the offset is committed.
        """
        ...

    def delete_offsets(
        self, partitions: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Delete committed offsets of several groups (KIP-496); return the answers by group and partition."""
        ...

    def alter_share_offsets(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Set start offsets of several share groups (KIP-932); return the answers by group and partition.

        A group that does not exist is created. Leader epochs and metadata are not written.
        """
        ...

    def delete_share_offsets(
        self, partitions: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Delete start offsets of several share groups, those of all partitions of these topics; return the answers."""
        ...

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, WriteAnswer]:
        """Delete groups with all their committed offsets, and return the answer for each group.

        A coordinator refuses if the group has members.
        """
        ...

    def held(
        self, group: str, partitions: Collection[TopicPartition], assignor: str = "", holder: str = ""
    ) -> AbstractContextManager[HeldGroup]:
        """Return a context manager within which this tool is the first member of an Empty group, to keep consumers out.

        Within the context, the `GroupWriter` describes the group as Empty, and `alter_offsets` accepts its offsets. A
        group that does not exist is created. Several groups may be held at once. Entering the context raises `Refused`
        if the group has members, `NotAuthorized` without Read on the group.

        partitions: all partitions that a consumer of the group may want. assignor: the assignor of its consumers;
        empty if not known. holder: the client id of this tool's member. Members with the same one are removed first: a
        killed process has left them. Empty: none is removed.
        """
        ...


class Clients(NamedTuple):
    """The clients of a command that writes offsets.

    - writer: writes and reads (kafka-python).
    - second: reads back what was written (confluent-kafka).
    - elsewhere: reads the groups on the other cluster in a migration between two clusters; otherwise None.
    """

    writer: GroupWriter
    second: OffsetsReader
    elsewhere: GroupReader | None = None

    def of_watched(self, verb: Verb) -> GroupReader:
        """Return the reader of the groups that must no longer consume after a write."""
        # After a way back, they are on the cluster that is written to.
        return self.elsewhere if self.elsewhere and verb is Verb.HAND_OVER else self.writer


class Side(NamedTuple):
    """The clients for one of two clusters: one for groups, topics and offsets, and one for records.

    writer: commits to probe groups on the source cluster of a move, and deletes them; None if nothing may be written,
    as in a dry run.
    """

    groups: GroupReader
    records: RecordReader
    writer: GroupWriter | None = None


class LogClients(NamedTuple):
    """The clients for one cluster: for groups, topics and offsets, and for the log of ``__consumer_offsets``."""

    reader: GroupReader
    topic: OffsetsTopicReader
