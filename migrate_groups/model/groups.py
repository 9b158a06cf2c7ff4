"""Consumer groups and their members, as coordinators report them."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.model.partitions import TopicPartition

# The protocol type with which this tool joins a group to hold it, that is, to keep consumers out
# (`migrate_groups.kafka.hold`). A group keeps this protocol type if the tool is killed while it holds the group.
HOLD_PROTOCOL_TYPE = "migrate-groups"

STATES = (
    *("Assigning", "CompletingRebalance", "Dead", "Empty"),
    *("NotReady", "PreparingRebalance", "Reconciling", "Stable"),
)
"""The states of groups of all types, named as in Kafka (``org.apache.kafka.common.GroupState``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as ListGroups returns it. State and types are named as in Kafka, such as ``Stable`` and ``consumer``.

    Version 5 of ListGroups added the type (KIP-848); for older brokers, the group type is ``classic``. Version 4 added
    the state (KIP-518); for brokers before 2.6, the state is ``Unknown``.
    """

    group: str
    state: str
    group_type: str
    protocol_type: str

    @property
    def description(self) -> GroupDescription:
        """The listing as a description, without members and assignor, because ListGroups does not return them."""
        return GroupDescription(
            group=self.group, state=self.state, group_type=self.group_type, protocol_type=self.protocol_type
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group as its coordinator reports it.

    group_instance_id: None if the member is not static. assignment: the assigned partitions; in a KIP-848 group they
    include partitions that the member is yet to receive. subscription: the topics that the member subscribes to by
    name. For a member of a classic group, it is empty while the group rebalances. subscription_regex: the regular
    expression for topic names that a member of a KIP-848 group subscribes to. It is empty if the member has none
    (docs/kafka-behaviour.md#members-and-states).
    """

    member_id: str
    client_id: str
    host: str
    group_instance_id: str | None = None
    assignment: frozenset[TopicPartition] = frozenset()
    subscription: frozenset[str] = frozenset()
    subscription_regex: str = ""

    @property
    def topics(self) -> frozenset[str]:
        """The topics of which this member is assigned partitions, and those that it subscribes to by name."""
        return self.subscription | {partition.topic for partition in self.assignment}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as its coordinator reports it. States and types are named as in Kafka, such as ``Empty`` and ``classic``.

    A group that does not exist has the state ``Dead`` and an empty type. protocol_type: for instance ``consumer``;
    empty if a classic group never had a member. assignor: the partition assignor of a classic group that is Stable;
    otherwise empty, because coordinators return it for no other group (docs/kafka-behaviour.md#members-and-states).
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
        """Whether members of the group start at its committed offsets.

        True for a classic group of consumers, a KIP-848 group and a Streams group (KIP-1071). False for a share group
        and for another classic group, such as the workers of Kafka Connect.
        """
        is_consumer = self.protocol_type in ("", "consumer", HOLD_PROTOCOL_TYPE)
        return self.group_type == "streams" or (self.group_type in ("classic", "consumer") and is_consumer)

    @property
    def kind(self) -> str:
        """The group type, followed by the protocol type if the two words differ: ``share``, ``classic connect``."""
        other = "" if self.protocol_type == self.group_type else self.protocol_type
        return f"{self.group_type} {other}".rstrip()

    @property
    def stopped(self) -> bool:
        """Whether the group is Empty and has no members.

        This does not prove that its application has stopped: a consumer without membership (``assign()``) never shows
        as a member, and a member that exceeded ``max.poll.interval.ms`` joins again at its next poll.
        """
        return self.state == "Empty" and not self.members
