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
"""The states of groups of all types, in Kafka's own words (``org.apache.kafka.common.GroupState``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as ListGroups returns it, with state and types in Kafka's own words.

    If brokers return no type (before 4.0), it is ``classic``. If they return no state (before 2.6), it is ``Unknown``.
    """

    group: str
    state: str
    group_type: str
    protocol_type: str

    @property
    def description(self) -> GroupDescription:
        """The group without its members and its assignor, which ListGroups does not return."""
        return GroupDescription(
            group=self.group, state=self.state, group_type=self.group_type, protocol_type=self.protocol_type
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group as its coordinator reports it.

    group_instance_id: None if the member is not static. assignment: in a KIP-848 group also the partitions that the
    member is yet to receive. subscription: the topics that it subscribes to by name; of a classic member empty while
    the group rebalances. subscription_regex: the regular expression of a KIP-848 member, which the brokers match; else
    empty (docs/kafka-behaviour.md#members-and-states).
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
        """The topics that this member is assigned, or subscribed to by name."""
        return self.subscription | {partition.topic for partition in self.assignment}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as its coordinator reports it, in Kafka's own words (``Empty``, ``Stable``, ``Dead``, …).

    A group that does not exist is ``Dead`` with an empty type. protocol_type: for instance ``consumer``; empty if a
    classic group never had a member. assignor: the partition assignor of a Stable classic group; coordinators no longer
    return it once the group is Empty (docs/kafka-behaviour.md#members-and-states).
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
        """Whether the group's members start at its committed offsets; not Connect workers, and not a share group.

        Such groups are classic, KIP-848 or Streams groups (KIP-1071).
        """
        is_consumer = self.protocol_type in ("", "consumer", HOLD_PROTOCOL_TYPE)
        return self.group_type == "streams" or (self.group_type in ("classic", "consumer") and is_consumer)

    @property
    def stopped(self) -> bool:
        """Whether the group is Empty.

        This does not prove that its application has stopped: a consumer without membership (``assign()``) never shows
        as a member, and a member that exceeded ``max.poll.interval.ms`` joins again at its next poll.
        """
        return self.state == "Empty" and not self.members
