"""The boundary to Kafka: the values that cross it, and the interfaces.

The real clients and the cluster in memory implement them alike: one contract suite holds them to it.
A dry run is handed a `GroupReader`, which has no method that writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import msgspec

from migrate_groups.errors import MigrateGroupsError

# The protocol type under which this tool holds a group (`cluster.hold`); a hold that was killed leaves it behind.
HOLD_PROTOCOL_TYPE = "migrate-groups"
# Where Kafka keeps committed offsets.
OFFSETS_TOPIC = "__consumer_offsets"


class ManyTimes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A value that there is one of for every partition: made in a seventh of a dataclass's time (measured).

    It never refers to itself, which is what the garbage collector would look for.
    """


class TopicPartition(ManyTimes, frozen=True, order=True, kw_only=False):
    """A partition of a topic; sorts by topic, then partition, and unpacks into them."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def __iter__(self) -> Iterator[Any]:
        yield self.topic
        yield self.partition


class CommittedOffset(ManyTimes, frozen=True, kw_only=True):
    """What a group has committed for a partition: the next record to read, ``offset >= 0``.

    "Nothing committed" is ``None`` in place of this, never -1: kafka-python would write a negative offset without
    complaint, and the new group would then apply auto.offset.reset (measured).
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise ValueError(f"a committed offset is never negative: {self.offset}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group as its coordinator reports it.

    ``subscription`` is known for classic members only; it is empty while the group rebalances (measured).
    """

    member_id: str
    client_id: str
    host: str
    group_instance_id: str | None = None
    assignment: frozenset[TopicPartition] = frozenset()
    subscription: frozenset[str] = frozenset()

    @property
    def topics(self) -> frozenset[str]:
        """The topics that this member is assigned or subscribed to."""
        return self.subscription | {partition.topic for partition in self.assignment}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as its coordinator reports it, in Kafka's own words (``Empty``, ``Stable``, ``Dead``, …).

    A group that does not exist is ``Dead`` with an empty type. ``assignor`` is the one that a Stable classic group has
    agreed on; it is gone once the group is Empty (measured).
    """

    group: str
    state: str
    group_type: str
    protocol_type: str = ""
    assignor: str = ""
    members: tuple[Member, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether the coordinator knows the group."""
        return self.state != "Dead"

    @property
    def is_consumer_group(self) -> bool:
        """Whether it is a classic or KIP-848 consumer group, and not Connect's own, a share or a Streams group."""
        return self.group_type in ("classic", "consumer") and self.protocol_type in ("", "consumer", HOLD_PROTOCOL_TYPE)

    @property
    def stopped(self) -> bool:
        """Whether it is Empty. That alone is not proof: a simple consumer or a slow member commits all the same."""
        return self.state == "Empty" and not self.members


class LogBounds(ManyTimes, frozen=True, kw_only=True):
    """The ends of a partition's log: the first record that is still there, and the offset that the next will get."""

    start: int
    end: int


class StampedOffset(ManyTimes, frozen=True, kw_only=True):
    """A record's offset and timestamp, in milliseconds since 1970 (its producer's, or LogAppendTime, KIP-32)."""

    offset: int
    timestamp: int


class ResourceType(StrEnum):
    """What an ACL is about, in the words of Kafka's ACLs."""

    GROUP = "Group"
    TOPIC = "Topic"


class Resource(NamedTuple):
    """A group or a topic that a principal needs permissions on."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}"


class Operation(StrEnum):
    """What a principal may do with a resource, in the words of Kafka's ACLs; Read and Delete imply Describe."""

    DELETE = "Delete"
    DESCRIBE = "Describe"
    READ = "Read"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic: its id tells a recreated topic from the one that had the name before (KIP-516, Kafka 2.8).

    permitted: what this principal may do with it (KIP-430); None where the brokers don't say.
    """

    topic: str
    topic_id: str | None
    partitions: tuple[int, ...]
    permitted: frozenset[Operation] | None = None


class Answer(StrEnum):
    """What a broker said to the write of one partition. Silence is not a refusal: it may still be applied."""

    WRITTEN = "written"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteAnswer(ManyTimes, frozen=True, kw_only=True):
    """The answer for one partition, with the name of Kafka's error where there is one."""

    answer: Answer
    error: str = ""


# What a group has committed for each of some partitions; ``None`` where that is nothing.
CommittedOffsets = Mapping[TopicPartition, CommittedOffset | None]


class OffsetsReader(Protocol):
    """Reads committed offsets: what the second client, the witness, is asked for."""

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
        commit is still pending (both measured): `committed` asks for what is missing.
        """
        ...

    def log_bounds(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogBounds]:
        """Return both ends of each partition's log; a partition that does not exist or has no leader is left out.

        ends, starts: those that were read before, and are good enough: they are returned as they are, and not asked
        for. But an end stands only where the leader that answers for the start has told this reader, in the same epoch
        of its leadership (KIP-320), that the log reaches so far; else it is read anew: another leader may have cut the
        log (an unclean election). A partition of which nothing is left to ask for is there, whatever has become of it.
        """
        ...

    def stable_ends(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's last stable offset, beyond which no ``read_committed`` consumer is handed anything.

        It is the log's end, or the first record of a transaction that is open. A partition that does not exist or has
        no leader is left out.
        """
        ...

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, StampedOffset | None]:
        """Return each partition's first record with its timestamp or a later one; ``None`` where there is none.

        timestamps: milliseconds since 1970. First by offset, whatever the order of timestamps. Records of open and
        aborted transactions count, and so do transaction markers, which have the broker's time (measured). A partition
        that does not exist or has no leader is left out. Raises ``ValueError`` for a negative timestamp.
        """
        ...

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Mapping[TopicPartition, StampedOffset | None]:
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
