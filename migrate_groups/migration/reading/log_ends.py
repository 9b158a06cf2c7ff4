"""Find the log end offsets of partitions at past times, from the timestamps of their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, TopicPartition
from migrate_groups.snapshots.times import milliseconds_of


class LogEnd(NamedTuple):
    """The log end offset of a partition at the time ``taken_at``; None: it can no longer be determined."""

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

    The log end at a time is the offset of the first record at or after that time (``ListOffsets``). In a compacted log,
    this may be a little higher than the log end was. If that record is the first in the log and the log does not start
    at 0, the log end is not known, because earlier records may have been deleted. A partition is left out if it does
    not exist, has no leader, or is not visible to this principal because it lacks Describe on the topic. Raises the
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
