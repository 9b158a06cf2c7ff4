"""Client settings that make the rebalances of a shared consumer group shorter or fewer, and cost less than a split."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.migration.reading.status import GroupStatus

_EAGER = ("range", "roundrobin", "sticky")
"""The eager assignors of Kafka's clients: in each rebalance every member revokes all its partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSetting:
    """A client setting to change, and why, as texts for users."""

    setting: str
    why: str


def client_settings(group: GroupStatus) -> tuple[ClientSetting, ...]:
    """Return the client settings that make this group's rebalances shorter or fewer, the most effective first."""
    found = []
    if group.group_type == "classic":
        found.append(
            ClientSetting(
                setting="group.protocol=consumer (KIP-848, brokers 4.0 or later)",
                why="the brokers move single partitions, and no member waits for all others",
            )
        )
    if group.description.assignor in _EAGER:
        found.append(
            ClientSetting(
                setting="partition.assignment.strategy=cooperative-sticky",
                why=f"with {group.description.assignor} all members give up all partitions in each rebalance; "
                "with cooperative-sticky only partitions that change their member are given up",
            )
        )
    if group.group_type == "classic":
        found.append(
            ClientSetting(
                setting="max.poll.records (shorter polls)",
                why="a rebalance ends only when each member has polled, so the slowest one makes the others wait",
            )
        )
    if any(member.group_instance_id is None for member in group.members or ()):
        found.append(
            ClientSetting(
                setting="group.instance.id (static membership)",
                why="a member that is back within session.timeout.ms causes no rebalance",
            )
        )
    return tuple(found)
