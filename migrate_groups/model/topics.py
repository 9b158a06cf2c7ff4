"""Topics as brokers describe them."""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.model.permissions import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic as brokers describe it.

    topic_id: a topic that is deleted and created again with the same name gets another id (KIP-516); None before Kafka
    2.8. partitions: the numbers of its partitions. permitted: the operations that the client's principal may perform on
    the topic (KIP-430); None if the brokers don't return them.
    """

    topic: str
    topic_id: str | None
    partitions: tuple[int, ...]
    permitted: frozenset[Operation] | None = None


def is_recreated(then: str | None, now: str | None) -> bool:
    """Return whether a topic was deleted and created again: whether both topic ids are known, and differ.

    then: its topic id when it was read before. now: the present id. None or "": the id is not known.
    """
    return bool(then) and bool(now) and then != now
