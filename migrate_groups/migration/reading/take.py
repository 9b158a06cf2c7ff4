"""Take a snapshot: the committed offsets of groups, running or not, with log start and log end offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused, raise_first
from migrate_groups.migration.events import SILENT, Events
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import (
    describe_group,
    describe_groups,
    existing,
    existing_group,
    not_empty,
    own_topics_of,
    read_all_committed,
    read_committed,
)
from migrate_groups.model.groups import GroupDescription, GroupWithOffsets, ObservedGroup
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.model.topics import TopicDescription, partitions_of
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.snapshots.snapshot import SnapshotTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsToRead:
    """The topics of a group to read: those with a commit, an assignment or a subscription, and ``also``.

    stay: patterns of topics that a hand-over leaves with the group. Pending transactional commits on them are not
    waited for.
    """

    also: frozenset[str] = frozenset()
    stay: Sequence[TopicPattern] = ()


OWN_TOPICS = TopicsToRead()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A group as read from the cluster, with the cluster id, the time and the log ranges.

    bounds: the log start and log end offset of each partition that exists and has a leader.
    """

    cluster_id: str
    taken_at: datetime
    observed: ObservedGroup
    bounds: Mapping[TopicPartition, LogRange]

    @property
    def starts(self) -> Mapping[TopicPartition, int]:
        """The log start offset of each partition that exists and has a leader."""
        return {partition: bounds.start for partition, bounds in self.bounds.items()}

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """The log end offset of each partition that exists and has a leader."""
        return {partition: bounds.end for partition, bounds in self.bounds.items()}

    def rows(self) -> Iterator[Row]:
        """Yield a snapshot row for each partition, with the group's committed offset and the log range.

        A value that is not known is None.
        """
        group, topics = self.observed.description, self.observed.topics
        for partition, offset in self.observed.committed.items():
            ends = self.bounds.get(partition)
            yield Row(
                cluster_id=self.cluster_id,
                taken_at=self.taken_at,
                group=group.group,
                source_group=None,
                group_state=group.state,
                group_type=group.group_type,
                topic=partition.topic,
                topic_id=topics[partition.topic].topic_id if partition.topic in topics else None,
                partition=partition.partition,
                offset=offset.offset if offset else None,
                leader_epoch=offset.leader_epoch if offset else None,
                metadata=offset.metadata if offset else "",
                log_start_offset=ends.start if ends else None,
                log_end_offset=ends.end if ends else None,
            )


def take_snapshot(
    reader: GroupReader,
    groups: Sequence[str],
    clock: Clock,
    known: Mapping[TopicPartition, LogRange] = MappingProxyType({}),
    events: Events = SILENT,
) -> SnapshotTable:
    """Return a snapshot of these groups, which may have members.

    It has a row for every partition of every topic for which a group has a commit, an assignment or a subscription.
    known: log ranges that are not read again.

    Raises `GroupNotFound`; `UsageError` for an empty name; `Refused` for a share group; `PendingCommits` if a
    transactional commit is still pending at the time-out.
    """
    from migrate_groups.snapshots.snapshot import SnapshotTable

    names = [*dict.fromkeys(map(not_empty, groups))]
    starts, ends = ({each: getattr(log, side) for each, log in known.items()} for side in ("start", "end"))
    readings: list[Reading] = []
    with events.working(f"reading {counted(len(names), 'group')}", lambda: (len(readings), len(names))):
        described = describe_groups(reader, names)
        cluster_id = reader.cluster_id()
        for group in map(_committing, described.values()):
            look, taken_at = observe(reader, group, frozenset), clock.now()
            bounds = reader.log_ranges(look.committed, ends, starts)
            readings.append(Reading(cluster_id=cluster_id, taken_at=taken_at, observed=look, bounds=bounds))
    return SnapshotTable.of_rows(row for reading in readings for row in reading.rows())


def read_group(
    reader: GroupReader,
    group: str,
    clock: Clock,
    *,
    topics: TopicsToRead = OWN_TOPICS,
    ends: Mapping[TopicPartition, int] | None = None,
    may_be_gone: bool = False,
    at_once: Collection[TopicPartition] = (),
    describe: Describe | None = None,
) -> Reading:
    """Return a group's committed offsets, with log start and log end offsets.

    - ends: log end offsets that were read before, and are used again where possible.
    - may_be_gone: if the group does not exist, raise no error, and return no committed offset.
    - at_once: partitions of the group, as far as they are known. Their topics and log ranges are read at the same time
      as the group, to save time.
    - describe: reads the group then; None: `GroupReader.describe_with_offsets` does.

    Raises `GroupNotFound`; `UsageError` for an empty name; `Refused` for a share group; `PendingCommits` if a
    transactional commit is still pending at the time-out.
    """
    bounds: Mapping[TopicPartition, LogRange] = {}
    ends = ends or {}
    if at_once:
        early, cluster_id, bounds = reader.at_once(
            lambda: read_early(reader, group, topics.also.union(each.topic for each in at_once), describe),
            reader.cluster_id,
            lambda: reader.log_ranges(at_once, ends),
        )
        description = early.group.description
    else:
        early, description = None, describe_group(reader, group) if may_be_gone else existing_group(reader, group)
    if not may_be_gone:
        _committing(description)
    look = observe(reader, description, topics.also.union, topics.stay, early)
    taken_at = clock.now()
    # Under one leader a log end only moves forward. `log_ranges` reads it again if the leader has changed.
    within = {
        partition: ends[partition]
        for partition, committed in look.committed.items()
        if partition in ends and committed is not None and committed.offset <= ends[partition]
    }
    known = {
        partition: bounds[partition]
        for partition, committed in look.committed.items()
        if partition in bounds
        and (partition not in ends if committed is None else committed.offset <= bounds[partition].end)
    }
    left = [partition for partition in look.committed if partition not in known]
    return Reading(
        cluster_id=cluster_id if early else reader.cluster_id(),
        taken_at=taken_at,
        observed=look,
        bounds={**known, **reader.log_ranges(left, within)} if left or not early else known,
    )


