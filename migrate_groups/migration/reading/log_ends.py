"""Find the log end offsets of partitions at past times, from the timestamps of their records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from migrate_groups.migration.events import Progress
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, TopicPartition
from migrate_groups.model.topics import partitions_of
from migrate_groups.snapshots.times import milliseconds_of


class LogEnd(NamedTuple):
    """The log end offset of a partition at the time ``taken_at``; None if it can no longer be determined."""

    topic: str
    partition: int
    taken_at: datetime
    log_end_offset: int | None


def current_log_ends(reader: GroupReader) -> dict[TopicPartition, int]:
    """Return the log end offset of each partition that the client's principal may describe.

    A partition without a leader is left out.
    """
    topics = reader.describe_topics(None)
    every = partitions_of(topics)
    return {partition: ends.end for partition, ends in reader.log_ranges(every).items()}


def log_ends(
    reader: GroupReader,
    partitions: Collection[TopicPartition],
    moments: Sequence[datetime],
    last: Mapping[TopicPartition, int],
    progress: Progress,
) -> Iterator[LogEnd]:
    """Yield the log end offset of each partition at each of these times.

    moments: the times, in ascending order. last: log end offsets at the last time; missing ones are read now. progress:
    called with the number of times done and the number of all times.

    A partition that does not exist, has no leader or may not be described is left out.
    """
    visible = reader.describe_topics(None)
    wanted = [partition for partition in partitions if partition.topic in visible]
    bounds = reader.log_ranges(wanted)
    for number, moment in enumerate(moments, start=1):
        is_last = number == len(moments)
        # The log end offset at an earlier time is the offset of the first record at or after that time. In a compacted
        # log it may be a little too high. The last time is not searched, because the clocks of producers differ from
        # the local clock: the offset found could be lower than the committed offset of a group that has caught up.
        found = {} if is_last else reader.offsets_at(dict.fromkeys(bounds, milliseconds_of(moment)))
        for partition, ends in bounds.items():
            if is_last or partition in found:
                end = last.get(partition, ends.end) if is_last else _end(found[partition], ends)
                yield LogEnd(partition.topic, partition.partition, moment, end)
        progress(number, len(moments))


def _end(first: OffsetAndTimestamp | None, ends: LogRange) -> int | None:
    if first is None:
        return ends.end
    # Before the first record of a log that does not start at 0, records may have been deleted.
    return None if first.offset <= ends.start > 0 else first.offset
