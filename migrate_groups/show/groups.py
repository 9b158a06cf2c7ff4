"""The results of ``list`` and ``describe``. A value that is not known is null in their JSON documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from migrate_groups.migration.reading.status import GroupStatus
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.show.documents import Document, of_row, row_of
from migrate_groups.show.result import (
    LENGTH,
    NAME,
    OFFSET,
    SECOND,
    SPAN,
    TEXT,
    TEXTS,
    UNKNOWN,
    WORD,
    Column,
    Line,
    Result,
    Table,
    within,
)
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted

GROUP: list[Column[GroupStatus]] = [
    Column("GROUP", NAME, lambda group: group.group, "group"),
    Column("STATE", WORD, lambda group: group.state, "state"),
    Column("TYPE", WORD, lambda group: group.group_type, "type"),
]
MEMBERS: Column[GroupStatus] = Column(
    "MEMBERS", OFFSET, lambda group: None if group.members is None else len(group.members), "members", int | None
)
LAG: Column[GroupStatus] = Column("LAG", OFFSET, lambda group: group.lag, "lag", int | None)
REMARKS: Column[GroupStatus] = Column("REMARKS", TEXTS, lambda group: group.remarks, "remarks")
_WITHOUT_LAG: Column[GroupStatus] = Column(
    "", OFFSET, lambda group: group.partitions_without_lag, "partitions_without_lag"
)
_LISTED: list[Column[GroupStatus]] = [
    *GROUP,
    MEMBERS,
    Column("TOPICS", LENGTH, lambda group: sorted(group.topics), "topics"),
    Column("", OFFSET, lambda group: len(group.partitions), "partitions"),
    LAG,
    _WITHOUT_LAG,
    REMARKS,
]
_LOG_START: Column[Row] = Column(
    "LOG-START-OFFSET", OFFSET, lambda row: row.log_start_offset, "log_start_offset", int | None
)
_TIME_LAG: Column[Row] = Column(
    "TIME-LAG",
    SPAN,
    lambda row: None if row.time_lag is None else row.time_lag.total_seconds(),
    "time_lag_seconds",
    float | None,
)
_OF_PARTITION: list[Column[Row]] = [
    Column("TOPIC", NAME, lambda row: row.topic, "topic"),
    Column("", NAME, lambda row: row.topic_id, "topic_id", str | None),
    Column("PARTITION", OFFSET, lambda row: row.partition, "partition"),
    Column("CURRENT-OFFSET", OFFSET, lambda row: row.offset, "committed_offset", int | None),
    Column("", OFFSET, lambda row: row.leader_epoch, "leader_epoch", int | None),
    Column("", TEXT, lambda row: row.metadata, "metadata"),
    _LOG_START,
    Column("LOG-END-OFFSET", OFFSET, lambda row: row.log_end_offset, "log_end_offset", int | None),
    Column("LAG", OFFSET, lambda row: row.lag, "lag", int | None),
    Column("", SECOND, lambda row: row.oldest_unconsumed_at, "oldest_unread_at", datetime | None),
    _TIME_LAG,
]
_OF_MEMBER: list[Column[Member]] = [
    Column("CONSUMER-ID", NAME, lambda member: member.member_id, "member_id"),
    Column("", NAME, lambda member: member.group_instance_id, "group_instance_id", str | None),
    Column("HOST", NAME, lambda member: member.host, "host"),
    Column("CLIENT-ID", NAME, lambda member: member.client_id, "client_id"),
    Column("", TEXT, lambda member: sorted(member.assignment), "assignment", Sequence[TopicPartition]),
    Column("", TEXTS, lambda member: sorted(member.subscription), "subscription"),
    Column("", TEXT, lambda member: member.subscription_regex or None, "subscription_regex", str | None),
]


class _Line(NamedTuple):
    """A line of ``describe``. partition: None for a member without one. member: None for an unassigned partition."""

    group: str
    partition: Row | None
    member: Member | None


# The columns of ``kafka-consumer-groups --describe``.
_OF_KAFKA: list[Column[_Line]] = [
    Column("GROUP", NAME, lambda line: line.group),
    *within(attrgetter("partition"), (each for each in _OF_PARTITION if each not in (_LOG_START, _TIME_LAG))),
    *within(attrgetter("member"), _OF_MEMBER),
]


@row_of(_LISTED)
class ListedGroup:
    """A consumer group in the document of ``list``.

    - state, type: as Kafka names them.
    - members: null if not known.
    - topics: the topics for which the group has a committed offset, an assignment or a subscription. With ``--topic``,
      only the matching topics.
    - partitions: the number of partitions of ``topics``.
    - lag: the sum of the known lags of the partitions; null if no lag is known.
    - partitions_without_lag: the number of partitions whose lag is not known.
    - remarks: what is not known, and why.
    """


class GroupList(Document, frozen=True, kw_only=True, tag="migrate-groups/list"):
    """The document that ``list`` prints: the consumer groups, sorted by name."""

    groups: Sequence[ListedGroup]


@row_of(_OF_MEMBER)
class DescribedMember:
    """A member of a consumer group in the document of ``describe``.

    - group_instance_id: null if the member is not static.
    - subscription: the topics that the member subscribes to by name; empty while a classic group rebalances.
    - subscription_regex: the regular expression that a KIP-848 member subscribes to; null if there is none.
    """


@row_of(_OF_PARTITION, member_ids=Sequence[str])
class DescribedPartition:
    """A partition of a consumer group in the document of ``describe``.

    - topic_id: null if the brokers report none.
    - committed_offset: null if there is none.
    - leader_epoch: the leader epoch of the committed offset; null if there is none.
    - metadata: the metadata of the committed offset; "" if there is none.
    - log_start_offset, log_end_offset: null if the partition has no leader or does not exist.
    - lag: the log end offset minus the committed offset; null if not known.
    - oldest_unread_at, time_lag_seconds: the timestamp and the age of the oldest unread record. They are null without
      ``--time-lag``, if no record is unread, or if not known.
    - member_ids: the members that the partition is assigned to.
    """


_DESCRIBED: list[Column[GroupStatus]] = [
    *GROUP,
    Column("", TEXT, lambda group: _members(group), "members", Sequence[DescribedMember] | None),
    Column("", TEXT, lambda group: _partitions(group), "partitions", Sequence[DescribedPartition]),
    LAG,
    _WITHOUT_LAG,
    REMARKS,
]


@row_of(_DESCRIBED)
class DescribedGroup:
    """A consumer group in the document of ``describe``.

    - state, type: as Kafka names them.
    - members: null if not known.
    - partitions: the partitions of the topics for which the group has a committed offset, an assignment or a
      subscription.
    - lag: the sum of the known lags of the partitions; null if no lag is known.
    - partitions_without_lag: the number of partitions whose lag is not known.
    - remarks: what is not known, and why.
    """


class GroupDescriptions(Document, frozen=True, kw_only=True, tag="migrate-groups/describe"):
    """The document that ``describe`` prints.

    groups: in the order of the command line; with ``--all-groups`` sorted by name.
    """

    groups: Sequence[DescribedGroup]


def listing(groups: Sequence[GroupStatus]) -> Result:
    """Return a table with one line per group, then a line with the totals. Numbers that are not known are ``-``."""
    whole = Table(columns=_LISTED, rows=groups, thing="group")
    table = whole if any(group.remarks for group in groups) else replace(whole, columns=whole.columns[:-1])
    document = GroupList(groups=[of_row(ListedGroup, _LISTED, group) for group in groups])
    return Result(document=document, parts=[table, Line(_totals(groups))], whole=whole)


def descriptions(groups: Sequence[GroupStatus]) -> Result:
    """Return the state, the partitions and the members of each group."""
    document = GroupDescriptions(groups=[of_row(DescribedGroup, _DESCRIBED, group) for group in groups])
    parts = [part for group in groups for part in (Line(""), *_description(group))][1:]
    whole = Table(
        columns=[*_OF_KAFKA, *within(attrgetter("partition"), [_LOG_START, _TIME_LAG])],
        rows=[line for group in groups for line in _lines(group)],
        thing="line",
    )
    return Result(document=document, parts=parts or [Line("no groups")], whole=whole)


def _description(group: GroupStatus) -> list[Table[_Line] | Line]:
    """Return a group's state, a table like that of ``kafka-consumer-groups --describe``, and the total lag.

    A column LOG-START-OFFSET is added if a committed offset is below the log start offset. A column TIME-LAG is added
    if a time lag is known.
    """
    members = UNKNOWN if group.members is None else len(group.members)
    title = f"group {group.group}  {group.state}, {group.group_type}, {members} member{'' if members == 1 else 's'}"
    # Unread records are deleted if a committed offset is below the log start offset.
    is_below = any(row.offset is not None and row.offset < (row.log_start_offset or 0) for row in group.partitions)
    more = [_LOG_START] if is_below else []
    if any(row.time_lag is not None for row in group.partitions):
        more.append(_TIME_LAG)
    table = Table(
        title=title,
        columns=[*_OF_KAFKA, *within(attrgetter("partition"), more)],
        rows=[*_lines(group)],
        thing="line",
    )
    lag = UNKNOWN if group.lag is None else f"{group.lag:,}"
    total = f"total lag {lag} in {counted(len(group.partitions), 'partition')}"
    return [table, Line("; ".join((total, *group.remarks)))]


def _members(group: GroupStatus) -> list[DescribedMember] | None:
    if group.members is None:
        return None
    return [of_row(DescribedMember, _OF_MEMBER, each) for each in sorted(group.members, key=_by_client)]


def _partitions(group: GroupStatus) -> list[DescribedPartition]:
    holders = _holders(group.members or ())
    return [
        of_row(
            DescribedPartition,
            _OF_PARTITION,
            row,
            member_ids=[member.member_id for member in holders.get(row.topic_partition, ())],
        )
        for row in group.partitions
    ]


def _lines(group: GroupStatus) -> Iterator[_Line]:
    """Yield each partition with each member that it is assigned to, then each member without a partition."""
    members = sorted(group.members or (), key=_by_client)
    holders = _holders(members)
    for row in group.partitions:
        yield from (_Line(group.group, row, holder) for holder in holders.get(row.topic_partition, [None]))
    shown = {row.topic_partition for row in group.partitions}
    yield from (_Line(group.group, None, member) for member in members if not member.assignment & shown)


def _by_client(member: Member) -> tuple[str, str]:
    return member.client_id, member.member_id


def _holders(members: Iterable[Member]) -> Mapping[TopicPartition, Sequence[Member]]:
    holders = defaultdict(list)
    for member in members:
        for partition in member.assignment:
            holders[partition].append(member)
    return holders


def _totals(groups: Sequence[GroupStatus]) -> str:
    topics = {topic for group in groups for topic in group.topics}
    known = counted(sum(len(group.members or ()) for group in groups), "member")
    lags = [group.lag for group in groups if group.lag is not None]
    lag = f"{sum(lags):,}" if lags else UNKNOWN
    parts = [
        counted(len(groups), "group"),
        f"at least {known}" if any(group.members is None for group in groups) else known,
        counted(len(topics), "topic"),
        f"total lag {lag}",
    ]
    if unknown := sum(group.partitions_without_lag for group in groups):
        parts.append(f"not known for {counted(unknown, 'partition')}")
    return ", ".join(parts)
