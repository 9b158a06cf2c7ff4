"""Find the applications that share a consumer group, from the topics that its members subscribe to.

Two members belong to one application if they subscribe to a common topic, or if other members connect them in this way:
an application is a connected component.
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

    name: the common prefix of the members' client ids. If that is empty or another application has it too, the name is
    the alphabetically first topic. The names of a group's applications differ. topics: the topics that the members
    subscribe to, by name or by regular expression.
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

    The members of an application share subscribed topics with each other, and none with other members. members: the
    members of the group; a member that subscribes to no topic is left out. topics: the topic names to match against the
    members' regular expressions.
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

    topics: the topic names to match against the member's regular expression. RE2 matches them, as in brokers since
    Kafka 4.0. An expression that RE2 can't parse is taken to match all of ``topics``.
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

    Two topics are in one component if one subscription contains both, or if a chain of such subscriptions connects
    them.
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
    """Find the one subscription that connects otherwise separate topics of an application.

    Return the members that have this subscription, and the components of topics (`components`) without it. An example
    is a regular expression that matches every topic. If several subscriptions qualify, the one that leaves the most
    components is chosen. Both results are empty if no single subscription connects separate topics.
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
    """Return a name for each application; no two names are equal. found: client ids and topics of each application."""
    stems = [_stem(client_ids) for client_ids, _ in found]
    names: list[str] = []
    for stem, (_, topics) in zip(stems, found, strict=True):
        name = stem if stem and stems.count(stem) == 1 else min(topics)
        while name in names:
            name += "-2"
        names.append(name)
    return names


def _stem(client_ids: Collection[str]) -> str:
    """Return the common prefix of the client ids, without trailing digits and separators: ``shop`` for shop-1, shop-2.

    The result is empty if the client ids have no common prefix.
    """
    first, last = min(client_ids), max(client_ids)  # a prefix of the first and the last is a prefix of all between them
    size = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return re.sub(r"[-_.:/ 0-9]+$", "", first[:size])
