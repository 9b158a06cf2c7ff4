"""List and describe groups: state, members, committed offsets and lag, as far as the client's principal may see them.

All groups are read at once, so that the number of requests does not grow with the number of groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from migrate_groups.clock import Clock
from migrate_groups.errors import (
    ClusterUnavailable,
    InvalidInput,
    MigrateGroupsError,
    NotAuthorized,
    UsageError,
    raise_first,
)
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.take import (
    ObservedGroup,
    Reading,
    existing,
    existing_group,
    not_empty,
    own_topics_of,
)
from migrate_groups.migration.reading.time_lag import with_time_lag
from migrate_groups.model.groups import STATES, GroupDescription, GroupListing, Member
from migrate_groups.model.partitions import CommittedOffsets, TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.snapshot import Row, SnapshotTable
from migrate_groups.text import counted, named, some

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """A group with its members, and the committed offset and log range of each of its partitions.

    members: the group's members; None if they can't be read.
    topics: the topics for which the group has a committed offset, an assignment or a subscription.
    partitions: a snapshot row for each partition of these topics. If a topic can't be described, only the partitions
    with a committed offset are known.
    remarks: what is not known about the group, and why; empty if everything is known.
    """

    description: GroupDescription
    members: tuple[Member, ...] | None
    topics: frozenset[str]
    partitions: tuple[Row, ...]
    remarks: tuple[str, ...]

    @property
    def group(self) -> str:
        """The name of the group."""
        return self.description.group

    @property
    def state(self) -> str:
        """The state as Kafka names it, such as ``Stable``."""
        return self.description.state

    @property
    def group_type(self) -> str:
        """The type as Kafka names it: ``classic``, ``consumer`` (KIP-848), ``share``, ``streams``."""
        return self.description.group_type

    @property
    def lag(self) -> int | None:
        """The sum of all known lags; None if the lag of no partition is known.

        A partition without a committed offset has an unknown lag, and not lag 0.
        """
        known = [row.lag for row in self.partitions if row.lag is not None]
        return sum(known) if known else None

    @property
    def partitions_without_lag(self) -> int:
        """The number of partitions whose lag is not known."""
        return sum(row.lag is None for row in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupFacts:
    """What was read about the groups and their topics.

    committed: committed offsets by group and partition; None means that a transactional commit is pending. hidden:
    topics that the client's principal may not describe. undescribed: the groups whose description could not be read,
    each with the error. unread: the groups whose committed offsets could not be read, each with the error.
    """

    groups: Mapping[str, GroupDescription]
    committed: Mapping[str, CommittedOffsets]
    topics: Mapping[str, TopicDescription]
    hidden: frozenset[str]
    undescribed: Mapping[str, MigrateGroupsError]
    unread: Mapping[str, MigrateGroupsError]


def list_groups(
    reader: GroupReader,
    clock: Clock,
    *,
    names: Collection[str] = (),
    topics: Collection[TopicPattern] = (),
    states: Collection[str] = (),
) -> tuple[GroupStatus, ...]:
    """Return all groups that the client's principal may describe, sorted by name.

    The remarks of a group say what is not known of it. names: only groups with these names. topics: only groups that
    have a committed offset, an assignment or a subscription for a matching topic, and groups whose topics are not
    known. Only matching topics are in the result. states: only groups in one of these states, in any letter case.

    A pending transactional commit is not waited for. A group that is deleted meanwhile is left out. Raises `UsageError`
    for an unknown state; `GroupNotFound` if a named group does not exist; `InvalidInput` if a named topic does not
    exist and no group has it; `NotAuthorized` if the principal may not describe a named group or topic;
    `ClusterUnavailable`.
    """
    wanted = _states(states)
    named_topics = {pattern.name for pattern in topics if pattern.name is not None}
    visible = reader.describe_topics(named_topics).keys()
    every = _listed(reader, names)
    listed = {each.group: each for each in every if not wanted or each.state in (*wanted, "Unknown")}
    described, undescribed = _answers(reader.described_by_group(listed))
    groups = {
        group: described.get(group) or each.description
        for group, each in listed.items()
        if group in undescribed or described[group].exists
    }
    groups = {group: each for group, each in groups.items() if not wanted or each.state in wanted}
    committed, unread = _answers(reader.all_committed_by_group(_committing(groups)))
    own = {group: _matching(topics, own_topics_of(committed.get(group, {}), each)) for group, each in groups.items()}
    if nowhere := named_topics - visible - _all(own):
        raise InvalidInput(f"topic {some(nowhere)} does not exist, and no group is subscribed to it")
    found, hidden = _visible(reader, _all(own))
    facts = _GroupFacts(
        groups=groups, committed=committed, topics=found, hidden=hidden, undescribed=undescribed, unread=unread
    )
    unsure = {*undescribed, *unread, *(group for group, each in groups.items() if not _has_readable_members(each))}
    kept = [group for group in groups if not topics or own[group] or group in unsure]
    return _statuses(reader, clock, facts, {group: own[group] for group in kept})


def describe(reader: GroupReader, groups: Sequence[str], clock: Clock) -> tuple[GroupStatus, ...]:
    """Return the status of each of these groups, in the same order. The groups may have members.

    A pending transactional commit is not waited for. Raises `GroupNotFound`; `UsageError` for an empty name; `Refused`
    if a member's metadata is not in Kafka's consumer protocol; `NotAuthorized`, also if the principal may not describe
    a topic of a group; `ClusterUnavailable`.
    """
    found = {group: existing(each) for group, each in reader.describe_groups([*map(not_empty, groups)]).items()}
    everywhere = raise_first(reader.all_committed_by_group(_committing(found)))
    own = {group: own_topics_of(everywhere.get(group, {}), each) for group, each in found.items()}
    topics = reader.describe_topics(_all(own))
    # Read partitions without a commit by name, because the answer for all partitions leaves out a pending first commit
    # (docs/kafka-behaviour.md#pending-transactions).
    unknown = {
        group: [each for each in _partitions(topics, own[group]) if commits.get(each) is None]
        for group, commits in everywhere.items()
    }
    rest = raise_first(reader.committed_now({group: each for group, each in unknown.items() if each}))
    committed = {
        group: _known_or_pending(commits, unknown[group], rest.get(group, {})) for group, commits in everywhere.items()
    }
    facts = _GroupFacts(groups=found, committed=committed, topics=topics, hidden=frozenset(), undescribed={}, unread={})
    return _statuses(reader, clock, facts, own)


def _known_or_pending(
    commits: CommittedOffsets, unknown: Collection[TopicPartition], read: CommittedOffsets
) -> CommittedOffsets:
    """Return a group's committed offsets, and None for each partition with a pending transactional commit.

    commits: all committed offsets of the group. unknown: the partitions that ``commits`` lacks or has None for, which
    were then requested by name. read: the answer to that request, which lacks the partitions with a pending commit.
    Partitions without a committed offset are left out of the result.
    """
    known = {partition: each for partition, each in {**commits, **read}.items() if each is not None}
    return {**known, **{partition: None for partition in unknown if partition not in read}}


def with_time_lags(reader: GroupReader, groups: Sequence[GroupStatus]) -> tuple[tuple[GroupStatus, ...], str]:
    """Return the groups with the timestamp of each partition's oldest unread record, and a remark for the user.

    The remark says why some timestamps may be those of transaction markers; it is empty if they are not. Raises the
    errors of `GroupReader`.
    """
    found = with_time_lag(reader, SnapshotTable.of_rows(row for group in groups for row in group.partitions))
    rows: dict[str | None, list[Row]] = defaultdict(list)
    for row in found.snapshot.rows():
        rows[row.group].append(row)
    return tuple(replace(group, partitions=tuple(rows[group.group])) for group in groups), found.remark


def _states(given: Collection[str]) -> frozenset[str]:
    known = {state.lower(): state for state in STATES}
    if unknown := [state for state in given if state.lower() not in known]:
        raise UsageError(f"unknown {named('state', unknown)}: choose from {', '.join(STATES)}")
    return frozenset(known[state.lower()] for state in given)


def _listed(reader: GroupReader, names: Collection[str]) -> Sequence[GroupListing]:
    """Return the groups with these names, or all groups if ``names`` is empty.

    Raises `GroupNotFound`; `NotAuthorized` if the client's principal may not describe a named group.
    """
    every = reader.list_groups()
    if not names:
        return every
    found = {each.group: each for each in every if each.group in names}
    for group in {*names} - found.keys():
        existing_group(reader, group)  # raises an error, also if the group is hidden
    return [*found.values()]


def _answers(answers: Mapping[str, T | MigrateGroupsError]) -> tuple[dict[str, T], dict[str, MigrateGroupsError]]:
    """Return the answers and the errors, each by group. Raises `ClusterUnavailable` if the cluster did not answer."""
    found: dict[str, T] = {}
    failed: dict[str, MigrateGroupsError] = {}
    for group, answer in answers.items():
        if not isinstance(answer, MigrateGroupsError):
            found[group] = answer
        elif isinstance(answer, ClusterUnavailable) and not isinstance(answer, NotAuthorized):
            raise answer
        else:
            failed[group] = answer
    return found, failed


def _committing(groups: Mapping[str, GroupDescription]) -> list[str]:
    return [group for group, each in groups.items() if each.group_type != "share"]


def _has_readable_members(group: GroupDescription) -> bool:
    return group.group_type in ("classic", "consumer") or group.state == "Empty"


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


def _partitions(topics: Mapping[str, TopicDescription], names: frozenset[str]) -> list[TopicPartition]:
    return [TopicPartition(name, number) for name in names & topics.keys() for number in topics[name].partitions]


def _statuses(
    reader: GroupReader, clock: Clock, facts: _GroupFacts, own: Mapping[str, frozenset[str]]
) -> tuple[GroupStatus, ...]:
    """Return the status of each group in ``own``. own: by group, the topics whose partitions the status includes."""
    taken_at = clock.now()
    offsets = {}
    for group, topics in own.items():
        commits = {each: found for each, found in facts.committed.get(group, {}).items() if each.topic in topics}
        offsets[group] = dict.fromkeys(sorted({*_partitions(facts.topics, topics), *commits})) | commits
    bounds = reader.log_ranges({partition for of_group in offsets.values() for partition in of_group})
    cluster_id = reader.cluster_id()
    readings = {
        group: Reading(
            cluster_id=cluster_id,
            taken_at=taken_at,
            observed=ObservedGroup(description=facts.groups[group], topics=facts.topics, committed=offsets[group]),
            bounds=bounds,
        )
        for group in own
    }
    return tuple(_status(reader.principal, facts, reading, own[group]) for group, reading in readings.items())


def _status(principal: str, facts: _GroupFacts, reading: Reading, topics: frozenset[str]) -> GroupStatus:
    description, rows = reading.observed.description, tuple(reading.rows())
    group, group_type = description.group, description.group_type
    remarks = [str(errors[group]) for errors in (facts.undescribed, facts.unread) if group in errors]
    is_readable = _has_readable_members(description)
    if not is_readable:
        remarks.append(f"the members of a {group_type} group can't be read")
    if group_type == "share":
        remarks.append("a share group commits no offsets (KIP-932)")
    pending = [partition for partition, offset in facts.committed.get(group, {}).items() if offset is None]
    pending = [partition for partition in pending if partition.topic in topics]
    if pending:
        remarks.append(f"a transactional commit is pending for {some(pending)}")
    if uncommitted := sum(row.offset is None for row in rows) - len(pending):
        remarks.append(f"no committed offset for {counted(uncommitted, 'partition')}")
    if endless := [row.topic_partition for row in rows if row.offset is not None and row.log_end_offset is None]:
        remarks.append(f"no log end offset for {some(endless)}: it has no leader, or does not exist")
    if hidden := topics & facts.hidden:
        remarks.append(f"{principal} lacks Describe on Topic {some(hidden)}")
    if missing := topics - facts.topics.keys() - hidden:
        remarks.append(f"topic {some(missing)} does not exist")
    return GroupStatus(
        description=description,
        members=description.members if is_readable and group not in facts.undescribed else None,
        topics=topics,
        partitions=rows,
        remarks=tuple(remarks),
    )
