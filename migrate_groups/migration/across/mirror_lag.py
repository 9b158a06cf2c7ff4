"""Find how far a mirror has copied partitions to another cluster. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.across.logs import WINDOW, Logs, in_growing_windows
from migrate_groups.migration.clusters import Mirror
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.model.records import Records
from migrate_groups.planning.translation import Behind, Translation
from migrate_groups.text import counted, some

_MOST_COUNTED = 1_600


class MirrorLag(NamedTuple):
    """How far a mirror has copied a source partition.

    - end: the log end offset on the source, read after the end of the copy.
    - reached: the source offset up to which the mirror has delivered every record that it is to deliver. None: not
      known.
    - behind: the records that the copy lacks; None: not known.
    """

    end: int
    reached: int | None
    behind: Behind | None


def mirror_lag(
    mirror: Mirror,
    copy_of: Mapping[TopicPartition, TopicPartition],
    since: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> Mapping[TopicPartition, MirrorLag]:
    """Return how far a mirror has copied each source partition. A partition that has no leader now is left out.

    The last record of the copy is looked for on the source, from the log end backwards. If it is more than 1,600
    offsets before the log end, its timestamp shows the lowest source offset that it can have.

    copy_of: the copy of each source partition. since: source offsets; the records from there on are searched, even if
    there are more.
    """
    logs = Logs(mirror, copy_of.keys(), copy_of.values())
    here, there, stable = logs.ranges, logs.copy_ranges, logs.copy_ends
    known = {each: copy for each, copy in copy_of.items() if each in here and copy in stable and copy in there}
    last = _last_records(mirror, {copy: range(there[copy].start, stable[copy]) for copy in known.values()})
    found = {
        each: MirrorLag(here[each].end, here[each].end, Behind(0, 0))
        for each in known
        if here[each].start == here[each].end
    }
    wanted = {
        each: _Wanted(
            here[each],
            there[copy],
            last.get(copy),
            most=max(_MOST_COUNTED, here[each].end - since.get(each, here[each].end) + WINDOW),
        )
        for each, copy in known.items()
        if each not in found
    }
    newest: dict[TopicPartition, int] = {}

    def read(spans: Mapping[TopicPartition, range]) -> Iterator[TopicPartition]:
        for partition, (records, aborted) in logs.with_aborted(spans).items():
            of, span = wanted[partition], spans[partition]
            newest[partition] = max(records.timestamps, default=-1)
            if (lag := of.lag(records, aborted, span)) is not None:
                found[partition] = lag
            elif span.start > of.here.start and len(span) < min(of.most, mirror.most_records):
                yield partition

    in_growing_windows(wanted, lambda each, window: wanted[each].span(min(window, mirror.most_records)), read)
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

    def lag(self, records: Records, aborted: Collection[int], span: range) -> MirrorLag | None:
        """Return how far the mirror is, if these records of the source partition show it; otherwise None.

        aborted: the indices of records of aborted or open transactions. span: the offsets that were read.
        """
        first, end = 0, len(records.prints)  # first: the index of the first record that was not delivered
        if self.last is not None:
            first = next((n + 1 for n in reversed(range(end)) if records.prints[n] == self.last.prints[-1]), -1)
        is_whole = span.start == self.here.start
        if first < 0 or not (self.last or is_whole):
            return None
        lacking = [n for n in range(first, end) if n not in aborted]
        if not lacking:
            return MirrorLag(self.here.end, self.here.end, Behind(0, 0))
        if self.last is None and self.there.start > 0:
            return MirrorLag(self.here.end, None, None)  # retention has deleted all records of the copy
        late = max(records.timestamps[n] for n in lacking) - records.timestamps[lacking[0]]
        return MirrorLag(self.here.end, records.offsets[lacking[0]], Behind(len(lacking), late))


def _last_records(mirror: Mirror, copies: Mapping[TopicPartition, range]) -> Mapping[TopicPartition, Records]:
    """Return, for each copy, its last records up to the last stable offset. A copy without records is left out."""
    found: dict[TopicPartition, Records] = {}

    def read(spans: Mapping[TopicPartition, range]) -> list[TopicPartition]:
        records = mirror.target.records.read(spans, committed_only=True)
        found.update((copy, of) for copy, of in records.items() if of.offsets)
        # Transaction markers and aborted records leave gaps at the end.
        return [copy for copy, span in spans.items() if copy not in found and len(span) < len(copies[copy])]

    in_growing_windows(filter(copies.get, copies), lambda copy, window: copies[copy][-window:], read)
    return found


def _by_timestamp(
    mirror: Mirror, wanted: Mapping[TopicPartition, _Wanted], newest: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, MirrorLag]:
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
            found[each] = MirrorLag(of.here.end, record.offset, behind)
        elif of.last is None and of.there.start == 0:
            found[each] = MirrorLag(of.here.end, of.here.start, Behind(of.here.end - of.here.start, None))
        else:
            found[each] = MirrorLag(of.here.end, None, None)
    return found


def delivered_again(mirror: Mirror, translation: Translation) -> str:
    """Return a remark that names the copies to which the mirror has delivered records a second time; empty if none.

    translation: offsets found earlier in the copies. The remark also names copies for which this is not known: they
    can't be read, or have grown by more than ``mirror.most_records`` offsets since.
    """
    target = mirror.target
    seen = {
        each.copy: (each.position.as_of, each.position.before)
        for each in translation.partitions
        if each.copy and each.position.as_of is not None and each.position.before is not None
    }
    try:
        ends = target.groups.last_stable_offsets(seen)
        spans = {copy: range(seen[copy][0], end) for copy, end in ends.items()}
        read = target.records.read(
            {copy: span for copy, span in spans.items() if len(span) <= mirror.most_records}, committed_only=True
        )
    except MigrateGroupsError as error:
        return f"whether the mirror has delivered records again is not known: {error}"
    # The mirror delivers records again after it was restarted, or after a broker to which it writes has failed.
    again = [copy for copy, records in read.items() if seen[copy][1] in records.prints]
    remarks = []
    if again:
        remarks.append(
            "the mirror has begun again since the offsets were translated: "
            f"{counted(len(again), 'partition')} with records from before the translated offset after it "
            f"({some(again)})"
        )
    if unread := sorted(seen.keys() - read.keys()):
        remarks.append(
            "whether the mirror has delivered records again is not known for "
            f"{counted(len(unread), 'partition')} without a leader, or with more than {mirror.most_records:,} new "
            f"offsets: {some(unread)}"
        )
    return "; ".join(remarks)
