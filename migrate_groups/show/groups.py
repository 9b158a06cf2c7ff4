"""The results of ``list`` and ``describe``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from migrate_groups.migration.reading.status import GroupStatus
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.show.group_documents import (
    DescribedGroup,
    DescribedMember,
    DescribedPartition,
    GroupDescriptions,
    GroupList,
    ListedGroup,
)
from migrate_groups.show.result import (
    LENGTH,
    NAME,
    OFFSET,
    SECOND,
    SPAN,
    TEXT,
    UNKNOWN,
    WORD,
    Column,
    Kind,
    Line,
    Result,
    Role,
    Table,
    headed,
    within,
)
from migrate_groups.show.rows import of_columns
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted


class _Line(NamedTuple):
    """A line of ``describe``. partition: None for a member without one. member: None for an unassigned partition."""

    group: str
    partition: Row | None
    member: Member | None


_LISTED: list[Column[GroupStatus]] = [
    Column("GROUP", NAME, lambda group: group.group, "group"),
    Column("STATE", WORD, lambda group: group.state, "state"),
    Column("TYPE", WORD, lambda group: group.group_type, "type"),
    Column("MEMBERS", OFFSET, lambda group: None if group.members is None else len(group.members), "members"),
    Column("TOPICS", LENGTH, lambda group: sorted(group.topics), "topics"),
    Column("", OFFSET, lambda group: len(group.partitions), "partitions"),
    Column("LAG", OFFSET, lambda group: group.lag, "lag"),
    Column("", OFFSET, lambda group: group.partitions_without_lag, "partitions_without_lag"),
    Column("REMARKS", Kind(Role.TEXT, "; ".join), lambda group: group.remarks, "remarks"),
]
_OF_PARTITION: list[Column[Row]] = [
    Column("TOPIC", NAME, lambda row: row.topic, "topic"),
    Column("", NAME, lambda row: row.topic_id, "topic_id"),
    Column("PARTITION", OFFSET, lambda row: row.partition, "partition"),
    Column("CURRENT-OFFSET", OFFSET, lambda row: row.offset, "committed_offset"),
    Column("", OFFSET, lambda row: row.leader_epoch, "leader_epoch"),
    Column("", TEXT, lambda row: row.metadata, "metadata"),
    Column("LOG-END-OFFSET", OFFSET, lambda row: row.log_end_offset, "log_end_offset"),
    Column("LAG", OFFSET, lambda row: row.lag, "lag"),
    Column("", SECOND, lambda row: row.oldest_unconsumed_at, "oldest_unread_at"),
]
_LOG_START: Column[Row] = Column("LOG-START-OFFSET", OFFSET, lambda row: row.log_start_offset, "log_start_offset")
_TIME_LAG: Column[Row] = Column(
    "TIME-LAG",
    SPAN,
    lambda row: None if row.time_lag is None else row.time_lag.total_seconds(),
    "time_lag_seconds",
)
_OF_MEMBER: list[Column[Member]] = [
    Column("CONSUMER-ID", NAME, lambda member: member.member_id, "member_id"),
    Column("", NAME, lambda member: member.group_instance_id, "group_instance_id"),
    Column("HOST", NAME, lambda member: member.host, "host"),
    Column("CLIENT-ID", NAME, lambda member: member.client_id, "client_id"),
    Column("", TEXT, lambda member: sorted(member.assignment), "assignment"),
    Column("", TEXT, lambda member: sorted(member.subscription), "subscription"),
    Column("", TEXT, lambda member: member.subscription_regex or None, "subscription_regex"),
]
# The columns of ``kafka-consumer-groups --describe``.
_OF_KAFKA: list[Column[_Line]] = [
    Column("GROUP", NAME, lambda line: line.group),
    *within(attrgetter("partition"), headed(_OF_PARTITION)),
    *within(attrgetter("member"), headed(_OF_MEMBER)),
]


def listing(groups: Sequence[GroupStatus]) -> Result:
    """Return a table with one line per group, then a line with the totals. Numbers that are not known are ``-``."""
    *columns, remarks = headed(_LISTED)
    columns += [remarks] if any(group.remarks for group in groups) else []
    table = [Table(columns=columns, rows=groups, thing="group")] if groups else []
    document = GroupList(groups=[of_columns(ListedGroup, _LISTED, group) for group in groups])
    return Result(document=document, parts=[*table, Line(_totals(groups))])


def descriptions(groups: Sequence[GroupStatus]) -> Result:
    """Return the state, the partitions and the members of each group."""
    document = GroupDescriptions(groups=[_described(group) for group in groups])
    parts = [part for group in groups for part in (Line(""), *_description(group))][1:]
    return Result(document=document, parts=parts or [Line("no groups")])


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


def _described(group: GroupStatus) -> DescribedGroup:
    holders = _holders(group.members or ())
    members = None if group.members is None else sorted(group.members, key=_by_client)
    return DescribedGroup(
        group=group.group,
        state=group.state,
        type=group.group_type,
        members=None if members is None else [of_columns(DescribedMember, _OF_MEMBER, each) for each in members],
        partitions=[
            of_columns(
                DescribedPartition,
                [*_OF_PARTITION, _LOG_START, _TIME_LAG],
                row,
                member_ids=[member.member_id for member in holders.get(row.topic_partition, ())],
            )
            for row in group.partitions
        ],
        lag=group.lag,
        partitions_without_lag=group.partitions_without_lag,
        remarks=group.remarks,
    )


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
