"""Find the applications that share a consumer group, and the members of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from migrate_groups.applications import components, topics_by_application
from migrate_groups.applications import joining as joining_topics
from migrate_groups.errors import InvalidInput
from migrate_groups.model.groups import Member
from migrate_groups.snapshots.selection import TopicPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Members of a group that share topics or client ids (`migrate_groups.applications`), and none with other members.

    - name: unique in the group; usually the common beginning of the members' client ids.
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
    found = topics_by_application((member.client_id, subscribed) for member, subscribed in subscriptions.items())
    of_topic = {topic: name for name, own in found.items() for topic in own}
    by_name: dict[str, list[Member]] = defaultdict(list)
    for member, subscribed in subscriptions.items():
        if subscribed:
            by_name[of_topic[min(subscribed)]].append(member)
    return tuple(Application(name=name, topics=own, members=tuple(by_name[name])) for name, own in found.items())


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


def unconnected(application: Application) -> int:
    """Return into how many sets an application's topics fall apart if only subscriptions connect topics."""
    return len(components(subscription(member, application.topics) for member in application.members))


def joining(application: Application) -> tuple[tuple[Member, ...], list[frozenset[str]]]:
    """Find the subscription without which an application's topics fall apart into the most unconnected sets.

    Return the members with this subscription, and these sets of topics. Both results are empty if there is no such
    subscription.
    """
    subscriptions = {member: subscription(member, application.topics) for member in application.members}
    topics, without = joining_topics((member.client_id, of) for member, of in subscriptions.items())
    return tuple(member for member, of in subscriptions.items() if without and of == topics), without
