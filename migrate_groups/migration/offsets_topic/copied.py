"""Copy the log of ``__consumer_offsets``, and read log end offsets that fit the copied commits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.clock import Clock
from migrate_groups.errors import Undetermined
from migrate_groups.files.runs.copied_log import CopiedLog, save_log_ends
from migrate_groups.migration.events import Events, Progress, amounts_shown
from migrate_groups.migration.ports import GroupReader, LogClients
from migrate_groups.migration.reading.copy_log import copy_log, log_ranges
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, Replica, log_partition
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, TopicPartition
from migrate_groups.model.topics import partitions_of
from migrate_groups.snapshots.times import milliseconds_of
from migrate_groups.text import did_you_mean

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.history_job import LogEnds

OpenLog = Callable[[], AbstractContextManager[LogClients]]
"""Connects to a cluster, and returns a context manager that yields the clients and closes them after its block."""


class LogEnd(NamedTuple):
    """The log end offset of a partition at the time ``taken_at``; None if it can no longer be determined."""

    topic: str
    partition: int
    taken_at: datetime
    log_end_offset: int | None


class LogWithEnds(NamedTuple):
    """The copied log of ``__consumer_offsets``, and the log end offsets of all topics right after the copy.

    taken_at: the time at which the log end offsets were read.
    """

    log: CopiedLog
    taken_at: datetime
    log_ends: Mapping[TopicPartition, int]

    @contextmanager
    def past_log_ends(self, reader: GroupReader, events: Events) -> Iterator[LogEnds]:
        """Yield a function that reads log end offsets of the past, and returns the path of a Parquet file of them.

        The function raises `ClusterUnavailable` or `NotAuthorized`. Its file is deleted after the block.
        """
        with tempfile.TemporaryDirectory(prefix="migrate-groups-") as scratch:

            def saved(partitions: Collection[tuple[str, int]], moments: Collection[datetime]) -> str:
                path = Path(scratch) / "log_ends.parquet"
                with amounts_shown(events, "reading log end offsets") as progress:
                    asked = [TopicPartition(*partition) for partition in partitions]
                    save_log_ends(log_ends(reader, asked, [*moments], self.log_ends, progress), path)
                return str(path)

            yield saved


def copy_with_ends(
    clients: LogClients, groups: Collection[str] | None, folder: Path, clock: Clock, events: Events
) -> LogWithEnds:
    """Copy the log of ``__consumer_offsets`` into a folder, and read the log end offsets of all topics.

    groups: copy only the partitions that hold these groups; None: all partitions. events: told of each group that does
    not exist now.

    Raises `Undetermined` if ``__consumer_offsets`` does not exist, or was recreated or truncated since the last copy.
    Raises `ClusterUnavailable` if one of its partitions has no leader; `Refused` if another command copies to the
    folder; `InvalidInput` if the folder can't be used.
    """
    if groups is not None:
        _warn_of_missing(clients.reader, groups, events)
    log = copy_offsets_log(clients, groups, folder, clock, events)
    # The log ends are read now and not after the start of Spark, which takes seconds. They must fit the copied commits.
    return LogWithEnds(log, clock.now(), current_log_ends(clients.reader))


def copy_offsets_log(
    clients: LogClients,
    groups: Collection[str] | None,
    folder: Path,
    clock: Clock,
    events: Events,
    *,
    followers: bool = False,
) -> CopiedLog:
    """Copy the log of ``__consumer_offsets`` into a folder. Arguments and errors: `copy_with_ends`.

    followers: read a partition from a follower if its leader does not answer.
    """
    reader, topic = clients
    described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
    if described is None:
        raise Undetermined(f"{OFFSETS_TOPIC} does not exist: no group has committed here yet")
    count = len(described.partitions)
    wanted = {*described.partitions} if groups is None else {log_partition(group, count) for group in groups}
    now = clock.now()
    read_from = _WithFollowers(reader, topic.replicas(wanted)) if followers else _WithFollowers(reader, {})
    starts = {number: ends.start for number, ends in log_ranges(read_from, wanted).items()}
    with CopiedLog.locked(folder), amounts_shown(events, f"reading {OFFSETS_TOPIC}") as progress:
        log = CopiedLog.load(folder, reader.cluster_id(), described.topic_id).with_partitions(starts)
        log = replace(log, followers=read_from.followers)
        return copy_log(read_from, topic, log, wanted, progress, now)


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


class _WithFollowers:
    """Returns log ranges, from followers for partitions of ``__consumer_offsets`` whose leader does not answer."""

    def __init__(self, reader: GroupReader, replicas: Mapping[int, Replica]) -> None:
        self._reader = reader
        self._ends = {number: each.end for number, each in replicas.items() if not each.leads}
        self.followers = {number: each.broker for number, each in replicas.items() if not each.leads}

    def log_ranges(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange]:
        led = [each for each in partitions if each.partition not in self._ends]
        of_followers = {
            each: LogRange(start=0, end=self._ends[each.partition]) for each in partitions if each not in led
        }
        return {**(self._reader.log_ranges(led) if led else {}), **of_followers}


def _warn_of_missing(reader: GroupReader, groups: Collection[str], events: Events) -> None:
    # This is no error, because the log may have commits of a deleted group.
    there = [each.group for each in reader.list_groups()]
    for group in sorted({*groups} - {*there}):
        near = did_you_mean([group], there)
        found = f"group {group!r} does not exist now{f' ({near})' if near else ''}"
        events.said(f"warning: {found}: only its past commits can be shown")
