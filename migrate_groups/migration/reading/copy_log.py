"""Copy the records of ``__consumer_offsets``, up to the current log end, into files for `audit` and `history`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from migrate_groups.errors import ClusterUnavailable, Undetermined
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.migration.events import Progress
from migrate_groups.migration.log_ports import OffsetsTopicReader
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, LogRecord
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.text import named

# A file is written after this many records, which take some 30 MB in memory.
_FILE_RECORDS = 200_000


class LogRanges(Protocol):
    """Returns log start and log end offsets, as `LogReader`."""

    def log_ranges(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange]:
        """Return the log start and log end offset of each partition that exists and can be read."""
        ...


def copy_log(
    reader: LogRanges,
    topic: OffsetsTopicReader,
    log: CopiedLog,
    partitions: Collection[int],
    progress: Progress,
    now: datetime | None = None,
) -> CopiedLog:
    """Copy the records of ``__consumer_offsets`` that ``log`` lacks, up to the current log end, and return the new log.

    ``log`` must have a start offset for each partition. The new log has ``held_back`` for each
    partition. progress: called with the number of copied offsets and the number to copy. now: the time, to record it.

    Raises `Undetermined` if the topic was created again or truncated since the last copy; `ClusterUnavailable`, also if
    a partition has no leader; `NotAuthorized`; `InvalidInput` if a file can't be written.
    """
    found = _bounds(reader, {number: log.ends[number] for number in partitions}, log.followers)
    begun = {number: max(log.ends[number], ends.start) for number, ends in found.items()}
    ends = {number: max(each.end, begun[number]) for number, each in found.items()}
    total, rows = sum(ends.values()) - sum(begun.values()), list[LogRecord]()
    progress(0, total)
    reached: Mapping[int, int] = begun
    holes = {number: _Holes(first) for number, first in begun.items()}
    for piece in topic.read(begun, ends):
        rows += piece.records
        reached = piece.positions
        for record in piece.records:
            holes[record.partition].add(record.offset)
        for number, at in reached.items():
            holes[number].end_piece(at)
        progress(min(total, sum(reached.values()) - sum(begun.values())), total)
        if len(rows) >= _FILE_RECORDS:
            log, rows = log.with_records(rows, reached), []
    held_back = {number: max(0, end - reached[number]) for number, end in ends.items()}
    # A file without records is needed too, because it records how far the log was read: all records up to there may
    # have been compacted away.
    if rows or not log.files or any(log.ends[number] != at for number, at in reached.items()):
        for number, at in reached.items():
            holes[number].close(at)
        read = {number: (begun[number], at) for number, at in reached.items() if begun[number] < at}
        moved = _compacted_meanwhile(topic, holes)
        log = (
            replace(log, held_back=held_back, copied_at=now)
            .with_consistent(
                {number: each for number, each in read.items() if number not in moved},
                {number for number, each in holes.items() if not each.until},
            )
            .with_records(rows, reached)
        )
    return replace(log, held_back=held_back, copied_at=now)


@dataclass(slots=True)
class _Holes:
    """What one reading of a partition has shown of the offsets that have no record.

    position: the next offset. records: how many records were read. until: the offset after the last missing one; 0 if
    none is missing. before: how many records are before it. first_piece: where the first response ended.
    """

    start: int
    position: int = -1
    records: int = 0
    until: int = 0
    before: int = 0
    first_piece: int | None = None

    def add(self, offset: int) -> None:
        self.close(offset)
        self.position = offset + 1
        self.records += 1

    def close(self, end: int) -> None:
        position = max(self.position, self.start)
        if end > position:
            self.until, self.before, self.position = end, self.records, end

    def end_piece(self, position: int) -> None:
        if self.first_piece is None and position > self.start:
            self.first_piece = position


def _compacted_meanwhile(topic: OffsetsTopicReader, holes: Mapping[int, _Holes]) -> set[int]:
    """Return the partitions that Kafka compacted while they were read, as far as that can matter.

    Compaction may then have removed the successor of a record that had been read before. It would have removed this
    record too, so it is looked for again. One response shows the partition at one moment, so if all missing offsets
    are in the first response, nothing is read again.
    """
    doubtful = {n: each for n, each in holes.items() if each.until and each.until > (each.first_piece or each.start)}
    if not doubtful:
        return set()
    left = dict.fromkeys(doubtful, 0)
    starts = {number: each.start for number, each in doubtful.items()}
    for piece in topic.read(starts, {number: each.until for number, each in doubtful.items()}):
        for record in piece.records:
            left[record.partition] += record.offset < doubtful[record.partition].until
    return {number for number, each in doubtful.items() if left[number] != each.before}


def log_ranges(reader: LogRanges, numbers: Collection[int]) -> dict[int, LogRange]:
    """Return the current log ranges of partitions of ``__consumer_offsets``, by partition number.

    Raises `ClusterUnavailable` if a partition has no leader.
    """
    bounds = reader.log_ranges([TopicPartition(OFFSETS_TOPIC, number) for number in numbers])
    found = {partition.partition: ends for partition, ends in bounds.items()}
    if leaderless := set(numbers) - set(found):
        raise ClusterUnavailable(
            f"{OFFSETS_TOPIC} has no leader for {named('partition', leaderless)}; try again once there is one"
        )
    return found


def _bounds(reader: LogRanges, reached: Mapping[int, int], may_lack: Collection[int]) -> dict[int, LogRange]:
    """Return the current log ranges of the partitions of ``__consumer_offsets`` in ``reached``, by partition number.

    reached: by partition number, the offset up to which it was copied before. may_lack: partitions that are read from a
    follower, which may end before that.

    Raises `ClusterUnavailable` if a partition has no leader; `Undetermined` if a log end offset is now below the one in
    ``reached``.
    """
    found = log_ranges(reader, reached)
    shorter = [number for number, ends in found.items() if ends.end < reached[number] and number not in may_lack]
    if shorter:
        raise Undetermined(
            f"{OFFSETS_TOPIC} was created again or truncated since: lower log end offset in "
            f"{named('partition', shorter)}; this cut-over can't be audited, and --history needs another --log folder"
        )
    return found
