"""The status of a group: its members, the committed offset and lag of each partition, and what could not be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from migrate_groups.clock import Clock
from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.take import Reading
from migrate_groups.model.groups import GroupDescription, Member, ObservedGroup
from migrate_groups.model.partitions import CommittedOffsets
from migrate_groups.model.topics import TopicDescription, partitions_of
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, some


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """A group with its members, and the committed offset and log range of each of its partitions.

    - members: None if they can't be read.
    - topics: the topics for which the group has a committed offset, an assignment or a subscription.
    - partitions: a snapshot row for each partition of these topics. Of a topic that can't be described, only the
      partitions with a committed offset are included.
    - remarks: what is not known about the group, and why.
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
        """The state of the group as Kafka names it, such as ``Stable``."""
        return self.description.state

    @property
    def group_type(self) -> str:
        """The type of the group as Kafka names it: ``classic``, ``consumer`` (KIP-848), ``share`` or ``streams``."""
        return self.description.group_type

    @property
    def lag(self) -> int | None:
        """The sum of all known lags; None if no lag is known.

        The lag of a partition without a committed offset is not known.
        """
        known = [row.lag for row in self.partitions if row.lag is not None]
        return sum(known) if known else None

    @property
    def partitions_without_lag(self) -> int:
        """The number of partitions whose lag is not known."""
        return sum(row.lag is None for row in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """What was read about groups and their topics.

    committed: by group and partition; None: a transactional commit is pending. hidden: topics that the client's
    principal may not describe. undescribed: by group, the error of reading its description. unread: by group, the error
    of reading its committed offsets.
    """

    groups: Mapping[str, GroupDescription]
    committed: Mapping[str, CommittedOffsets]
    topics: Mapping[str, TopicDescription]
    hidden: frozenset[str]
    undescribed: Mapping[str, MigrateGroupsError]
    unread: Mapping[str, MigrateGroupsError]


def with_time_lags(reader: GroupReader, groups: Sequence[GroupStatus]) -> tuple[tuple[GroupStatus, ...], str]:
    """Return the groups with the timestamp of each partition's oldest unread record, and a remark for the user.

    The remark is empty, or says that a timestamp may be that of a transaction marker.
    """
    from migrate_groups.migration.reading.time_lag import with_time_lag
    from migrate_groups.snapshots.snapshot import SnapshotTable

    found = with_time_lag(reader, SnapshotTable.of_rows(row for group in groups for row in group.partitions))
    rows: dict[str | None, list[Row]] = defaultdict(list)
    for row in found.snapshot.rows():
        rows[row.group].append(row)
    return tuple(replace(group, partitions=tuple(rows[group.group])) for group in groups), found.remark


def statuses(
    reader: GroupReader, clock: Clock, facts: GroupFacts, own: Mapping[str, frozenset[str]]
) -> tuple[GroupStatus, ...]:
    """Return the status of each group in ``own``. own: by group, the topics to include."""
    taken_at = clock.now()
    offsets = {}
    for group, topics in own.items():
        commits = {each: found for each, found in facts.committed.get(group, {}).items() if each.topic in topics}
        offsets[group] = dict.fromkeys(sorted({*partitions_of(facts.topics, topics), *commits})) | commits
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


def _status(principal: str, facts: GroupFacts, reading: Reading, topics: frozenset[str]) -> GroupStatus:
    description, rows = reading.observed.description, tuple(reading.rows())
    group, group_type = description.group, description.group_type
    remarks = [str(errors[group]) for errors in (facts.undescribed, facts.unread) if group in errors]
    if description.connect:
        remarks.append(description.connect)
    is_readable = has_readable_members(description)
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


def has_readable_members(group: GroupDescription) -> bool:
    """Return whether the members of a group can be read: the group is classic, KIP-848 or Empty."""
    return group.group_type in ("classic", "consumer") or group.state == "Empty"
