"""Copy records of ``__consumer_offsets``, up to the current log end, into files (the landed log)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from migrate_groups.errors import ClusterUnavailable, Undetermined
from migrate_groups.files.runs.landed_log import LandedLog
from migrate_groups.migration.ports import GroupReader, OffsetsTopicReader
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, LogRecord
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.text import some

# A file is written after this many records, which take some 30 MB in memory.
_FILE_RECORDS = 200_000

ReadProgress = Callable[[int, int], None]
"""Called with the number of offsets that have been read, and the number of offsets to read in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Records of ``__consumer_offsets`` that were copied into files, and how many offsets are missing at the log ends.

    held_back: for each partition, the number of offsets before the log end that could not be read, because an open
    transaction holds them back.
    """

    log: LandedLog
    held_back: Mapping[int, int]

    @property
    def ranges(self) -> list[tuple[int, int, int, int]]:
        """Number, start and end offset, and ``held_back`` of each partition (`spark.offsets_topic.audit.RANGES`)."""
        return [
            (number, self.log.starts[number], self.log.ends[number], held) for number, held in self.held_back.items()
        ]

    @property
    def offsets(self) -> int:
        """The number of copied offsets in all partitions; the number of records is at most that."""
        return sum(end - start for _, start, end, _ in self.ranges)


def land(
    reader: GroupReader, topic: OffsetsTopicReader, log: LandedLog, partitions: Collection[int], progress: ReadProgress
) -> Landing:
    """Copy the records of these partitions of ``__consumer_offsets`` that ``log`` lacks, up to the current log end.

    Raises `Undetermined` if a partition now ends before the offset up to which ``log`` has it;
    `ClusterUnavailable`, also if a partition has no leader; `NotAuthorized`.
    """
    found = _bounds(reader, {number: log.ends[number] for number in partitions})
    begun = {number: max(log.ends[number], ends.start) for number, ends in found.items()}
    ends = {number: each.end for number, each in found.items()}
    total, rows = sum(ends.values()) - sum(begun.values()), list[LogRecord]()
    progress(0, total)
    reached: Mapping[int, int] = begun
    for piece in topic.read(begun, ends):
        rows += piece.records
        reached = piece.positions
        progress(min(total, sum(reached.values()) - sum(begun.values())), total)
        if len(rows) >= _FILE_RECORDS:
            log, rows = log.with_records(rows, reached), []
    # A file without records is needed too, because it records how far the log was read: all records up to there may
    # have been compacted away.
    if rows or not log.files or any(log.ends[number] != at for number, at in reached.items()):
        log = log.with_records(rows, reached)
    return Landing(log=log, held_back={number: max(0, end - reached[number]) for number, end in ends.items()})


def _bounds(reader: GroupReader, reached: Mapping[int, int]) -> dict[int, LogRange]:
    """Return the current log start and log end offset of each partition in ``reached``.

    ``reached``: the offset up to which each partition is copied. Raises `ClusterUnavailable` if a partition has no
    leader; `Undetermined` if it now ends before that offset.
    """
    bounds = reader.log_ranges([TopicPartition(OFFSETS_TOPIC, number) for number in reached])
    found = {partition.partition: ends for partition, ends in bounds.items()}
    if leaderless := set(reached) - set(found):
        raise ClusterUnavailable(f"{OFFSETS_TOPIC} has no leader for partition {some(leaderless)}; try again")
    if shorter := [number for number, ends in found.items() if ends.end < reached[number]]:
        raise Undetermined(f"{OFFSETS_TOPIC} was made anew or cut short since: partition {some(shorter)} ends earlier")
    return found
