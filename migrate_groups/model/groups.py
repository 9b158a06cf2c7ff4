"""Consumer groups and their members, as coordinators report them."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.model.partitions import TopicPartition

# The protocol type under which this tool holds a group (`migrate_groups.kafka.hold`). A group whose holder was killed
# keeps it.
HOLD_PROTOCOL_TYPE = "migrate-groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as ListGroups returns it, in Kafka's own words.

    Brokers before 4.0 return no type: it is ``classic``. Brokers before 2.6 return no state: it is ``Unknown``.
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

    A group that does not exist is ``Dead`` with an empty type. ``assignor`` is that of a Stable classic group; it is no
    longer known once the group is Empty (docs/kafka-behaviour.md#members-and-states).
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
        """Whether it is a classic or KIP-848 consumer group; not Connect workers, a share group or a Streams group."""
        return self.group_type in ("classic", "consumer") and self.protocol_type in ("", "consumer", HOLD_PROTOCOL_TYPE)

    @property
    def stopped(self) -> bool:
        """Whether it is Empty. This does not prove a stop: simple consumers and slow members can still commit."""
        return self.state == "Empty" and not self.members
