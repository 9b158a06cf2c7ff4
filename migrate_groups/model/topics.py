"""Topics as brokers describe them."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.model.permissions import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic: its id tells a recreated topic from the one that had the name before (KIP-516, Kafka 2.8).

    permitted: what this principal may do with it (KIP-430); None where the brokers don't say.
    """

    topic: str
    topic_id: str | None
    partitions: tuple[int, ...]
    permitted: frozenset[Operation] | None = None
