"""Look up the offsets at which a replay starts, for the partitions of a snapshot or of topics. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.hints import hidden_topics_named
from migrate_groups.migration.reading.same_logs import refuse_other_logs
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.topics import TopicDescription
from migrate_groups.snapshots.rewind_decision import RewindDecision, decide_all, rewound
from migrate_groups.snapshots.rewind_to import PastEnd, RewindTo, ToTime
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.selection import TopicPattern, matching_topics
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, named, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewinding:
    """The offsets at which a group starts to read old records again (a replay).

    - snapshot: the offsets, in rows without a group.
    - decisions: for each row, the offset; if it is not the requested one, also the reason.
    - left_out: for each topic in the snapshot, the partitions without a row.
    """

    snapshot: SnapshotTable
    decisions: Sequence[RewindDecision]
    left_out: Sequence[TopicPartition]


def rows_of_topics(reader: GroupReader, patterns: Sequence[TopicPattern], clock: Clock) -> SnapshotTable:
    """Return a snapshot with one row for each partition of the topics that match, without groups and offsets.

    Kafka's own topics (``__…``) are ignored. Raises `InvalidInput` if a pattern matches no topic.
    """
    topics = {name: topic for name, topic in reader.describe_topics(None).items() if not name.startswith("__")}
    with hidden_topics_named(reader):
        matching = matching_topics(topics, patterns)
    taken_at, cluster_id = clock.now(), reader.cluster_id()
    return SnapshotTable.of_rows(
        Row.knowing(
            cluster_id=cluster_id,
            taken_at=taken_at,
            topic=name,
            topic_id=topics[name].topic_id,
            partition=partition,
        )
        for name in matching
        for partition in topics[name].partitions
    )


def rewind(
    reader: GroupReader,
    snapshot: SnapshotTable,
    target: RewindTo,
    clock: Clock,
    *,
    past_end: PastEnd = "end",
    strict: bool = False,
) -> Rewinding:
    """Return the offsets at which a replay starts to read old records again. ``target`` selects the offsets.

    - past_end: for a partition whose records are all before the requested time: ``end`` returns the log end offset,
      ``skip`` returns no offset, ``fail`` raises `Refused`.
    - strict: raise `Refused` if a requested offset is outside the log, if the log starts after the requested time, or
      if a committed offset that ``target`` needs is missing.

    Raises `InvalidInput` if a partition has several rows; `Refused` if a partition does not exist or has no leader, or
    if the snapshot is from another cluster or a recreated topic.
    """
    rows = list(snapshot.with_each_partition_once().rows())
    partitions = [row.topic_partition for row in rows]
    described = refuse_other_logs(reader, rows, "pass --topic and no file")
    _refuse_missing(rows, described)
    cluster_id = reader.cluster_id()
    # Read the log ends before looking up records by time. A partition without a record at or after the time is set to
    # its log end, and records that are produced between the two requests must not be skipped.
    taken_at = clock.now()
    bounds = reader.log_ranges(partitions)
    found = reader.offsets_at(dict.fromkeys(partitions, target.moment)) if isinstance(target, ToTime) else {}
    answered = bounds.keys() & found.keys() if isinstance(target, ToTime) else bounds.keys()
    _refuse_without_leader([partition for partition in partitions if partition not in answered])
    decisions = decide_all(rows, bounds, target, found, past_end=past_end, strict=strict)
    return Rewinding(
        snapshot=SnapshotTable.of_rows(
            structs.replace(
                rewound(decision, target),
                cluster_id=cluster_id,
                taken_at=taken_at,
                topic_id=described[decision.row.topic].topic_id,
            )
            for decision in decisions
        ),
        decisions=decisions,
        left_out=_left_out(set(partitions), described),
    )


def _refuse_missing(rows: Sequence[Row], described: Mapping[str, TopicDescription]) -> None:
    """Raise `Refused` for topics and partitions that do not exist."""
    gone = {row.topic for row in rows if row.topic not in described}
    if gone:
        raise Refused(f"{named('topic', gone)} not found: select other topics with --topic")
    unknown = [row.topic_partition for row in rows if row.partition not in described[row.topic].partitions]
    if unknown:
        raise Refused(
            f"{counted(len(unknown), 'partition')} not found: {some(unknown)}; select other partitions with --partition"
        )


def _refuse_without_leader(partitions: Sequence[TopicPartition]) -> None:
    if partitions:
        raise Refused(
            f"{counted(len(partitions), 'partition')} without a leader: {some(partitions)}; wait until every "
            "partition has a leader, or select others with --topic or --partition"
        )


def _left_out(wanted: Collection[TopicPartition], described: Mapping[str, TopicDescription]) -> list[TopicPartition]:
    return [
        partition
        for name, topic in described.items()
        for partition in (TopicPartition(name, number) for number in topic.partitions)
        if partition not in wanted
    ]
