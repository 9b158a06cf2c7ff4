"""Read records of source partitions and of a mirror's copies, to compare them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from typing import TypeVar

from migrate_groups.migration.clusters import Mirror
from migrate_groups.mirrors.log_parts import CopyPart, LogPart
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.records import Records

WINDOW = 100
"""How many offsets of a partition `in_growing_windows` reads at first."""
_GROWTH = 16
_MOST_AT_ONCE = 200_000
_T = TypeVar("_T", bound=Hashable)


def in_growing_windows(
    items: Iterable[_T], span: Callable[[_T, int], range], read: Callable[[Mapping[_T, range]], Iterable[_T]]
) -> None:
    """Read more and more records for each item, in portions of which the records fit into memory.

    - span: returns the offsets to read for an item, given the number of offsets in the window.
    - read: reads some of the items, each with the offsets to read. It returns the items that need a larger window.
    """
    window, left = WINDOW, [*items]
    while left:
        left = [each for portion in _portions({each: span(each, window) for each in left}) for each in read(portion)]
        window *= _GROWTH


def _portions(spans: Mapping[_T, range]) -> Iterator[Mapping[_T, range]]:
    portion: dict[_T, range] = {}
    offsets = 0
    for each, span in spans.items():
        portion[each] = span
        offsets += len(span)
        if offsets >= _MOST_AT_ONCE:
            yield portion
            portion, offsets = {}, 0
    if portion:
        yield portion


class Logs:
    """Reads records of partitions on the source cluster, and of a mirror's copies on the target cluster.

    - copy_ends: the last stable offsets of the copies. copy_ranges, ranges: the log ranges of the copies, and of the
      source partitions. Partitions without a leader are left out.
    - unanswered: copies that `copies` could not read, because they have no leader now.

    Every method may raise `NotAuthorized` and `ClusterUnavailable`.
    """

    def __init__(
        self, mirror: Mirror, partitions: Collection[TopicPartition], copies: Collection[TopicPartition]
    ) -> None:
        self._mirror, self._partitions, self._copies = mirror, partitions, copies
        # The ends of what the mirror writes are read first, because then what it reads has all records below them.
        if mirror.is_return:
            self.ranges = mirror.source.groups.log_ranges(partitions)
        self.copy_ends = mirror.target.groups.last_stable_offsets(copies)
        self.copy_ranges = mirror.target.groups.log_ranges(copies)
        if not mirror.is_return:
            self.ranges = mirror.source.groups.log_ranges(partitions)
        self.unanswered: Set[TopicPartition] = frozenset()

    @cached_property
    def _compacted(self) -> Collection[str]:
        return self._mirror.source.groups.maybe_compacted_topics({each.topic for each in self._partitions})

    @cached_property
    def _compacted_copies(self) -> Collection[str]:
        return self._mirror.target.groups.maybe_compacted_topics({each.topic for each in self._copies})

    def with_aborted(
        self, spans: Mapping[TopicPartition, range]
    ) -> Mapping[TopicPartition, tuple[Records, Collection[int]]]:
        """Return the records of source partitions, and the indices of those of aborted or open transactions."""
        reader = self._mirror.source.records
        everything = reader.read(spans, committed_only=False)
        # Transaction markers leave gaps between the offsets; so does compaction.
        gaps = {each: spans[each] for each, records in everything.items() if len(records.offsets) < len(spans[each])}
        live = {each: {*records.offsets} for each, records in reader.read(gaps, committed_only=True).items()}
        return {
            each: (records, _not_in(live[each], records) if each in live else ())
            for each, records in everything.items()
        }

    def parts(
        self, spans: Mapping[TopicPartition, range], committed: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, LogPart]:
        """Return the records of source partitions in these ranges of offsets.

        A partition is left out if more offsets would be read than ``most_records`` of the mirror. committed: by source
        partition, the lowest committed offset.
        """
        spans = self._short(spans)
        return {
            partition: self._part(partition, records, aborted, spans[partition], committed[partition])
            for partition, (records, aborted) in self.with_aborted(spans).items()
        }

    def _part(
        self, partition: TopicPartition, records: Records, aborted: Collection[int], span: range, committed: int
    ) -> LogPart:
        """Return ``records`` of a source partition from the first change of the timestamp on.

        All are returned if ``span`` starts at 0, if the timestamp does not change below the offset ``committed``, or if
        the group returns to the target, of which all records from the first timestamp on are read.

        aborted: the indices of records that belong to aborted or open transactions. span: the offsets that were read.
        """
        # A record before the first change of the timestamp may be identical with an earlier record, which was not read.
        is_needed = span.start and not self._mirror.is_return
        anchor = _first_of_a_timestamp(records, committed) if is_needed else 0
        first = anchor or 0
        return LogPart(
            offsets=records.offsets[first:],
            timestamps=records.timestamps[first:],
            prints=records.prints[first:],
            keys=records.keys[first:],
            tombstones=records.tombstones[first:],
            end=span.stop,
            from_start=not span.start,
            compacted=len(records.offsets) < len(span) and partition.topic in self._compacted,
            aborted=frozenset(index - first for index in aborted if index >= first),
            is_anchored=anchor is not None,
        )

    def copies(
        self, parts: Iterable[tuple[TopicPartition, LogPart]], offsets: Iterable[tuple[TopicPartition, int]]
    ) -> Mapping[TopicPartition, CopyPart]:
        """Return the records of each copy that may match the given source records, up to its last stable offset.

        parts: each copy with records of its source partition. offsets: each copy with an offset; the copy's records
        from there on are included. A copy is left out if more offsets would be read than ``most_records`` of the
        mirror. Copies without a leader are left out, and added to ``unanswered``.
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
        found = self._mirror.target.groups.offsets_at(timed)
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
        read = self._mirror.target.records.read(self._short(spans), committed_only=True)
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

    def _short(self, spans: Mapping[TopicPartition, range]) -> dict[TopicPartition, range]:
        return {each: span for each, span in spans.items() if len(span) <= self._mirror.most_records}


def _not_in(offsets: Collection[int], records: Records) -> Collection[int]:
    return frozenset(index for index, offset in enumerate(records.offsets) if offset not in offsets)


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
