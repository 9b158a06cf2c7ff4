"""Watch a group until it has read to the log end offsets in a snapshot, for instance to the end of a replay."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from migrate_groups.clock import Clock
from migrate_groups.errors import InvalidInput, NotAuthorized, Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import describe_group, existing_group, read_committed
from migrate_groups.migration.reading.same_logs import refuse_other_logs
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, named, some

_POLL_SECONDS = 1.0
_RATE_SECONDS = 30.0
# If the committed offset of a partition does not move, its log is checked for remaining records: every _TAIL_SECONDS,
# and for _MOST_TAILS partitions at once.
_TAIL_SECONDS = 10.0
_MOST_TAILS = 20
_TOTAL = "all topics"  # no topic has a space in its name


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProgress:
    """How far a group has read a topic.

    - records: the number of offsets to read. The number of records may be lower.
    - left: how many of these offsets remain.
    - partitions: the number of partitions to read.
    - reached: how many of these partitions are read to the end.
    - rate: offsets per second over the last 30 s; None at the first observation.
    """

    topic: str
    records: int
    left: int
    partitions: int
    reached: int
    rate: float | None

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the topic is read to the end at the current rate; None if the rate is 0 or not known."""
        if not self.left:
            return 0.0
        return self.left / self.rate if self.rate else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchProgress:
    """How far a watched group has read after ``seconds`` of watching, by topic and in total.

    - members: the number of the group's members.
    - remark: why logs could not be checked for remaining records; otherwise empty.
    """

    topics: tuple[TopicProgress, ...]
    total: TopicProgress
    members: int
    seconds: float
    remark: str = ""

    @property
    def reached(self) -> bool:
        """Whether the group has no record left to read before the log end offsets in the snapshot."""
        return self.total.reached == self.total.partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The offsets that a watched group has to read.

    - rows: the snapshot rows with these offsets.
    - spans: by partition, the offsets from ``offset`` up to ``log_end_offset`` (exclusive) of its row.
    - unset: the partitions that have no offset in the snapshot. They are not watched.
    """

    rows: Sequence[Row]
    spans: Mapping[TopicPartition, range]
    unset: tuple[TopicPartition, ...]


def goals(snapshot: SnapshotTable, group: str) -> Goals:
    """Return the offsets that a group has to read: from its offset in the snapshot up to the snapshot's log end offset.

    If the snapshot has no row of the group, the rows without a group are used.
    Raises `InvalidInput` if no row is found, if the rows lack offsets, or if a partition has several rows.
    """
    rows = [row for row in snapshot.rows() if row.group == group]
    rows = rows or [row for row in snapshot.rows() if row.group is None]
    if not rows:
        present = [name for name in snapshot.groups() if name is not None]
        found = f"it has {named('group', present)}" if present else "it has no rows"
        raise InvalidInput(f"the snapshot has no offsets for group {group!r}; {found}: take a snapshot of the group")
    SnapshotTable.of_rows(rows).at_one_moment()
    silent = [row.topic_partition for row in rows if row.log_end_offset is None]
    if silent:
        raise InvalidInput(
            f"no log end offset for {some(silent)} in the snapshot: use a file that snapshot or rewind wrote"
        )
    spans = {row.topic_partition: range(row.offset, row.log_end_offset or 0) for row in rows if row.offset is not None}
    if not spans:
        raise InvalidInput(
            f"no partition of group {group!r} has an offset in the snapshot: take it again once the group has committed"
        )
    return Goals(
        rows=[row for row in rows if row.offset is not None],
        spans=spans,
        unset=tuple(row.topic_partition for row in rows if row.offset is None),
    )


def watch(
    reader: GroupReader,
    group: str,
    wanted: Goals,
    clock: Clock,
    progress: Callable[[WatchProgress], None],
    *,
    timeout: float = math.inf,
) -> WatchProgress:
    """Watch a group until it has read all the offsets in ``wanted``, and return the last progress.

    A partition counts as finished when no record is left between its committed offset and the end.
    progress: called about once a second.

    Raises `GroupNotFound`; `Refused` after ``timeout`` seconds, if a topic was deleted or recreated, or if the offsets
    are from another cluster.
    """
    refuse_other_logs(reader, wanted.rows, "watch without --until")
    watching = _Watching(reader, group, wanted.spans, clock)
    while True:
        seen = watching.look()
        progress(seen)
        if seen.reached:
            return seen
        if seen.seconds >= timeout:
            left = counted(seen.total.partitions - seen.total.reached, "partition")
            raise Refused(
                f"not finished after {timeout:g} s: {counted(seen.total.left, 'record')} left in {left}"
                f"{_not_consumed(reader, group, seen)}; run again to go on watching"
            )
        clock.sleep(min(_POLL_SECONDS, timeout - seen.seconds))


def _not_consumed(reader: GroupReader, group: str, seen: WatchProgress) -> str:
    """Return the end of an error message, which names the topics with unread records that no member consumes.

    The result is empty if there is no such topic.
    """
    consumed = {topic for member in describe_group(reader, group).members for topic in member.topics}
    idle = [each.topic for each in seen.topics if each.left and each.topic not in consumed]
    return f"; no member consumes {named('topic', idle)}" if idle else ""


@dataclass
class _Tail:
    """The offset up to which a group has read a partition, and when the log after it was last checked for records.

    looked_at: monotonic seconds; minus infinity if the log was never checked.
    """

    offset: int
    looked_at: float = -math.inf


@dataclass
class _Watching:
    reader: GroupReader
    group: str
    spans: Mapping[TopicPartition, range]
    clock: Clock
    started: float = field(init=False)
    left: dict[TopicPartition, int] = field(init=False)
    topics: dict[str, list[TopicPartition]] = field(init=False)
    history: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)
    tails: dict[TopicPartition, _Tail] = field(default_factory=dict)
    remark: str = ""

    def __post_init__(self) -> None:
        self.started = self.clock.monotonic()
        self.left = {partition: len(span) for partition, span in self.spans.items()}
        self.topics = {}
        for partition in sorted(self.spans):
            self.topics.setdefault(partition.topic, []).append(partition)

    def look(self) -> WatchProgress:
        description = existing_group(self.reader, self.group)
        ongoing = [partition for partition, left in self.left.items() if left]
        positions = self._positions(ongoing)
        for partition, offset in positions.items():
            self.left[partition] = max(0, self.spans[partition].stop - offset)
        # A consumer that commits record by record never commits past a transaction marker, and retention may have
        # deleted the remaining records.
        for partition in self._without_records_left(positions):
            self.left[partition] = 0
        return self._progress(len(description.members))

    def _positions(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        committed = read_committed(self.reader, {self.group: partitions})[self.group] if partitions else {}
        bounds = self.reader.log_ranges(partitions) if partitions else {}
        self._refuse_deleted_topics([partition for partition in partitions if partition not in bounds])
        positions = {}
        for partition in partitions:
            found = committed[partition]
            start = bounds.get(partition, LogRange(start=0, end=0)).start
            positions[partition] = max(start, found.offset if found else self.spans[partition].start)
        return positions

    def _refuse_deleted_topics(self, without_bounds: Collection[TopicPartition]) -> None:
        topics = {partition.topic for partition in without_bounds}
        gone = topics - self.reader.describe_topics(topics).keys() if topics else set()
        if gone:
            raise Refused(
                f"{named('topic', gone)} deleted during the watch: leave deleted topics out with filter --exclude-topic"
            )

    def _without_records_left(self, positions: Mapping[TopicPartition, int]) -> Collection[TopicPartition]:
        """Return partitions that have no record from the offset in ``positions`` to the log end offset in the snapshot.

        Each call checks only some of the partitions whose offset has not moved since the previous call.
        """
        still = []
        for partition, offset in positions.items():
            if partition in self.tails and self.tails[partition].offset == offset and self.left[partition]:
                still.append(partition)
            else:
                self.tails[partition] = _Tail(offset=offset)
        now = self.clock.monotonic()
        due = [partition for partition in still if now - self.tails[partition].looked_at >= _TAIL_SECONDS]
        due.sort(key=lambda partition: (self.tails[partition].looked_at, self.left[partition]))
        looked_into = {
            partition: range(positions[partition], self.spans[partition].stop) for partition in due[:_MOST_TAILS]
        }
        for partition in looked_into:
            self.tails[partition].looked_at = now
        try:
            found = self.reader.first_records(looked_into)
        except NotAuthorized as error:
            self.remark = f"the log is not checked for remaining records: {error}"
            return ()
        return [partition for partition, first in found.items() if first is None]

    def _progress(self, members: int) -> WatchProgress:
        now = self.clock.monotonic()
        left = {topic: sum(map(self.left.__getitem__, partitions)) for topic, partitions in self.topics.items()}
        left[_TOTAL] = sum(left.values())
        self.history.append((now, left))
        while now - self.history[0][0] > _RATE_SECONDS and len(self.history) > 2:
            self.history.popleft()
        return WatchProgress(
            topics=tuple(self._of(topic, partitions) for topic, partitions in self.topics.items()),
            total=self._of(_TOTAL, self.spans),
            members=members,
            seconds=now - self.started,
            remark=self.remark,
        )

    def _of(self, topic: str, partitions: Collection[TopicPartition]) -> TopicProgress:
        (then, before), (now, after) = self.history[0], self.history[-1]
        return TopicProgress(
            topic=topic,
            records=sum(len(self.spans[partition]) for partition in partitions),
            left=after[topic],
            partitions=len(partitions),
            reached=sum(not self.left[partition] for partition in partitions),
            rate=max(0.0, (before[topic] - after[topic]) / (now - then)) if now > then else None,
        )
