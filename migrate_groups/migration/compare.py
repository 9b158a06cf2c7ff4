"""Compare where groups stand on two clusters, one of which has the other's topics from a mirror. Writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Protocol

from migrate_groups.clock import Clock
from migrate_groups.errors import GroupNotFound, InvalidInput, MigrateGroupsError, raise_first
from migrate_groups.migration.ports import GroupReader
from migrate_groups.mirrors.names import TopicNames
from migrate_groups.mirrors.place import LogPart, Place, Status, find_place
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.records import Records
from migrate_groups.snapshots.snapshot import Row, SnapshotTable
from migrate_groups.text import counted, named

MOST_RECORDS = 200_000
"""How many offsets of a partition are read at most on each cluster, by default."""
_MOST_AT_ONCE = 200_000
_WINDOW = 100
_GROWTH = 16


class RecordReader(Protocol):
    """Reads records as fingerprints. It joins no group and commits nothing."""

    def read(self, spans: Mapping[TopicPartition, range], *, committed_only: bool) -> Mapping[TopicPartition, Records]:
        """Return the records in a span of offsets of each partition.

        committed_only: without the records of aborted and open transactions.

        Raises `NotAuthorized` if Read on a topic is lacking, `ClusterUnavailable` if a partition does not answer.
        """
        ...


class Side(NamedTuple):
    """One of the two clusters: a client for groups and offsets, and one for records."""

    groups: GroupReader
    records: RecordReader


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a group stands on both clusters, in one partition.

    committed: the group's committed offset on the source; None: a transactional commit is pending. target: the
    partition on the target; None: there is none. there: the group's committed offset on the target; None: it has none.
    """

    group: str
    source: TopicPartition
    committed: int | None
    target: TopicPartition | None
    there: int | None


class Compared(NamedTuple):
    """Where a group stands in a partition, and the place at which it must continue on the target."""

    at: Standing
    place: Place

    @property
    def is_told(self) -> bool:
        """Whether the place is known exactly."""
        return self.place.status is Status.EXACT

    @property
    def is_off(self) -> bool:
        """Whether the place is known, and the group would not start there on the target."""
        return self.is_told and (self.at.there is None or bool(self.place.counts.again or self.place.counts.skipped))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The partitions of the groups, with the ids of both clusters, and the time at which the target was read."""

    source_cluster: str
    target_cluster: str
    taken_at: datetime
    partitions: Sequence[Compared]
    topic_ids: Mapping[str, str | None]

    def rows(self, most_reread: int) -> SnapshotTable:
        """Return the places on the target as a snapshot, whose rows have no source group.

        Left out are the places that are not exact, unless a group that starts there reads at most ``most_reread``
        records again.
        """
        return SnapshotTable.of_rows(
            Row(
                cluster_id=self.target_cluster,
                taken_at=self.taken_at,
                group=each.at.group,
                source_group=None,
                group_state=None,
                group_type=None,
                topic=target.topic,
                topic_id=self.topic_ids.get(target.topic),
                partition=target.partition,
                offset=each.place.offset,
                leader_epoch=None,
                metadata="",
                log_start_offset=None,
                log_end_offset=None,
            )
            for each in self.partitions
            if (target := each.at.target) is not None
            if each.place.offset is not None and each.place.reread <= most_reread
        )


def compare(
    source: Side,
    target: Side,
    groups: Sequence[str],
    names: TopicNames,
    clock: Clock,
    most_records: int = MOST_RECORDS,
) -> Comparison:
    """Return the place at which each group must continue on the target, for each partition that it has committed.

    names: the names of the topics on the target. most_records: how many offsets of a partition are read at most on each
    cluster; a partition that needs more is `Status.UNDETERMINED`.

    Raises `GroupNotFound` if a group has no committed offset on the source; `InvalidInput` if a topic has several
    possible names on the target; `NotAuthorized` and `ClusterUnavailable`.
    """
    source_cluster, target_cluster = source.groups.cluster_id(), target.groups.cluster_id()
    if source_cluster == target_cluster:
        raise InvalidInput("both clusters are the same: check --to-bootstrap-server and --to-command-config")
    committed = raise_first(source.groups.all_committed_by_group(groups))
    if missing := [group for group in groups if not committed[group]]:
        raise GroupNotFound(f"{named('group', missing)} not found, or without a committed offset: check the name")
    there = target.groups.all_committed_by_group(groups)
    topics = target.groups.describe_topics(None)
    on_target = names.of({partition.topic for each in committed.values() for partition in each}, topics)
    standings = []
    for group in groups:
        stand = there[group]
        if isinstance(stand, MigrateGroupsError):
            raise stand
        for partition, offset in sorted(committed[group].items()):
            name = on_target.get(partition.topic)
            has_copy = name is not None and partition.partition in topics[name].partitions
            copy = TopicPartition(name, partition.partition) if name is not None and has_copy else None
            on = None if copy is None else stand.get(copy)
            standings.append(Standing(group, partition, _number(offset), copy, _number(on)))
    taken_at = clock.now()
    places = _Finder(source, target, standings, most_records).places()
    return Comparison(
        source_cluster=source_cluster,
        target_cluster=target_cluster,
        taken_at=taken_at,
        partitions=[Compared(each, places[each]) for each in standings],
        topic_ids={name: topic.topic_id for name, topic in topics.items()},
    )


def _number(committed: CommittedOffset | None) -> int | None:
    return None if committed is None else committed.offset


class _Wanted(NamedTuple):
    """A place that is to be found: a `Standing` in which nothing is missing but the group's offset on the target."""

    standing: Standing
    source: TopicPartition
    committed: int
    target: TopicPartition
    there: int | None


