"""Find the applications that share a consumer group, from the topics and client ids of its members.

Two members are one application if they share a topic, or if their client ids are equal but for what differs between the
processes of one application: the suffixes of Kubernetes pods, and UUIDs. Members that are connected in this way through
other members are one application, too.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=Any)

_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}"
# The suffix of a pod of a Deployment (-<hash of the replica set>-<5 letters and digits>), the number of a pod of a
# StatefulSet or of a thread, or a UUID.
_SUFFIX = re.compile(rf"(?:-(?=[a-f]*[0-9])[0-9a-f]{{6,10}}-[a-z0-9]{{5}}|-[0-9]+|(?:^|[-_.:/])(?:{_UUID}))$")
# The client ids that Java's consumer, librdkafka, sarama, franz-go, kafkajs, ruby-kafka, kafka-python and aiokafka use
# if none is set, and the default host names of EC2. They say nothing about the application.
_DEFAULT = re.compile(
    r"consumer-(?:.*-)?[0-9]+|rdkafka|sarama|kgo|kafkajs|ruby-kafka|(?:kafka-python|aiokafka)-.*|ip(?:-[0-9]+){4}.*"
)

EAGER_ASSIGNORS = ("range", "roundrobin", "sticky")
"""The eager assignors of Kafka's clients: in each rebalance every member revokes all its partitions."""

KIP_848 = "consumer"
"""Stands for the assignor of a KIP-848 group, which has none, in the tables of costs."""

HOLD_REBALANCE_TIMEOUT = 24 * 60 * 60.0
"""The rebalance timeout in seconds of the member with which this tool holds a group: the coordinator waits for this
member, and lets consumers wait. No consumer has such a long one, so it marks the member in the log of
``__consumer_offsets``."""


def stem(client_id: str) -> str:
    """Return a client id without what differs between the processes of one application: ``shop`` of ``shop-1``.

    The result is empty if the rest is no name: for a UUID, and for a client id that client libraries use by default.
    """
    if _DEFAULT.fullmatch(client_id):
        return ""
    while (shorter := _SUFFIX.sub("", client_id)) != client_id:
        client_id = shorter
    return client_id


def topics_by_application(members: Iterable[tuple[str, Set[str]]]) -> dict[str, frozenset[str]]:
    """Return the topics of each application of a group, by the name of the application, in the order of the names.

    members: the client id and the subscribed topics of each member. A member without topics is left out. A name is
    unique: the common beginning of the client ids, or one of the topics.
    """
    by_topics = _client_ids(members)
    found = _connected(by_topics)
    of_topic = {topic: number for number, topics in enumerate(found) for topic in topics}
    client_ids: list[set[str]] = [set() for _ in found]
    for topics, own in by_topics.items():
        client_ids[of_topic[min(topics)]] |= own
    return dict(sorted(zip(_names(found, client_ids), found, strict=True)))


def joining(members: Iterable[tuple[str, Set[str]]]) -> tuple[frozenset[str], list[frozenset[str]]]:
    """Return the subscription without which an application's topics fall apart into the most unconnected sets.

    members: the client id and the subscribed topics of each member. The result is the topics of the subscription, and
    these sets, sorted by the first topic of each. Both are empty if there is no such subscription.
    """
    nodes = {topics: _nodes(topics, own) for topics, own in _client_ids(members).items()}
    uses = Counter(node for each in nodes.values() for node in each)
    found: tuple[frozenset[str], list[frozenset[str]]] = frozenset(), []
    for topics, own in sorted(nodes.items(), key=lambda item: len(item[0])):
        # A subscription to one topic, or with one node that others have, connects nothing.
        if len(topics) > 1 and sum(uses[node] > 1 for node in own) > 1:
            without = components(each for other, each in nodes.items() if other != topics)
            if len(without) > max(1, len(found[1])):
                found = topics, [*map(_topics, without)]
    return found


def components(sets: Iterable[Set[_Node]]) -> list[frozenset[_Node]]:
    """Return the connected components of the elements of these sets, sorted by each component's first element.

    Two elements are connected if one set contains both.
    """
    above: dict[_Node, _Node] = {}

    def top(node: _Node) -> _Node:
        while above.setdefault(node, node) != node:
            above[node] = node = above[above[node]]
        return node

    for each in sets:
        first: _Node | None = None
        for node in each:
            if first is None:
                first = top(node)
            else:
                above[top(node)] = top(first)
    found: dict[_Node, set[_Node]] = defaultdict(set)
    for node in above:
        found[top(node)].add(node)
    return sorted(map(frozenset, found.values()), key=min)


def _client_ids(members: Iterable[tuple[str, Set[str]]]) -> dict[frozenset[str], set[str]]:
    """Return the client ids of members, by the topics to which they subscribe. Members without topics are left out."""
    found: dict[frozenset[str], set[str]] = defaultdict(set)
    for client_id, topics in members:
        if topics:
            found[frozenset(topics)].add(client_id)
    return found


def _connected(client_ids: Mapping[frozenset[str], Set[str]]) -> list[frozenset[str]]:
    """Return the sets of topics that members and their client ids connect. client_ids: those of members, by topics."""
    return [*map(_topics, components(_nodes(topics, own) for topics, own in client_ids.items()))]


def _nodes(topics: Set[str], client_ids: Set[str]) -> frozenset[tuple[int, str]]:
    """Return what members with these topics and client ids share with others: topics, and the stems of client ids."""
    # Topics come first, so that each component's first node is a topic.
    names = (_identity(each) for each in client_ids)
    return frozenset({*((0, topic) for topic in topics), *((1, name) for name in names if name)})


def _topics(component: Iterable[tuple[int, str]]) -> frozenset[str]:
    return frozenset(name for kind, name in component if kind == 0)


def _identity(client_id: str) -> str:
    """Return a text that is equal for client ids of one application; empty if the client id says nothing about it."""
    return "" if _DEFAULT.fullmatch(client_id) else stem(client_id) or client_id


def _names(found: Sequence[Collection[str]], client_ids: Sequence[Collection[str]]) -> list[str]:
    """Return a unique name for each application. found: its topics. client_ids: the client ids of its members."""
    beginnings = [_common({stem(each) for each in own} - {""}) for own in client_ids]
    # ``shop`` of shop.1 and shop.2, but shop1 and shop2 if these are two applications.
    short = [re.sub(r"[-_.:/ 0-9]+$", "", each) for each in beginnings]
    names: list[str] = []
    for number, topics in enumerate(found):
        unique = (each[number] for each in (short, beginnings) if each[number] and each.count(each[number]) == 1)
        name = next(unique, min(topics))
        while name in names:
            name += "-2"
        names.append(name)
    return names


def _common(names: Collection[str]) -> str:
    """Return the common beginning of names; empty if there is none."""
    if not names:
        return ""
    first, last = min(names), max(names)  # a prefix of the first and the last is a prefix of all between them
    size = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:size] if size == len(last) else re.sub(r"[-_.:/ ]+$", "", first[:size])
