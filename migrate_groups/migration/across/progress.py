"""Find how far a mirror has copied partitions to another cluster. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from migrate_groups.migration.across.logs import all_and_live
from migrate_groups.migration.across.mirror import Mirror
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.model.records import Records
from migrate_groups.planning.translation import Behind

_WINDOW = 100
_GROWTH = 16
_MOST_COUNTED = 1_600
_MOST_AT_ONCE = 200_000


class Progress(NamedTuple):
    """How far a mirror has copied a source partition.

    - end: the log end offset on the source, read after the end of the copy.
    - reached: the source offset up to which the mirror has delivered every record that it is to deliver. None: not
      known.
    - behind: the records that the copy lacks; None: not known.
    """

    end: int
    reached: int | None
    behind: Behind | None


def progress(
    mirror: Mirror,
    copy_of: Mapping[TopicPartition, TopicPartition],
    since: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> Mapping[TopicPartition, Progress]:
    """Return how far a mirror has copied each source partition. A partition that has no leader now is left out.

    The last record of the copy is looked for on the source, from the log end backwards. If it is more than 1,600
    offsets before the log end, its timestamp shows the lowest source offset that it can have.

    copy_of: the copy of each source partition. since: source offsets; the records from there on are searched, even if
    there are more. Raises `NotAuthorized` and `ClusterUnavailable`.
    """
    source, target = mirror.source, mirror.target
    # The ends of the target are read first, because then the source has all records below them when it is read.
    stable = target.groups.last_stable_offsets(copy_of.values())
    there = target.groups.log_ranges(copy_of.values())
    here = source.groups.log_ranges(copy_of.keys())
    known = {each: copy for each, copy in copy_of.items() if each in here and copy in stable and copy in there}
    last = _last_records(mirror, {copy: range(there[copy].start, stable[copy]) for copy in known.values()})
    found = {
        each: Progress(here[each].end, here[each].end, Behind(0, 0))
        for each in known
        if here[each].start == here[each].end
    }
    wanted = {
        each: _Wanted(here[each], there[copy], last.get(copy), max(_MOST_COUNTED, _offsets_since(each, here, since)))
        for each, copy in known.items()
        if each not in found
    }
    newest: dict[TopicPartition, int] = {}
    window, left = _WINDOW, [*wanted]
    while left:
        unfinished = []
        for spans in _portions((each, wanted[each].span(min(window, mirror.most_records))) for each in left):
            for partition, (records, is_live) in _source_records(mirror, spans).items():
                of, span = wanted[partition], spans[partition]
                newest[partition] = max(records.timestamps, default=-1)
                if (result := of.progress(records, is_live, span)) is not None:
                    found[partition] = result
                elif span.start > of.here.start and window < min(of.most, mirror.most_records):
                    unfinished.append(partition)
        left, window = unfinished, window * _GROWTH
    # The others have the record too far from the log end, or not any more.
    rest = {each: of for each, of in wanted.items() if each not in found}
    return {**found, **_by_timestamp(mirror, rest, newest)}


class _Wanted(NamedTuple):
    """A source partition, the range of its copy, and the copy's last record (None: there is none).

    most: the number of offsets before the log end in which to look for the record.
    """

    here: LogRange
    there: LogRange
    last: Records | None
    most: int

    def span(self, window: int) -> range:
        """Return the last ``window`` offsets of the source partition."""
        return range(max(self.here.start, self.here.end - window), self.here.end)

    def progress(self, records: Records, is_live: list[bool], span: range) -> Progress | None:
        """Return how far the mirror is, if these records of the source partition show it; otherwise None.

        is_live: for each record, whether it is of no aborted or open transaction. span: the offsets that were read.
        """
        first = 0  # the index of the first record that was not delivered
        if self.last is not None:
            first = next(
                (n + 1 for n in reversed(range(len(is_live))) if records.prints[n] == self.last.prints[-1]), -1
            )
        is_whole = span.start == self.here.start
        if first < 0 or not (self.last or is_whole):
            return None
        lacking = [n for n in range(first, len(is_live)) if is_live[n]]
        if not lacking:
            return Progress(self.here.end, self.here.end, Behind(0, 0))
        if self.last is None and self.there.start > 0:
            return Progress(self.here.end, None, None)  # retention has deleted all records of the copy
        late = max(records.timestamps[n] for n in lacking) - records.timestamps[lacking[0]]
        return Progress(self.here.end, records.offsets[lacking[0]], Behind(len(lacking), late))


def _offsets_since(
    partition: TopicPartition, here: Mapping[TopicPartition, LogRange], since: Mapping[TopicPartition, int]
) -> int:
    end = here[partition].end
    return end - since.get(partition, end) + _WINDOW


def _last_records(mirror: Mirror, copies: Mapping[TopicPartition, range]) -> Mapping[TopicPartition, Records]:
    """Return, for each copy, its last records up to the last stable offset. A copy without records is left out."""
    found: dict[TopicPartition, Records] = {}
    window, left = _WINDOW, {copy: span for copy, span in copies.items() if span}
    while left:
        # Transaction markers and aborted records leave gaps at the end.
        spans = {copy: range(max(span.start, span.stop - window), span.stop) for copy, span in left.items()}
        for portion in _portions(spans.items()):
            read = mirror.target.records.read(portion, committed_only=True)
            found |= {copy: records for copy, records in read.items() if records.offsets}
        left = {copy: span for copy, span in left.items() if copy not in found and spans[copy].start > span.start}
        window *= _GROWTH
    return found


def _source_records(
    mirror: Mirror, spans: Mapping[TopicPartition, range]
) -> Mapping[TopicPartition, tuple[Records, list[bool]]]:
    """Return each partition's records, and for each record whether it is of no aborted or open transaction."""
    everything, live = all_and_live(mirror.source.records, spans)
    kept = {each: {*records.offsets} for each, records in live.items()}
    return {
        each: (records, [each not in kept or offset in kept[each] for offset in records.offsets])
        for each, records in everything.items()
    }


def _by_timestamp(
    mirror: Mirror, wanted: Mapping[TopicPartition, _Wanted], newest: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, Progress]:
    """Return how far the mirror is at least, from the timestamp of each copy's last record.

    newest: by source partition, the highest timestamp of its last records.
    """
    timed = {
        each: of.last.timestamps[-1]
        for each, of in wanted.items()
        if of.last is not None and not of.last.log_append_time and of.last.timestamps[-1] >= 0
    }
    # The first record with this timestamp or a later one, so the copied record is not before it.
    first = mirror.source.groups.offsets_at(timed)
    found = {}
    for each, of in wanted.items():
        record = first.get(each)
        if record is not None:
            behind = Behind(of.here.end - record.offset, max(0, newest[each] - timed[each]))
            found[each] = Progress(of.here.end, record.offset, behind)
        elif of.last is None and of.there.start == 0:
            found[each] = Progress(of.here.end, of.here.start, Behind(of.here.end - of.here.start, None))
        else:
            found[each] = Progress(of.here.end, None, None)
    return found


def _portions(spans: Iterable[tuple[TopicPartition, range]]) -> Iterator[dict[TopicPartition, range]]:
    """Yield the spans in portions, so that the records of one portion fit into memory."""
    portion: dict[TopicPartition, range] = {}
    offsets = 0
    for partition, span in spans:
        portion[partition] = span
        offsets += len(span)
        if offsets >= _MOST_AT_ONCE:
            yield portion
            portion, offsets = {}, 0
    if portion:
        yield portion
