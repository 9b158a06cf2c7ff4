"""Find the log end offsets of partitions at past times, from the timestamps of their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, TopicPartition
from migrate_groups.snapshots.times import milliseconds_of


class LogEnd(NamedTuple):
    """The log end offset of a partition at a time; None: it can no longer be known."""

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
    """Yield the log end offset of each partition at each moment; the last moment must be now.

    The end at a time is the offset of the first record at or after it (``ListOffsets``). In a compacted log this may be
    a little higher than the end was. If the first remaining record is later than the time, the end is not known, unless
    the log still starts at 0. A partition that does not exist, is hidden or has no leader is left out. Raises the
    errors of `GroupReader`.
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
