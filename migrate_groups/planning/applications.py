"""Find the applications that share a consumer group, from the topics that its members subscribe to.

Members that share a topic, directly or through other members, are one application.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass

from migrate_groups.errors import InvalidInput
from migrate_groups.model.groups import Member
from migrate_groups.snapshots.selection import TopicPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Members of a group that share topics with each other, and share none with the group's other members.

    - name: unique in the group; usually the common prefix of the members' client ids.
    - topics: the topics that the members subscribe to, by name or by regular expression.
    """

    name: str
    topics: frozenset[str]
    members: tuple[Member, ...]

    @property
    def client_ids(self) -> tuple[str, ...]:
        """The client ids of the application's members, sorted, each once."""
        return tuple(sorted({member.client_id for member in self.members}))


def applications(members: Iterable[Member], topics: Collection[str]) -> tuple[Application, ...]:
    """Return the applications that share a group, sorted by name.

    Members of different applications share no subscribed topic. A member without a subscription is left out. topics:
    the names to match against the members' regular expressions.
    """
    subscriptions = {member: subscription(member, topics) for member in members}
    found = components(subscriptions.values())
    of_topic = {topic: number for number, component in enumerate(found) for topic in component}
    by_component: dict[int, list[Member]] = defaultdict(list)
    for member, subscribed in subscriptions.items():
        if subscribed:
            by_component[of_topic[min(subscribed)]].append(member)
    names = _names([([each.client_id for each in by_component[number]], topics) for number, topics in enumerate(found)])
    made = [
        Application(name=name, topics=topics, members=tuple(by_component[number]))
        for number, (name, topics) in enumerate(zip(names, found, strict=True))
    ]
    return tuple(sorted(made, key=lambda each: each.name))


def subscription(member: Member, topics: Collection[str]) -> frozenset[str]:
    """Return the topics that a member subscribes to, by name or by regular expression.

    topics: the names to match against the expression (RE2, as in brokers since Kafka 4.0). An expression that RE2 can't
    parse matches all of them.
    """
    if not member.subscription_regex:
        return member.topics
    try:
        matched = TopicPattern(member.subscription_regex, is_regex=True).matching(topics)
    except InvalidInput:
        matched = list(topics)
    return member.topics.union(matched)


def components(subscriptions: Iterable[Set[str]]) -> list[frozenset[str]]:
    """Return the connected components of topics, sorted by each component's first topic.

    Two topics are connected if one subscription contains both.
    """
    above: dict[str, str] = {}

    def top(topic: str) -> str:
        while above.setdefault(topic, topic) != topic:
            above[topic] = topic = above[above[topic]]
        return topic

    for each in subscriptions:
        first, *rest = each or [""]
        for topic in rest:
            above[top(topic)] = top(first)
        if each:
            top(first)
    found: dict[str, set[str]] = defaultdict(set)
    for topic in above:
        found[top(topic)].add(topic)
    return sorted(map(frozenset, found.values()), key=min)


def joining(application: Application) -> tuple[tuple[Member, ...], list[frozenset[str]]]:
    """Find the subscription without which an application's topics fall apart into the most unconnected sets.

    Return the members with this subscription, and these sets of topics. Both results are empty if there is no such
    subscription.
    """
    by_topics: dict[frozenset[str], list[Member]] = defaultdict(list)
    for member in application.members:
        by_topics[subscription(member, application.topics)].append(member)
    most: tuple[tuple[Member, ...], list[frozenset[str]]] = ((), [])
    for topics in sorted(by_topics, key=len):
        # A subscription to one topic connects nothing.
        without = components(other for other in by_topics if other != topics) if len(topics) > 1 else []
        if len(without) > max(1, len(most[1])):
            most = tuple(by_topics[topics]), without
    return most


def _names(found: Sequence[tuple[Collection[str], Collection[str]]]) -> list[str]:
    """Return a unique name for each application. found: the client ids and the topics of each application."""
    stems = [_stem(client_ids) for client_ids, _ in found]
    names: list[str] = []
    for stem, (_, topics) in zip(stems, found, strict=True):
        name = stem if stem and stems.count(stem) == 1 else min(topics)
        while name in names:
            name += "-2"
        names.append(name)
    return names


def _stem(client_ids: Collection[str]) -> str:
    """Return the common prefix of client ids, without trailing digits and separators: ``shop`` of shop-1, shop-2."""
    first, last = min(client_ids), max(client_ids)  # a prefix of the first and the last is a prefix of all between them
    size = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return re.sub(r"[-_.:/ 0-9]+$", "", first[:size])
