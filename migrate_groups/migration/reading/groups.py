"""List and describe groups: state, members, committed offsets and lag, as far as the principal may see them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from migrate_groups.clock import Clock
from migrate_groups.errors import (
    InvalidInput,
    NotAuthorized,
    Refused,
    UsageError,
    raise_first,
    without_errors,
)
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import (
    describe_groups,
    existing,
    existing_group,
    not_empty,
    own_topics_of,
    read_all_committed,
)
from migrate_groups.migration.reading.status import (
    GroupFacts,
    GroupStatus,
    has_readable_members,
    statuses,
)
from migrate_groups.model.groups import STATES, TYPES, GroupDescription, Member
from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription, partitions_of
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.text import named, some

_NOT_READABLE = (NotAuthorized, Refused)


def list_groups(
    reader: GroupReader,
    clock: Clock,
    *,
    names: Collection[str] = (),
    topics: Collection[TopicPattern] = (),
    states: Collection[str] = (),
    types: Collection[str] = (),
) -> tuple[GroupStatus, ...]:
    """Return the groups that the client's principal may describe, without those of this tool, sorted by name.

    names, states, types: only groups with one of these. topics: only groups with a committed offset, an assignment or a
    subscription for a matching topic, and groups whose topics are not known.

    Raises `UsageError` for an unknown state or type; `GroupNotFound` if a named group does not exist; `InvalidInput` if
    a named topic does not exist.
    """
    wanted, kinds = _known("state", states, STATES), _known("type", types, TYPES)
    named_topics = {pattern.name for pattern in topics if pattern.name is not None}
    visible = reader.describe_topics(named_topics).keys()
    every = [each for each in _listed(reader, names) if not kinds or each.group_type in kinds]
    listed = {each.group: each for each in every if not wanted or each.state in (*wanted, "Unknown")}
    described, undescribed = without_errors(reader.describe_groups(listed), *_NOT_READABLE)
    groups = {
        group: described.get(group) or each
        for group, each in listed.items()
        if group in undescribed or described[group].exists
    }
    groups = {group: each for group, each in groups.items() if not wanted or each.state in wanted}
    answers = reader.committed(dict.fromkeys(_committing(groups)), wait=False)
    committed, unread = without_errors(answers, *_NOT_READABLE)
    own = {group: _matching(topics, own_topics_of(committed.get(group, {}), each)) for group, each in groups.items()}
    if nowhere := named_topics - visible - _all(own):
        raise InvalidInput(f"topic {some(nowhere)} does not exist, and no group is subscribed to it")
    found, hidden = _visible(reader, _all(own))
    facts = GroupFacts(
        groups=groups, committed=committed, topics=found, hidden=hidden, undescribed=undescribed, unread=unread
    )
    unsure = {*undescribed, *unread, *(group for group, each in groups.items() if not has_readable_members(each))}
    kept = [group for group in groups if not topics or own[group] or group in unsure]
    return statuses(reader, clock, facts, {group: own[group] for group in kept})


def describe(
    reader: GroupReader, groups: Sequence[str], clock: Clock, *, topics: Collection[TopicPattern] = ()
) -> tuple[GroupStatus, ...]:
    """Return the status of each of these groups, in the same order, without a wait for pending transactional commits.

    topics: only partitions of matching topics, as `of_topics` does it; empty: of all topics.

    Raises `GroupNotFound`; `UsageError` for an empty name; `InvalidInput` if no group uses a topic; `Refused` if a
    member's metadata is not in Kafka's consumer protocol; `NotAuthorized` if the client's principal may not describe a
    group or a topic of it.
    """
    found = {group: existing(each) for group, each in describe_groups(reader, [*map(not_empty, groups)]).items()}
    everywhere = read_all_committed(reader, _committing(found))
    own = {group: _matching(topics, own_topics_of(everywhere.get(group, {}), each)) for group, each in found.items()}
    if nowhere := {pattern.pattern for pattern in topics if not pattern.matching(_all(own))}:
        raise InvalidInput(f"no described group has an offset, a member or a subscription for {some(nowhere)}")
    described = reader.describe_topics(_all(own))
    # Read partitions without a commit by name, because the answer for all partitions leaves out a pending first commit
    # (docs/kafka-behaviour.md#pending-transactions).
    unknown = {
        group: [each for each in partitions_of(described, own[group]) if commits.get(each) is None]
        for group, commits in everywhere.items()
    }
    rest = raise_first(reader.committed(unknown, wait=False))
    committed = {
        group: {**{partition: known for partition, known in commits.items() if known is not None}, **rest[group]}
        for group, commits in everywhere.items()
    }
    facts = GroupFacts(
        groups=found, committed=committed, topics=described, hidden=frozenset(), undescribed={}, unread={}
    )
    return of_topics(statuses(reader, clock, facts, own), topics)


def of_topics(groups: Sequence[GroupStatus], topics: Collection[TopicPattern]) -> tuple[GroupStatus, ...]:
    """Return the groups with only the members that read matching topics, and members whose topics are not known.

    If ``topics`` is empty, all members stay.
    """
    if not topics:
        return tuple(groups)
    return tuple(
        each
        if each.members is None
        else replace(each, members=tuple(one for one in each.members if _may_read(one, each.topics)))
        for each in groups
    )


def _may_read(member: Member, topics: frozenset[str]) -> bool:
    return not member.topics or bool(member.subscription_regex) or bool(member.topics & topics)


def _known(kind: str, given: Collection[str], names: Sequence[str]) -> frozenset[str]:
    """Return the given names as Kafka writes them. Raises `UsageError` for a name that is not in ``names``."""
    known = {name.lower(): name for name in names}
    if unknown := [each for each in given if each.lower() not in known]:
        raise UsageError(f"unknown {named(kind, unknown)}: choose from {', '.join(names)}")
    return frozenset(known[each.lower()] for each in given)


def _listed(reader: GroupReader, names: Collection[str]) -> Sequence[GroupDescription]:
    """Return the groups with these names; if ``names`` is empty, all groups but those that this tool made for itself.

    Raises `GroupNotFound`; `NotAuthorized` if the client's principal may not describe a named group.
    """
    every = reader.list_groups()
    if not names:
        return [each for each in every if not each.group.startswith(OWN_GROUPS)]
    found = {each.group: each for each in every if each.group in names}
    for group in {*names} - found.keys():
        existing_group(reader, group)  # raises an error, also if the group is hidden
    return [*found.values()]


def _committing(groups: Mapping[str, GroupDescription]) -> list[str]:
    return [group for group, each in groups.items() if each.group_type != "share"]


def _matching(patterns: Collection[TopicPattern], topics: frozenset[str]) -> frozenset[str]:
    if not patterns:
        return topics
    return frozenset(topic for pattern in patterns for topic in pattern.matching(topics))


def _all(topics: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*topics.values())


def _visible(reader: GroupReader, topics: frozenset[str]) -> tuple[Mapping[str, TopicDescription], frozenset[str]]:
    """Return the descriptions of the topics that exist, and the topics that the client's principal may not describe."""
    try:
        return reader.describe_topics(topics), frozenset()
    except NotAuthorized:
        permissions = reader.permissions([Resource(ResourceType.TOPIC, topic) for topic in sorted(topics)])
        hidden = frozenset(
            resource.name
            for resource, permitted in permissions.items()
            if permitted is not None and Operation.DESCRIBE not in permitted
        )
        return reader.describe_topics(topics - hidden), hidden