# Returns a group's description, and all its committed offsets as they were after it was described.
Describe = Callable[[], GroupWithOffsets]


class Early(NamedTuple):
    """A group with all its committed offsets, and topics that were described at the same time.

    names: the topics that were asked for. topics: those that exist.
    """

    group: GroupWithOffsets
    names: frozenset[str]
    topics: Mapping[str, TopicDescription]

    def described(self, reader: GroupReader, names: frozenset[str]) -> Mapping[str, TopicDescription]:
        """Return the descriptions of topics. Reads those that were not asked for, or have changed.

        A topic has changed if the group has a committed offset for a partition that was not there.
        """
        changed = {
            partition.topic
            for partition in self.group.offsets
            if partition.topic not in self.topics or partition.partition not in self.topics[partition.topic].partitions
        }
        left = {name for name in names if name in changed or name not in self.names}
        kept = {name: topic for name, topic in self.topics.items() if name in names and name not in changed}
        return {**kept, **(reader.describe_topics(left) if left else {})}


def read_early(reader: GroupReader, group: str, topics: Collection[str], describe: Describe | None = None) -> Early:
    """Return a group with all its committed offsets, and describe topics at the same time.

    describe: reads the group; None: `GroupReader.describe_with_offsets` does.
    Raises the errors of `GroupReader.describe_with_offsets` and of `GroupReader.describe_topics`.
    """
    found: GroupWithOffsets
    described: Mapping[str, TopicDescription]
    found, described = reader.at_once(
        describe or (lambda: raise_first(reader.describe_with_offsets({group: None}))[group]),
        lambda: reader.describe_topics(topics),
    )
    return Early(found, frozenset(topics), described)


def observe(
    reader: GroupReader,
    description: GroupDescription,
    choice: Callable[[frozenset[str]], Collection[str]],
    stay: Sequence[TopicPattern] = (),
    early: Early | None = None,
) -> ObservedGroup:
    """Return the described group with its committed offsets on the topics that ``choice`` returns.

    choice: called with the topics for which the group has a commit, an assignment or a subscription. stay: patterns of
    topics on which pending transactional commits are ignored. early: the group and topics, if they were just read.

    Raises `PendingCommits` if a transactional commit on one of the other topics is still pending at the time-out.
    """
    group = description.group
    everywhere = early.group.offsets if early else read_all_committed(reader, [group])[group]
    chosen = frozenset(choice(own_topics_of(everywhere, description)))
    topics = early.described(reader, chosen) if early else reader.describe_topics(chosen)
    partitions = partitions_of(topics)
    # Read partitions without a commit by name, because the answer for all partitions leaves out a pending first commit
    # (docs/kafka-behaviour.md#pending-transactions).
    # On topics that stay, transactional commits may be pending for as long as the group's members run.
    left = {topic for pattern in stay for topic in pattern.matching(topics)}
    unknown = [each for each in partitions if everywhere.get(each) is None and each.topic not in left]
    known = {**everywhere, **read_committed(reader, {group: unknown})[group]}
    committed = {each: known.get(each) for each in partitions if each.topic not in left or known.get(each)}
    return ObservedGroup(description=description, topics=topics, committed=committed)


def _committing(description: GroupDescription) -> GroupDescription:
    if existing(description).group_type == "share":
        raise Refused(
            f"group {description.group!r} is a share group, without committed offsets (KIP-932): name a consumer group"
        )
    return description


def check_visible(reader: GroupReader, patterns: Iterable[TopicPattern]) -> None:
    """Raise `NotAuthorized` if the client's principal may not describe a topic that a pattern names.

    Globs and regular expressions are ignored.
    """
    # Requested by name, because brokers leave hidden topics out of a group's offsets without an error
    # (docs/kafka-behaviour.md#what-a-principal-may-not-see).
    reader.describe_topics({pattern.name for pattern in patterns if pattern.name is not None})
