"""The log of the offsets topic from a fence to now, landed in files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from migrate_groups.errors import ClusterUnavailable, Undetermined
from migrate_groups.files.runs.landed_log import LandedLog
from migrate_groups.migration.ports import GroupReader, OffsetsTopicReader
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, LogRecord
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.text import some

# Some 30 MB in memory before a file is written.
_FILE_RECORDS = 200_000

ReadProgress = Callable[[int, int], None]
"""Told how many offsets have been read, of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """A landed log, and for each of its partitions how many offsets an open transaction still holds back."""

    log: LandedLog
    held_back: Mapping[int, int]

    @property
    def ranges(self) -> list[tuple[int, int, int, int]]:
        """The rows of `spark.audit.RANGES`."""
        return [
            (number, self.log.starts[number], self.log.ends[number], held) for number, held in self.held_back.items()
        ]

    @property
    def offsets(self) -> int:
        """How many the partitions hold, each of which is a record at most."""
        return sum(end - start for _, start, end, _ in self.ranges)


def land(
    reader: GroupReader, topic: OffsetsTopicReader, log: LandedLog, partitions: Collection[int], progress: ReadProgress
) -> Landing:
    """Bring these partitions of a landed log up to the end of now.

    Raises `Undetermined` where the log ends before its fence, `ClusterUnavailable` or `NotAuthorized`.
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
    # What is gone since may be all there was: that, too, is how far the log has come.
    if rows or not log.files or any(log.ends[number] != at for number, at in reached.items()):
        log = log.with_records(rows, reached)
    return Landing(log=log, held_back={number: max(0, end - reached[number]) for number, end in ends.items()})


def _bounds(reader: GroupReader, reached: Mapping[int, int]) -> dict[int, LogRange]:
    """Return where these partitions begin and end now, none of which may end before where it had got to."""
    bounds = reader.log_ranges([TopicPartition(OFFSETS_TOPIC, number) for number in reached])
    found = {partition.partition: ends for partition, ends in bounds.items()}
    if leaderless := set(reached) - set(found):
        raise ClusterUnavailable(f"{OFFSETS_TOPIC} has no leader for partition {some(leaderless)}; try again")
    if shorter := [number for number, ends in found.items() if ends.end < reached[number]]:
        raise Undetermined(f"{OFFSETS_TOPIC} was made anew or cut short since: partition {some(shorter)} ends earlier")
    return found
