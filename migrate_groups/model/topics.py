"""Topics as brokers describe them."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.model.permissions import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic as brokers describe it.

    - topic_id: changes if the topic is deleted and created again (KIP-516); None before Kafka 2.8.
    - partitions: the partition numbers.
    - permitted: the operations that the client's principal may perform on the topic; None if not known (KIP-430).
    """

    topic: str
    topic_id: str | None
    partitions: tuple[int, ...]
    permitted: frozenset[Operation] | None = None


def is_recreated(then: str | None, now: str | None) -> bool:
    """Return whether a topic was deleted and created again: whether both topic ids are known and differ.

    then, now: an earlier topic id and the current one; None or empty if not known.
    """
    return bool(then) and bool(now) and then != now
