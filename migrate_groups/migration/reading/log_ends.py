"""Where the logs of partitions ended at moments of the past, as far as their records' times tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, TopicPartition
from migrate_groups.snapshots.times import milliseconds_of


class LogEnd(NamedTuple):
    """Where a partition's log ended at a moment; None: nobody can tell any more."""

    topic: str
    partition: int
    taken_at: datetime
    log_end_offset: int | None


def log_ends(
    reader: GroupReader,
    partitions: Collection[TopicPartition],
    moments: Sequence[datetime],
    progress: Callable[[int, int], None],
) -> Iterator[LogEnd]:
    """Yield the log ends of these partitions at each moment, the last of which is now.

    The end at a time is the offset of the first record of the time or later (``ListOffsets``), which in a compacted log
    may lie a little further on. A time before the first record that is left is not known, unless nothing was ever
    deleted. A partition that is gone, hidden or without a leader is left out. Raises as `GroupReader`.
    """
    visible = reader.describe_topics(None)
    wanted = [partition for partition in partitions if partition.topic in visible]
    bounds = reader.log_ranges(wanted)
    for number, moment in enumerate(moments, start=1):
        is_now = number == len(moments)
        found = {} if is_now else reader.offsets_at(dict.fromkeys(bounds, milliseconds_of(moment)))
        for partition, ends in bounds.items():
            if is_now or partition in found:
                end = ends.end if is_now else _end(found[partition], ends)
                yield LogEnd(partition.topic, partition.partition, moment, end)
        progress(number, len(moments))


def _end(first: OffsetAndTimestamp | None, ends: LogRange) -> int | None:
    if first is None:
        return ends.end
    return None if first.offset <= ends.start > 0 else first.offset
