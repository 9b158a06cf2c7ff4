"""Read records of source partitions and of a mirror's copies, to find an offset of the source in the copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from typing import NamedTuple

from migrate_groups.migration.log_ports import RecordReader
from migrate_groups.migration.ports import Side
from migrate_groups.mirrors.place import CopyPart, LogPart
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.records import Records


class Window(NamedTuple):
    """The records of a source partition, up to the log end, with which a committed offset is found in a mirror's copy.

    is_anchored: False if an earlier record, which was not read, may be identical with one of these records. This
    assumes that timestamps ascend.
    """

    part: LogPart
    is_anchored: bool


def all_and_live(
    reader: RecordReader, spans: Mapping[TopicPartition, range]
) -> tuple[Mapping[TopicPartition, Records], Mapping[TopicPartition, Records]]:
    """Return all records of each partition, and those that belong to no aborted or open transaction.

    The second result leaves out a partition without an empty offset, because all its records belong to none. Raises
    `NotAuthorized` and `ClusterUnavailable`.
    """
    everything = reader.read(spans, committed_only=False)
    # Transaction markers leave gaps between the offsets; so does compaction.
    gaps = {each: spans[each] for each, records in everything.items() if len(records.offsets) < len(spans[each])}
    return everything, reader.read(gaps, committed_only=True)


class Logs:
    """Reads records of partitions on the source cluster, and of a mirror's copies on the target cluster."""

    def __init__(
        self, source: Side, target: Side, partitions: Collection[TopicPartition], copies: Collection[TopicPartition]
    ) -> None:
        self._source = source
        self._target = target
        # The ends of the target are read first, because then the source has all records below them when it is read.
        self.copy_ends = target.groups.last_stable_offsets(copies)
        self.copy_ranges = target.groups.log_ranges(copies)
        self.ranges = source.groups.log_ranges(partitions)
        # Copies that `copies` could not read, because they have no leader now.
        self.unanswered: Set[TopicPartition] = frozenset()
        self._compacted = source.groups.maybe_compacted_topics({each.topic for each in partitions})
        self._compacted_copies = target.groups.maybe_compacted_topics({each.topic for each in copies})

    def windows(
        self, committed: Mapping[TopicPartition, int], window: int, most: int
    ) -> Mapping[TopicPartition, Window]:
        """Return each partition's records up to the log end, from up to ``window`` offsets below its committed offset.

        committed: by source partition, the lowest committed offset. most: a partition is left out if more than this
        many offsets would be read.
        """
        spans = {
            partition: range(max(self.ranges[partition].start, offset - window), self.ranges[partition].end)
            for partition, offset in committed.items()
        }
        spans = _short(spans, most)
        everything, live = all_and_live(self._source.records, spans)
        return {
            partition: self._window(partition, records, live.get(partition), spans[partition], committed[partition])
            for partition, records in everything.items()
        }

    def _window(
        self, partition: TopicPartition, records: Records, live: Records | None, span: range, committed: int
    ) -> Window:
        """Return ``records`` of a source partition from the first change of the timestamp on.

        All are returned if ``span`` starts at 0, or if the timestamp does not change below the offset ``committed``.

        span: the offsets that were read. live: the records without those of aborted or open transactions; None if no
        offset in ``span`` is empty.
        """
        # A record before the first change of the timestamp may be identical with an earlier record, which was not read.
        first = _first_of_a_timestamp(records, committed) if span.start else 0
        offsets = records.offsets[first or 0 :]
        kept = None if live is None else set(live.offsets)
        part = LogPart(
            offsets=offsets,
            timestamps=records.timestamps[first or 0 :],
            prints=records.prints[first or 0 :],
            keys=records.keys[first or 0 :],
            tombstones=records.tombstones[first or 0 :],
            end=span.stop,
            from_start=not span.start,
            compacted=live is not None and partition.topic in self._compacted,
            aborted=() if kept is None else frozenset(at for at, offset in enumerate(offsets) if offset not in kept),
        )
        return Window(part, first is not None)

    def copies(
        self, parts: Iterable[tuple[TopicPartition, LogPart]], offsets: Iterable[tuple[TopicPartition, int]], most: int
    ) -> Mapping[TopicPartition, CopyPart]:
        """Return the records of each copy that may match the given source records, up to its last stable offset.

        parts: each copy with records of its source partition. offsets: each copy with an offset; the copy's records
        from there on are included. most: a copy is left out if more than this many offsets would be read. Copies
        without a leader are left out, and added to ``unanswered``.
        """
        parts = [*parts]
        starts = {copy: [self.copy_ends[copy]] for copy, _ in parts}
        timestamps: dict[TopicPartition, int] = {}
        for copy, part in parts:
            if part.timestamps:
                timestamps[copy] = min([*part.timestamps, timestamps.get(copy, part.timestamps[0])])
            if part.from_start and len(part.aborted) == len(part.offsets):  # then any record of the copy is too many
                starts[copy].append(self.copy_ranges[copy].start)
        timed = {copy: timestamp for copy, timestamp in timestamps.items() if timestamp >= 0}
        # Records before the first one that is as new as the oldest source record are too old to be copies.
        found = self._target.groups.offsets_at(timed)
        self.unanswered = timed.keys() - found.keys()
        for copy in timestamps.keys() - timed.keys():  # records without a timestamp, of old message formats
            starts[copy].append(self.copy_ranges[copy].start)
        for copy, record in found.items():
            if record is not None:
                starts[copy].append(record.offset)
        for copy, offset in offsets:
            starts[copy].append(max(offset, self.copy_ranges[copy].start))
        spans = {
            copy: range(min(of), self.copy_ends[copy]) for copy, of in starts.items() if copy not in self.unanswered
        }
        read = self._target.records.read(_short(spans, most), committed_only=True)
        return {copy: self._copy(copy, records, spans[copy]) for copy, records in read.items()}

    def _copy(self, copy: TopicPartition, records: Records, span: range) -> CopyPart:
        return CopyPart(
            offsets=records.offsets,
            timestamps=records.timestamps,
            prints=records.prints,
            keys=records.keys,
            tombstones=records.tombstones,
            log_append_time=records.log_append_time,
            start=span.start,
            is_cut_off=0 < span.start == self.copy_ranges[copy].start,
            compacted=len(records.offsets) < len(span) and copy.topic in self._compacted_copies,
        )


def _short(spans: Mapping[TopicPartition, range], most: int) -> dict[TopicPartition, range]:
    return {partition: span for partition, span in spans.items() if len(span) <= most}


def _first_of_a_timestamp(records: Records, committed: int) -> int | None:
    """Return the index of the first record whose timestamp differs from the record before; None: there is none.

    Only records below the offset ``committed`` are searched.
    """
    for index in range(1, len(records.offsets)):
        if records.offsets[index] >= committed:
            return None
        if records.timestamps[index] != records.timestamps[index - 1]:
            return index
    return None
