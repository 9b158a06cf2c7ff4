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
from migrate_groups.show.result import NAME, OFFSET, SPAN, TEXT, UNKNOWN, WORD, Column, Line, Result, Table, within
from migrate_groups.text import counted


class _Line(NamedTuple):
    """A line of ``describe``. partition: None for a member without one. member: None for an unassigned partition."""

    group: str
    partition: DescribedPartition | None
    member: DescribedMember | None


_LISTED: list[Column[ListedGroup]] = [
    Column("GROUP", NAME, lambda group: group.group),
    Column("STATE", WORD, lambda group: group.state),
    Column("TYPE", WORD, lambda group: group.type),
    Column("MEMBERS", OFFSET, lambda group: group.members),
    Column("TOPICS", OFFSET, lambda group: len(group.topics)),
    Column("LAG", OFFSET, lambda group: group.lag),
]
_REMARKS: Column[ListedGroup] = Column("REMARKS", TEXT, lambda group: "; ".join(group.remarks))
_OF_PARTITION: list[Column[DescribedPartition]] = [
    Column("TOPIC", NAME, lambda partition: partition.topic),
    Column("PARTITION", OFFSET, lambda partition: partition.partition),
    Column("CURRENT-OFFSET", OFFSET, lambda partition: partition.committed_offset),
    Column("LOG-END-OFFSET", OFFSET, lambda partition: partition.log_end_offset),
    Column("LAG", OFFSET, lambda partition: partition.lag),
]
_OF_MEMBER: list[Column[DescribedMember]] = [
    Column("CONSUMER-ID", NAME, lambda member: member.member_id),
    Column("HOST", NAME, lambda member: member.host),
    Column("CLIENT-ID", NAME, lambda member: member.client_id),
]
_LOG_START: Column[DescribedPartition] = Column("LOG-START-OFFSET", OFFSET, lambda each: each.log_start_offset)
_TIME_LAG: Column[DescribedPartition] = Column("TIME-LAG", SPAN, lambda each: each.time_lag_seconds)
# The columns of ``kafka-consumer-groups --describe``.
_OF_KAFKA: list[Column[_Line]] = [
    Column("GROUP", NAME, lambda line: line.group),
    *within(attrgetter("partition"), _OF_PARTITION),
    *within(attrgetter("member"), _OF_MEMBER),
]


def listing(groups: Sequence[GroupStatus]) -> Result:
    """Return a table with one line per group, then a line with the totals. Numbers that are not known are ``-``."""
    listed = [
        ListedGroup(
            group=group.group,
            state=group.state,
            type=group.group_type,
            members=None if group.members is None else len(group.members),
            topics=sorted(group.topics),
            lag=group.lag,
            partitions=len(group.partitions),
            partitions_without_lag=group.partitions_without_lag,
            remarks=group.remarks,
        )
        for group in groups
    ]
    columns = [*_LISTED, *([_REMARKS] if any(group.remarks for group in listed) else [])]
    table = [Table(columns=columns, rows=listed, thing="group")] if listed else []
    return Result(document=GroupList(groups=listed), parts=[*table, Line(_totals(listed))])


def descriptions(groups: Sequence[GroupStatus]) -> Result:
    """Return the state, the partitions and the members of each group."""
    described = [_described(group) for group in groups]
    parts = [part for group in described for part in (Line(""), *_description(group))][1:]
    return Result(document=GroupDescriptions(groups=described), parts=parts or [Line("no groups")])


def _description(group: DescribedGroup) -> list[Table[_Line] | Line]:
    """Return a group's state, a table like that of ``kafka-consumer-groups --describe``, and the total lag.

    A column LOG-START-OFFSET is added if a committed offset is below the log start offset. A column TIME-LAG is added
    if a time lag is known.
    """
    members = UNKNOWN if group.members is None else len(group.members)
    title = f"group {group.group}  {group.state}, {group.type}, {members} member{'' if members == 1 else 's'}"
    # Unread records are deleted if a committed offset is below the log start offset.
    is_below = any(
        each.committed_offset is not None and each.committed_offset < (each.log_start_offset or 0)
        for each in group.partitions
    )
    more = [_LOG_START] if is_below else []
    if any(each.time_lag_seconds is not None for each in group.partitions):
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
        members=None if members is None else [_member(member) for member in members],
        partitions=[
            DescribedPartition(
                topic=row.topic,
                topic_id=row.topic_id,
                partition=row.partition,
                committed_offset=row.offset,
                leader_epoch=row.leader_epoch,
                metadata=row.metadata,
                log_start_offset=row.log_start_offset,
                log_end_offset=row.log_end_offset,
                lag=row.lag,
                oldest_unread_at=row.oldest_unconsumed_at,
                time_lag_seconds=None if row.time_lag is None else row.time_lag.total_seconds(),
                member_ids=[member.member_id for member in holders.get(row.topic_partition, ())],
            )
            for row in group.partitions
        ],
        lag=group.lag,
        partitions_without_lag=group.partitions_without_lag,
        remarks=group.remarks,
    )


def _member(member: Member) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.host,
        assignment=sorted(member.assignment),
        subscription=sorted(member.subscription),
        subscription_regex=member.subscription_regex or None,
    )


def _lines(group: DescribedGroup) -> Iterator[_Line]:
    """Yield each partition with each member that it is assigned to, then each member without a partition."""
    members = {member.member_id: member for member in group.members or ()}
    for partition in group.partitions:
        holders = sorted((members[member_id] for member_id in partition.member_ids), key=_by_client)
        yield from (_Line(group.group, partition, holder) for holder in holders)
        if not holders:
            yield _Line(group.group, partition, None)
    shown = {member_id for partition in group.partitions for member_id in partition.member_ids}
    for member_id, member in members.items():
        if member_id not in shown:
            yield _Line(group.group, None, member)


def _by_client(member: Member | DescribedMember) -> tuple[str, str]:
    return member.client_id, member.member_id


def _holders(members: Iterable[Member]) -> Mapping[TopicPartition, Sequence[Member]]:
    holders = defaultdict(list)
    for member in members:
        for partition in member.assignment:
            holders[partition].append(member)
    return holders


def _totals(groups: Sequence[ListedGroup]) -> str:
    topics = {topic for group in groups for topic in group.topics}
    known = counted(sum(group.members or 0 for group in groups), "member")
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
