"""Find the age of each partition's oldest unread record (lag as time), with requests for offsets by timestamp.

If the timestamps in a log are out of order, the true time lag may be higher than the one found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.partitions import OffsetAndTimestamp, TopicPartition
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.times import milliseconds_of, moment_of

# The committed offset may be that of a transaction marker. If the log has fewer offsets than _FEW within the next
# second, all of them may be markers and aborted records. The timestamp found may then be wrong, so the log is read.
_FEW = 10
_SECOND = 1000
# Later than the timestamp of any record.
_FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLag:
    """A snapshot with the timestamp of the oldest unread record of each partition.

    remark: empty, or says that a timestamp may be that of a transaction marker.
    """

    snapshot: SnapshotTable
    remark: str


def with_time_lag(reader: GroupReader, snapshot: SnapshotTable) -> TimeLag:
    """Return the snapshot with the timestamp of the oldest unread record of each partition, and a remark for the user.

    The timestamp is None if no record is unread, or if no offset is committed. The remark is empty, or says that a
    timestamp may be that of a transaction marker. Raises `NotAuthorized` without Describe on a topic.
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
    """A binary search for the timestamp of the record at an offset. All fields but ``offset`` are timestamps.

    The first record at or after ``low`` has ``offset`` or a lower one. The first record at or after ``high`` has a
    higher offset, or does not exist. The next step looks up ``next``.
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
    """Return the timestamp of the first record in each span of offsets, and a remark for the user.

    A span without records is left out. The remark is empty, or says that a timestamp may be that of a transaction
    marker. now: the first timestamp to try. All timestamps are milliseconds since 1970.
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
        return found, f"the time lag may count transaction markers as records: {error}"
    found |= {partition: record.timestamp for partition, record in first.items() if record}
    return {partition: time for partition, time in found.items() if first.get(partition, True)}, ""


def _searches(reader: GroupReader, spans: Mapping[TopicPartition, range], now: int) -> Mapping[TopicPartition, _Search]:
    """Find the timestamp of the record at the first offset of each range; it is ``low`` of the returned search.

    A partition without records or without a leader is left out. now: the first timestamp to try, in milliseconds since
    1970.
    """
    searches = {}
    for partition, start in reader.offsets_at(dict.fromkeys(spans, 0)).items():
        offset = spans[partition].start
        if start is not None:
            # If retention has deleted the record at the committed offset, the oldest unread record is the log's first.
            searches[partition] = (
                _Search(offset=offset, low=start.timestamp, next=max(now, start.timestamp + 1))
                if start.offset < offset
                else _Search(offset=start.offset, low=start.timestamp, next=start.timestamp + 1)
            )
    # Kafka returns the first record at or after a timestamp (ListOffsets), but not the timestamp of a record. So a
    # binary search finds the latest timestamp for which Kafka returns the offset or a lower one. If timestamps are out
    # of order, that is the latest timestamp of any record up to the offset. Each step is one request to each leader for
    # all partitions.
    ongoing = dict(searches)
    while ongoing:
        answers = reader.offsets_at({partition: search.next for partition, search in ongoing.items()})
        for partition, answer in answers.items():
            ongoing[partition].learn(answer)
        ongoing = {partition: ongoing[partition] for partition in answers if not ongoing[partition].is_over}
    return {partition: search for partition, search in searches.items() if search.is_over}
