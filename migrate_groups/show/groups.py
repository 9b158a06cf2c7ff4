"""The terminal views and JSON documents of ``list`` and ``describe``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.migration.reading.status import GroupStatus
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.show import group_documents as documents
from migrate_groups.show.tables import UNKNOWN, Table, cell, number
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, one_line

_OF_KAFKA = {
    **dict.fromkeys(("GROUP", "TOPIC"), "<"),
    **dict.fromkeys(("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"), ">"),
    **dict.fromkeys(("CONSUMER-ID", "HOST", "CLIENT-ID"), "<"),
}
"""The columns of ``kafka-consumer-groups --describe``, each with its alignment: ``<`` left, ``>`` right."""


def listing(groups: Sequence[GroupStatus]) -> RenderableType:
    """Return a table with one line per group, then a line with the totals. Numbers that are not known are ``-``."""
    remarked = any(group.remarks for group in groups)
    columns = {"GROUP": "<", "STATE": "<", "TYPE": "<", "MEMBERS": ">", "TOPICS": ">", "LAG": ">"}
    table = Table(columns | ({"REMARKS": "<"} if remarked else {}))
    for group in groups:
        members = None if group.members is None else len(group.members)
        numbers = map(number, (members, len(group.topics), group.lag))
        remarks = [cell("; ".join(group.remarks))] if remarked else []
        table.add_row(cell(group.group), group.state, group.group_type, *numbers, *remarks)
    return Group(*([table] if groups else []), Text(_totals(groups)))


def descriptions(groups: Sequence[GroupStatus]) -> RenderableType:
    """Return the state, the partitions and the members of each group as text."""
    if not groups:
        return Text("no groups")
    return Group(*[part for group in groups for part in (Text(), _description(group))][1:])


def _description(group: GroupStatus) -> RenderableType:
    """Return a group's state, a table like that of ``kafka-consumer-groups --describe``, and the total lag.

    A column LOG-START-OFFSET is added if a committed offset is below the log start offset. A column TIME-LAG is added
    if a time lag is known.
    """
    members = UNKNOWN if group.members is None else len(group.members)
    plural = "" if members == 1 else "s"
    title = f"group {one_line(group.group)}  {group.state}, {group.group_type}, {members} member{plural}"
    columns = _more_columns(group.partitions)
    table = Table(_OF_KAFKA | dict.fromkeys(columns, ">"))
    for row, member in _lines(group):
        table.add_row(cell(group.group), *_of_partition(row), *_of_member(member), *_more_cells(row, columns))
    has_lines = bool(group.partitions or group.members)
    return Group(Text(title, style="bold"), *([table] if has_lines else []), Text(one_line(_sum(group))))


def list_document(groups: Sequence[GroupStatus]) -> documents.GroupList:
    """Return the JSON document that the command ``list`` prints."""
    return documents.GroupList(
        groups=[
            documents.ListedGroup(
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
    )


def describe_document(groups: Sequence[GroupStatus]) -> documents.GroupDescriptions:
    """Return the JSON document that the command ``describe`` prints."""
    return documents.GroupDescriptions(groups=[_described(group) for group in groups])


def _described(group: GroupStatus) -> documents.DescribedGroup:
    holders = _holders(group.members or ())
    return documents.DescribedGroup(
        group=group.group,
        state=group.state,
        type=group.group_type,
        members=None if group.members is None else [_member(member) for member in _sorted(group.members)],
        partitions=[
            documents.DescribedPartition(
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


def _member(member: Member) -> documents.DescribedMember:
    return documents.DescribedMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.host,
        assignment=sorted(member.assignment),
        subscription=sorted(member.subscription),
        subscription_regex=member.subscription_regex or None,
    )


def _lines(group: GroupStatus) -> Iterator[tuple[Row | None, Member | None]]:
    """Yield each partition with each member that it is assigned to, then each member without a partition.

    The member is None if the partition is unassigned. The row is None for a member without a partition.
    """
    members = _sorted(group.members or ())
    holders = _holders(members)
    for row in group.partitions:
        yield from ((row, holder) for holder in holders.get(row.topic_partition, [None]))
    shown = {row.topic_partition for row in group.partitions}
    for member in members:
        if not member.assignment & shown:
            yield None, member


def _sorted(members: Iterable[Member]) -> list[Member]:
    return sorted(members, key=lambda member: (member.client_id, member.member_id))


def _holders(members: Iterable[Member]) -> Mapping[TopicPartition, Sequence[Member]]:
    holders = defaultdict(list)
    for member in members:
        for partition in member.assignment:
            holders[partition].append(member)
    return holders


def _of_partition(row: Row | None) -> tuple[str, ...]:
    if row is None:
        return (UNKNOWN,) * 5
    return (row.topic, *map(number, (row.partition, row.offset, row.log_end_offset, row.lag)))


def _of_member(member: Member | None) -> tuple[Text, ...]:
    if member is None:
        return (Text(UNKNOWN),) * 3
    return cell(member.member_id), cell(member.host), cell(member.client_id)


def _more_columns(rows: Collection[Row]) -> list[str]:
    columns = []
    # Unread records are deleted if a committed offset is below the log start offset.
    if any(row.offset is not None and row.offset < (row.log_start_offset or 0) for row in rows):
        columns.append("LOG-START-OFFSET")
    if any(row.time_lag is not None for row in rows):
        columns.append("TIME-LAG")
    return columns


def _more_cells(row: Row | None, columns: Collection[str]) -> list[str]:
    cells = {
        "LOG-START-OFFSET": number(row.log_start_offset if row else None),
        "TIME-LAG": span_in_words(row.time_lag) if row and row.time_lag is not None else UNKNOWN,
    }
    return [cells[column] for column in columns]


def _sum(group: GroupStatus) -> str:
    lag = UNKNOWN if group.lag is None else f"{group.lag:,}"
    return "; ".join((f"total lag {lag} in {counted(len(group.partitions), 'partition')}", *group.remarks))


def _totals(groups: Sequence[GroupStatus]) -> str:
    topics = frozenset[str]().union(*(group.topics for group in groups))
    members = [None if group.members is None else len(group.members) for group in groups]
    known = counted(sum(each or 0 for each in members), "member")
    lags = [group.lag for group in groups if group.lag is not None]
    lag = f"{sum(lags):,}" if lags else UNKNOWN
    parts = [
        counted(len(groups), "group"),
        f"at least {known}" if None in members else known,
        counted(len(topics), "topic"),
        f"total lag {lag}",
    ]
    if unknown := sum(group.partitions_without_lag for group in groups):
        parts.append(f"not known for {counted(unknown, 'partition')}")
    return ", ".join(parts)
