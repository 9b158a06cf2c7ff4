"""Find the applications that share a consumer group, with the members and the subscriptions of each.

Which members are one application is defined in `migrate_groups.applications`, which knows client ids and topics only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from migrate_groups.applications import components, joining, topics_by_application
from migrate_groups.model.groups import Member
from migrate_groups.planning.checks.source import subscribed


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Members of a group that share topics or client ids, and none with other members.

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

    @property
    def unconnected(self) -> int:
        """Into how many sets the application's topics fall apart if only subscriptions connect topics."""
        return len(components(self._subscriptions.values()))

    def joining(self) -> tuple[tuple[Member, ...], list[frozenset[str]]]:
        """Find the subscription without which the application's topics fall apart into the most unconnected sets.

        Return the members with this subscription, and these sets of topics. Both results are empty if there is no such
        subscription.
        """
        topics, without = joining((member.client_id, of) for member, of in self._subscriptions.items())
        return tuple(member for member, of in self._subscriptions.items() if without and of == topics), without

    @property
    def _subscriptions(self) -> dict[Member, frozenset[str]]:
        return {member: subscribed(member, self.topics) for member in self.members}


def applications(members: Iterable[Member], topics: Collection[str]) -> tuple[Application, ...]:
    """Return the applications that share a group, sorted by name.

    Members of different applications share no subscribed topic. A member without a subscription is left out. topics:
    the names to match against the members' regular expressions.
    """
    subscriptions = {member: subscribed(member, topics) for member in members}
    found = topics_by_application((member.client_id, of_member) for member, of_member in subscriptions.items())
    of_topic = {topic: name for name, own in found.items() for topic in own}
    by_name: dict[str, list[Member]] = defaultdict(list)
    for member, of_member in subscriptions.items():
        if of_member:
            by_name[of_topic[min(of_member)]].append(member)
    return tuple(Application(name=name, topics=own, members=tuple(by_name[name])) for name, own in found.items())
