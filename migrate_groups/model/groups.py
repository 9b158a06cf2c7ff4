"""Consumer groups and their members, as coordinators report them."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.model.partitions import TopicPartition

# The protocol type under which this tool holds a group (`cluster.hold`); a hold that was killed leaves it behind.
HOLD_PROTOCOL_TYPE = "migrate-groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as ListGroups has it, in Kafka's own words; brokers before 4.0 know no types, before 2.6 no states."""

    group: str
    state: str
    group_type: str
    protocol_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group as its coordinator reports it.

    ``subscription`` is known for classic members only; it is empty while the group rebalances
    (docs/kafka-behaviour.md#members-and-states).
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
    agreed on; it is gone once the group is Empty (docs/kafka-behaviour.md#members-and-states).
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
