"""Topics as brokers describe them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from migrate_groups.model.partitions import TopicPartition
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


def partitions_of(topics: Mapping[str, TopicDescription], names: Collection[str] | None = None) -> list[TopicPartition]:
    """Return all partitions of the topics, or of those with one of these names."""
    return [
        TopicPartition(name, number)
        for name, topic in topics.items()
        if names is None or name in names
        for number in topic.partitions
    ]


def is_same_topic(then: str | None, now: str | None) -> bool | None:
    """Return whether two topics of the same name are the same; False if the topic was deleted and created again.

    The result is None if one of the topic ids is not known. then, now: an earlier topic id and the current one; None or
    empty if not known.
    """
    return then == now if then and now else None


def topic_ids(topics: Mapping[str, TopicDescription]) -> dict[str, str]:
    """Return the topic ids by topic. A topic whose id is not known is left out."""
    return {name: topic.topic_id for name, topic in topics.items() if topic.topic_id}


def recreated_topics(then: Iterable[tuple[str, str | None]], now: Mapping[str, str]) -> set[str]:
    """Return the topics that are known to be deleted and created again: they have another topic id, and other records.

    A topic of which one id is not known is left out, as is one that does not exist now. then: topics with their earlier
    ids; None or empty if not known. now: the current ids by topic.
    """
    return {topic for topic, earlier in then if is_same_topic(earlier, now.get(topic)) is False}


def is_still(then: str | None, now: TopicDescription | None) -> bool | None:
    """Return whether a topic still exists; False if it was deleted, or deleted and created again.

    The result is None if the topic exists, and one of the topic ids is not known. then: the earlier topic id. now: the
    current description; None if there is no such topic.
    """
    return False if now is None else is_same_topic(then, now.topic_id)
