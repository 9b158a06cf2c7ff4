"""Lag as time: when the oldest record that a group has still to read was stamped.

Kafka says which record is the first of a time or later (``ListOffsets``), not which time a record has. So the time is
searched for: the latest one whose first record is not behind the committed offset. Each step halves the span of every
partition at once, with one request to each leader, and reads no record.

In a log in the order of time that is the time of the record at the offset. Where times are out of order it is the
latest of any record up to there: the record itself, or one further on, may be older, so the lag is at least what is
shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.partitions import OffsetAndTimestamp, TopicPartition
from migrate_groups.snapshots.snapshot import Snapshot
from migrate_groups.snapshots.times import milliseconds_of, moment_of

# What lies at the offset may be a transaction's marker. Where the log has fewer offsets than this within a second from
# there on, they may all be markers and aborted records, so that it makes a difference, and is looked into.
_FEW = 10
_SECOND = 1000
# Later than any time that a record has.
_FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLag:
    """A snapshot with its oldest unconsumed records' times, and what they can't be sure of, else ""."""

    snapshot: Snapshot
    remark: str


def with_time_lag(reader: GroupReader, snapshot: Snapshot) -> TimeLag:
    """Return a snapshot with the time of the oldest record that is left to read, partition by partition.

    A transaction marker or an aborted record is none: where one may stand at the committed offset, the log is looked
    into, which takes Read on the topic; without that, they are taken for records, and ``remark`` says so. Raises as
    `GroupReader`.
    """
    rows = list(snapshot.rows())
    found: dict[tuple[str | None, TopicPartition], int] = {}
    remarks = set()
    for group in snapshot.groups():
        of_group = [row for row in rows if row.group == group and row.lag is not None and row.lag > 0]
        spans = {row.topic_partition: range(row.offset or 0, row.log_end_offset or 0) for row in of_group}
        now = max((milliseconds_of(row.taken_at) for row in of_group if row.taken_at), default=0)
        times, remark = _oldest(reader, spans, now)
        found |= {(group, partition): time for partition, time in times.items()}
        remarks.add(remark)
    moments = (found.get((row.group, row.topic_partition)) for row in rows)
    return TimeLag(
        snapshot=snapshot.with_oldest_unconsumed(None if moment is None else moment_of(moment) for moment in moments),
        remark="; ".join(sorted(remarks - {""})),
    )


@dataclass(slots=True)
class _Search:
    """The time of the record at an offset, between two times that are known by their first records.

    That of ``low`` is not behind the offset; that of ``high`` is, or there is none. ``next`` is asked next.
    """

    offset: int
    low: int
    next: int
    high: int = _FOREVER

    def learn(self, found: OffsetAndTimestamp | None) -> None:
        if found is None or found.offset > self.offset:
            self.high = self.next
        else:
            self.low = found.timestamp
        at_offset = found is not None and found.offset == self.offset
        self.next = self.low + 1 if at_offset else (self.low + self.high) // 2

    @property
    def is_over(self) -> bool:
        return self.high - self.low <= 1


def _oldest(
    reader: GroupReader, spans: Mapping[TopicPartition, range], now: int
) -> tuple[dict[TopicPartition, int], str]:
    """Return the time, in milliseconds since 1970, of the first record in each span of offsets that has one.

    And what they can't be sure of. ``now``, in milliseconds likewise, is where the search begins.
    """
    searches = _searches(reader, spans, now)
    found = {partition: search.low for partition, search in searches.items()}
    later = reader.offsets_at(
        {partition: min(search.low + _SECOND, _FOREVER) for partition, search in searches.items()}
    )
    doubtful = {}
    for partition, record in later.items():
        span = range(searches[partition].offset, spans[partition].stop)
        if min(record.offset if record else span.stop, span.stop) - span.start < _FEW:
            doubtful[partition] = span
    try:
        first = reader.first_records(doubtful)
    except NotAuthorized as error:
        return found, f"transaction markers may be taken for records: {error}"
    found |= {partition: record.timestamp for partition, record in first.items() if record}
    return {partition: time for partition, time in found.items() if first.get(partition, True)}, ""


def _searches(reader: GroupReader, spans: Mapping[TopicPartition, range], now: int) -> Mapping[TopicPartition, _Search]:
    """Return the searches that have come to their end, all side by side."""
    searches = {}
    for partition, start in reader.offsets_at(dict.fromkeys(spans, 0)).items():
        offset = spans[partition].start
        if start is not None:
            # What was to be read first may be gone already.
            searches[partition] = (
                _Search(offset=offset, low=start.timestamp, next=max(now, start.timestamp + 1))
                if start.offset < offset
                else _Search(offset=start.offset, low=start.timestamp, next=start.timestamp + 1)
            )
    ongoing = dict(searches)
    while ongoing:
        answers = reader.offsets_at({partition: search.next for partition, search in ongoing.items()})
        for partition, answer in answers.items():
            ongoing[partition].learn(answer)
        ongoing = {partition: ongoing[partition] for partition in answers if not ongoing[partition].is_over}
    return {partition: search for partition, search in searches.items() if search.is_over}
