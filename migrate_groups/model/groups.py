"""Consumer groups and their members, as coordinators report them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.model.partitions import CommittedOffset, CommittedOffsets, TopicPartition
from migrate_groups.model.topics import TopicDescription

CONNECT_CLIENT = "connector-consumer-"
"""What the client id of a sink connector's task begins with, such as ``connector-consumer-NAME-0``."""

STATES = (
    *("Assigning", "CompletingRebalance", "Dead", "Empty"),
    *("NotReady", "PreparingRebalance", "Reconciling", "Stable"),
)
"""The states of groups of all types, named as in Kafka (``org.apache.kafka.common.GroupState``)."""

TYPES = ("classic", "consumer", "share", "streams")
"""The types of groups, named as in Kafka (``org.apache.kafka.common.GroupType``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group as its coordinator reports it (docs/kafka-behaviour.md#members-and-states).

    - group_instance_id: None if the member is not static.
    - group_protocol: ``classic`` or ``consumer``, as the client property ``group.protocol``. A KIP-848 group may
      have both kinds (KIP-1099). Empty if the brokers do not report it, as before Kafka 4.0.
    - assignment: the assigned partitions. In a KIP-848 group, the member may not have received all of them yet.
    - subscription: the topics that the member subscribes to by name; empty in a classic group during a rebalance.
    - subscription_regex: the regular expression for topics to which the member subscribes (KIP-848); empty if none.
    """

    member_id: str
    client_id: str
    host: str
    group_instance_id: str | None = None
    group_protocol: str = ""
    assignment: frozenset[TopicPartition] = frozenset()
    subscription: frozenset[str] = frozenset()
    subscription_regex: str = ""

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the member subscribes to by name, and the topics of its assigned partitions."""
        return self.subscription | {partition.topic for partition in self.assignment}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as its coordinator reports it, with state and types as Kafka names them.

    - state: such as ``Empty``; ``Dead`` if the group does not exist.
    - group_type: such as ``classic``; empty if the group does not exist.
    - protocol_type: such as ``consumer``; empty if a classic group never had a member.
    - assignor: the partition assignor of a Stable classic group; empty for all other groups.
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
        """Whether the group is a consumer group or a Streams group: its members start at its committed offsets.

        False, for instance, for a share group and for the workers of Kafka Connect.
        """
        is_consumer = self.protocol_type in ("", "consumer")
        return self.group_type == "streams" or (self.group_type in ("classic", "consumer") and is_consumer)

    @property
    def not_a_consumer_group(self) -> str:
        """Why the group's committed offsets can't be used: ``is not a consumer group: its type is classic connect``.

        The text is the end of a sentence that begins with the group's name. It is empty for a consumer group, and for a
        group that does not exist.
        """
        return f"is not a consumer group: its type is {self.kind}" if self.exists and not self.is_consumer_group else ""

    @property
    def kind(self) -> str:
        """The group type, followed by the protocol type if the two differ, such as ``classic connect``."""
        other = "" if self.protocol_type == self.group_type else self.protocol_type
        return f"{self.group_type} {other}".rstrip()

    @property
    def connect(self) -> str:
        """The part of Kafka Connect to which the group belongs, such as ``workers of Kafka Connect``; otherwise empty.

        A dedicated MirrorMaker 2 names the group of its workers after the cluster that it writes to: ``target-mm2``.
        """
        if self.protocol_type == "connect":
            return "workers of MirrorMaker 2" if self.group.endswith("-mm2") else "workers of Kafka Connect"
        return "a Connect sink" if self.connectors else ""

    @property
    def connectors(self) -> tuple[str, ...]:
        """The names of the sink connectors of Kafka Connect whose tasks are members of the group, by their client ids.

        Empty without members, also for the group of a stopped connector. The group's name does not tell, because
        ``consumer.override.group.id`` changes it (docs/kafka-behaviour.md#sink-connectors).
        """
        clients = (each.client_id for each in self.members if each.client_id.startswith(CONNECT_CLIENT))
        return tuple(sorted({re.sub(r"-\d+$", "", client.removeprefix(CONNECT_CLIENT)) for client in clients}))

    @property
    def stopped(self) -> bool:
        """Whether the group is Empty and has no members.

        This does not prove that its application has stopped: a consumer that uses ``assign()`` is never a member.
        """
        return self.state == "Empty" and not self.members


class GroupWithOffsets(NamedTuple):
    """A group's description, and its committed offsets, which were read after it.

    offsets: None for a partition with a pending transactional commit.
    """

    description: GroupDescription
    offsets: CommittedOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """What was read of a group at one time: its coordinator's description, and its committed offsets on some topics.

    topics: the descriptions of these topics. committed: by partition; None if no offset is committed, or if a
    transactional commit is pending. Of a topic that a hand-over leaves with this group, only the partitions with a
    committed offset are included.
    """

    description: GroupDescription
    topics: Mapping[str, TopicDescription]
    committed: Mapping[TopicPartition, CommittedOffset | None]


Wanted = Mapping[str, Collection[TopicPartition] | None]
"""The partitions whose committed offsets to read, by group; None: all that have one."""


def with_offsets(
    wanted: Wanted,
    described: Mapping[str, GroupDescription | MigrateGroupsError],
    read: Callable[[Wanted], Mapping[str, CommittedOffsets | MigrateGroupsError]],
) -> dict[str, GroupWithOffsets | MigrateGroupsError]:
    """Return each group's description with its committed offsets, or the error of reading the one or the other.

    read: reads the offsets of the groups whose description is no error.
    """
    offsets = read({group: wanted[group] for group, each in described.items() if isinstance(each, GroupDescription)})
    found: dict[str, GroupWithOffsets | MigrateGroupsError] = {}
    for group, description in described.items():
        if isinstance(description, MigrateGroupsError):
            found[group] = description
        elif isinstance(committed := offsets[group], MigrateGroupsError):
            found[group] = committed
        else:
            found[group] = GroupWithOffsets(description, committed)
    return found