class _Finder:
    """Finds the places, in rounds: a partition that needs more records of the source gets a longer window."""

    def __init__(self, source: Side, target: Side, standings: Sequence[Standing], most_records: int) -> None:
        self._source = source
        self._target = target
        self._standings = standings
        self._most = most_records
        self._unanchored: set[TopicPartition] = set()
        sources, copies = {each.source for each in standings}, {each.target for each in standings if each.target}
        # The ends of the target first: every record below them is on the source when that is read.
        self._target_ends = target.groups.last_stable_offsets(copies)
        self._target_ranges = target.groups.log_ranges(copies)
        self._source_ranges = source.groups.log_ranges(sources)
        self._compacted = (
            source.groups.compacted_topics({each.topic for each in sources}),
            target.groups.compacted_topics({each.topic for each in copies}),
        )

    def places(self) -> Mapping[Standing, Place]:
        """Return the place of each standing."""
        found: dict[Standing, Place] = {}
        left: list[_Wanted] = []
        for each in self._standings:
            wanted = self._wanted(each)
            if isinstance(wanted, Place):
                found[each] = wanted
            else:
                left.append(wanted)
        window = _WINDOW
        while left:
            for part in self._parts(left, window):
                found |= {each.standing: place for each, place in self._round(part, window).items()}
            left = [each for each in left if self._is_worth_more(each, found[each.standing], window)]
            window *= _GROWTH
        return found

    def _parts(self, left: Sequence[_Wanted], window: int) -> Iterator[Sequence[_Wanted]]:
        """Yield what is left in parts that are read at once, so that the memory does not grow with the partitions."""
        part: list[_Wanted] = []
        offsets = 0
        for each in left:
            offsets += window + self._source_ranges[each.source].end - each.committed
            part.append(each)
            if offsets >= _MOST_AT_ONCE:
                yield part
                part, offsets = [], 0
        if part:
            yield part

    def _wanted(self, each: Standing) -> _Wanted | Place:
        """Return what to look for in the records; or the place, if it is told without them."""
        reason = ""
        if each.committed is None:
            reason = "a transactional commit is pending"
        elif each.target is None:
            reason = "there is no such partition on the target"
        elif (source := self._source_ranges.get(each.source)) is None:
            reason = "the partition has no leader on the source"
        elif each.target not in self._target_ranges or each.target not in self._target_ends:
            reason = "the partition has no leader on the target"
        elif each.committed > source.end:
            reason = "the committed offset is beyond the source's log end"
        elif each.committed < source.start:
            lost = counted(source.start - each.committed, "offset")
            return Place(status=Status.GONE, reason=f"the source's log starts {lost} later")
        else:
            return _Wanted(each, each.source, each.committed, each.target, each.there)
        return Place(status=Status.UNDETERMINED, reason=reason)

    def _is_worth_more(self, each: _Wanted, place: Place, window: int) -> bool:
        if each.committed - self._source_ranges[each.source].start <= window:
            return False
        return each.source in self._unanchored or place.status in (Status.AMBIGUOUS, Status.DIFFERENT, Status.GONE)

    def _round(self, left: Sequence[_Wanted], window: int) -> dict[_Wanted, Place]:
        committed: dict[TopicPartition, int] = {}
        for each in left:
            committed[each.source] = min(each.committed, committed.get(each.source, each.committed))
        spans = {
            partition: range(max(bounds.start, offset - window), bounds.end)
            for partition, offset in committed.items()
            for bounds in [self._source_ranges[partition]]
        }
        short = {partition: span for partition, span in spans.items() if len(span) <= self._most}
        parts = self._source_parts(short, committed)
        copies = self._copies([each for each in left if each.source in parts], parts)
        found = {}
        for each in left:
            part, copy = parts.get(each.source), copies.get(each.target)
            if part is None or copy is None:
                where = "source" if part is None else "target"
                reason = f"more than {self._most:,} offsets to read on the {where}: pass a higher --max-records"
                found[each] = Place(status=Status.UNDETERMINED, reason=reason)
            elif copy.log_append_time:
                reason = (
                    "the target's topic has message.timestamp.type=LogAppendTime: set CreateTime, and mirror it anew"
                )
                found[each] = Place(status=Status.UNDETERMINED, reason=reason)
            else:
                found[each] = self._place(each, part, copy)
        return found

    def _place(self, each: _Wanted, part: LogPart, copy: Records) -> Place:
        compacted = each.source.topic in self._compacted[0] or each.target.topic in self._compacted[1]
        copied = LogPart(offsets=copy.offsets, timestamps=copy.timestamps, prints=copy.prints, from_start=False)
        place = find_place(part, each.committed, copied, each.there, compacted=compacted)
        if place.status is Status.EXACT and place.offset is None:  # the copy is empty, as is the source
            place = replace(place, offset=self._target_ranges[each.target].start)
        return place

    def _source_parts(
        self, spans: Mapping[TopicPartition, range], committed: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, LogPart]:
        """Return the records of the source. committed: the lowest committed offset of each partition.

        A part begins with a timestamp that the record before it does not have, so that no older record is identical
        with one of the part, unless timestamps are out of order. A partition without such a record is remembered in
        ``_unanchored``: it needs a longer window.
        """
        everything = self._source.records.read(spans, committed_only=False)
        # Transaction markers leave gaps between the offsets; so does compaction.
        gaps = {
            partition: spans[partition]
            for partition, records in everything.items()
            if len(records.offsets) < len(spans[partition])
        }
        live = self._source.records.read(gaps, committed_only=True)
        self._unanchored -= spans.keys()
        parts = {}
        for partition, records in everything.items():
            is_start = spans[partition].start == self._source_ranges[partition].start
            first = 0 if is_start else _first_of_a_timestamp(records, committed[partition])
            if first is None:
                self._unanchored.add(partition)
            parts[partition] = _part(
                records, first or 0, live.get(partition), from_start=is_start and not spans[partition].start
            )
        return parts

    def _copies(
        self, wanted: Sequence[_Wanted], parts: Mapping[TopicPartition, LogPart]
    ) -> Mapping[TopicPartition, Records]:
        """Return the target's records from the first possible copy of the source's records to the end.

        The first record of the target with the timestamp of a source's record, or a later one, does not stand behind
        any copy of it, whatever the order of the timestamps.
        """
        timestamps = {
            each.target: min(parts[each.source].timestamps) for each in wanted if parts[each.source].timestamps
        }
        found = self._target.groups.offsets_at(timestamps)
        starts: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        for each in wanted:
            record = found.get(each.target)
            starts[each.target].append(self._target_ends[each.target] if record is None else record.offset)
            if each.there is not None:
                starts[each.target].append(max(each.there, self._target_ranges[each.target].start))
        spans = {partition: range(min(of), self._target_ends[partition]) for partition, of in starts.items()}
        short = {partition: span for partition, span in spans.items() if len(span) <= self._most}
        return self._target.records.read(short, committed_only=True)


def _first_of_a_timestamp(records: Records, committed: int) -> int | None:
    """Return the index of the first record before ``committed`` whose predecessor has another timestamp; None: none."""
    for index in range(1, len(records.offsets)):
        if records.offsets[index] >= committed:
            return None
        if records.timestamps[index] != records.timestamps[index - 1]:
            return index
    return None


def _part(records: Records, first: int, live: Records | None, *, from_start: bool) -> LogPart:
    """Return the records from the index ``first`` on. live: those of them that were not aborted; None: all."""
    offsets = records.offsets[first:]
    kept = None if live is None else set(live.offsets)
    return LogPart(
        offsets=offsets,
        timestamps=records.timestamps[first:],
        prints=records.prints[first:],
        from_start=from_start,
        aborted=() if kept is None else frozenset(index for index, offset in enumerate(offsets) if offset not in kept),
    )
