"""Consumer groups and their members, as coordinators report them."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.model.partitions import TopicPartition

# The protocol type with which this tool joins a group to hold it, that is, to keep consumers out
# (`migrate_groups.kafka.hold`). A group keeps this protocol type if the tool is killed while it holds the group.
HOLD_PROTOCOL_TYPE = "migrate-groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as ListGroups returns it. State and types are Kafka's own words.

    Where brokers return no type (before 4.0), it is ``classic``; where they return no state (before 2.6), ``Unknown``.
    """

    group: str
    state: str
    group_type: str
    protocol_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group as its coordinator reports it.

    ``subscription`` is known for classic members only, and is empty while the group rebalances
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

    A group that does not exist is ``Dead`` with an empty type. assignor: the partition assignor of a Stable
    classic group; coordinators no longer return it once the group is Empty
    (docs/kafka-behaviour.md#members-and-states).
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
        """Whether the group is a classic or KIP-848 consumer group; not Connect workers, a share or a Streams group."""
        return self.group_type in ("classic", "consumer") and self.protocol_type in ("", "consumer", HOLD_PROTOCOL_TYPE)

    @property
    def stopped(self) -> bool:
        """Whether the group is Empty.

        This does not prove that its application has stopped: a consumer without membership (``assign()``) never shows
        as a member, and a member that exceeded ``max.poll.interval.ms`` joins again at its next poll.
        """
        return self.state == "Empty" and not self.members
