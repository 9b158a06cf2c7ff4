"""Time lag on the in-memory cluster: the age of each partition's oldest unread record, and how it is found."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta
from typing import ClassVar

import pytest

from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.reading.time_lag import with_time_lag
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.snapshot import OLDEST_UNCONSUMED
from migrate_groups.snapshots.times import milliseconds_of, moment_of
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster

NOW = milliseconds_of(FakeClock().now())
FIRST = TopicPartition("t", 0)


class WithoutRead(InMemoryCluster):
    """A cluster that refuses to read records, so records can only be searched by timestamp."""

    def first_records(self, spans):
        raise NotAuthorized("not authorized: lacks Read on Topic 't'")


def lagging(offset, *times, kind=InMemoryCluster):
    """Return a cluster where group ``g`` has committed ``offset`` in a partition.

    times: the ages of the partition's records, in seconds.
    """
    made = kind()
    made.create_topic("t", 1)
    for seconds in times:
        made.produce("t", 0, 1, timestamp=NOW - 1000 * seconds)
    made.commit("g", FIRST, offset)
    return made


def time_lags(made, *groups):
    """Take a snapshot of the groups (default ``g``), and return the time lag of each row in seconds."""
    taken = with_time_lag(made, take_snapshot(made, groups or ["g"], FakeClock())).snapshot
    assert taken.table.column_names[-1] == OLDEST_UNCONSUMED.name
    return [None if row.time_lag is None else row.time_lag / timedelta(seconds=1) for row in taken.rows()]


@pytest.mark.parametrize(
    ("offset", "times", "expected"),
    [
        (0, (90, 60, 30), 90),
        (1, (90, 60, 30), 60),
        (2, (90, 60, 30), 30),
        (3, (90, 60, 30), None),
        (5, (90, 60, 30), None),
        (0, (), None),
        (2, (90, 60, 60, 60, 30), 60),
        (1, (60, 60), 60),
        (1, (60, -60), 0),
        (1, (-60, -90, -120), 0),
        (1, (10**9, 3), 3),
    ],
)
def test_time_lag_is_the_age_of_the_oldest_unread_record(offset, times, expected):
    """The time lag is the age of the record at the committed offset.

    It is 0 if the record's timestamp is in the future, and null at the log end.
    """
    assert time_lags(lagging(offset, *times)) == [expected]


@pytest.mark.parametrize("kind", [InMemoryCluster, WithoutRead])
def test_time_lag_in_random_logs_in_timestamp_order(kind):
    """In logs in timestamp order, the time lag at each offset is the age of the first record from there on.

    This holds for equal timestamps and deleted records, and without Read on the topic.
    """
    dice = random.Random(9)
    for _ in range(25):
        times = sorted(
            (dice.randrange(dice.choice([3, 100, 10**9])) for _ in range(dice.randrange(1, 12))), reverse=True
        )
        start = dice.randrange(len(times))
        made = lagging(0, *times, kind=kind)
        made.delete_records("t", 0, start)
        for offset in range(len(times)):
            made.commit("g", FIRST, offset)
            assert time_lags(made) == [times[max(start, offset)]], (times, start, offset)


def test_time_lag_is_a_lower_bound_in_logs_out_of_order():
    """Without Read, and with timestamps out of order, the time lag is at most the age of the record at the offset."""
    dice = random.Random(9)
    younger = 0
    for _ in range(20):
        times = [dice.randrange(10**6) for _ in range(8)]
        made = lagging(0, *times, kind=WithoutRead)
        for offset in range(8):
            made.commit("g", FIRST, offset)
            [lag] = time_lags(made)
            assert lag <= times[offset]
            younger += lag < times[offset]
    assert younger > 50, "a record that stands behind a later one has the later one's time"


@pytest.mark.parametrize("offset", range(8))
def test_records_one_millisecond_apart_are_distinguished(offset):
    """If records are one millisecond apart, the time lag is exactly that of the record at the committed offset.

    This holds without Read on the topic, too.
    """
    made = lagging(offset, kind=WithoutRead)
    for milliseconds in range(8, 0, -1):
        made.produce("t", 0, 1, timestamp=NOW - milliseconds)
    (found,) = with_time_lag(made, take_snapshot(made, ["g"], FakeClock())).snapshot.rows()
    assert found.oldest_unconsumed_at is not None
    assert milliseconds_of(found.oldest_unconsumed_at) == NOW - 8 + offset


def test_time_lag_is_null_without_a_committed_offset_or_a_leader():
    """A partition without a committed offset or a leader has no time lag; other partitions still have one."""
    made = lagging(0, 90)
    made.create_topic("u", 2)
    made.produce("u", 0, 1, timestamp=NOW - 5000)
    made.produce("u", 1, 1, timestamp=NOW - 6000)
    made.commit("g", TopicPartition("u", 1), 0)
    assert time_lags(made) == [90, None, 6]
    made.lose_leader("u", 1)
    assert time_lags(made) == [90, None, None]


def test_groups_of_one_topic_have_their_own_time_lag():
    """Two groups at different offsets of a partition have different time lags."""
    made = lagging(0, 90, 60, 30)
    made.commit("h", FIRST, 2)
    assert time_lags(made, "g", "h") == [90, 30]


def test_an_unread_transaction_marker_has_no_time_lag():
    """If only a control record is unread, the lag is 1, but the time lag is null."""
    made = lagging(0)
    made.transact("t", 0, 2, timestamp=NOW - 90_000)
    made.commit("g", FIRST, 2)
    assert next(take_snapshot(made, ["g"], FakeClock()).rows()).lag == 1
    assert time_lags(made) == [None]


def test_markers_and_aborted_records_are_skipped():
    """Control records and aborted records are skipped: the time lag is the age of the next committed record."""
    made = lagging(0)
    made.transact("t", 0, 2, timestamp=NOW - 900_000)
    made.transact("t", 0, 3, timestamp=NOW - 500_000, commit=False)
    made.transact("t", 0, 1, timestamp=NOW - 7_000)
    made.commit("g", FIRST, 2)
    assert time_lags(made) == [7]


def test_without_read_markers_count_and_a_remark_says_so():
    """Without Read on the topic, control records are taken for ordinary records, and a remark says so."""
    made = lagging(0, kind=WithoutRead)
    made.transact("t", 0, 2, timestamp=NOW - 90_000)
    made.commit("g", FIRST, 2)
    found = with_time_lag(made, take_snapshot(made, ["g"], FakeClock()))
    assert next(found.snapshot.rows()).oldest_unconsumed_at == moment_of(NOW - 90_000)
    assert (
        found.remark == "the time lag may count transaction markers as records: not authorized: lacks Read on Topic 't'"
    )


def test_all_partitions_are_searched_concurrently_without_reading_records():
    """All partitions are searched at the same time. No record is read if timestamps are close together."""

    class Counting(InMemoryCluster):
        looks: ClassVar[list[int]] = []
        read: ClassVar[list[int]] = []

        def offsets_at(self, timestamps):
            self.looks.append(len(timestamps))
            return super().offsets_at(timestamps)

        def first_records(self, spans):
            self.read.append(len(spans))
            return super().first_records(spans)

    made = Counting()
    made.create_topic("t", 300)
    for partition, second in itertools.product(range(300), range(6)):
        made.produce("t", partition, 12, timestamp=NOW - 60_000 + 1000 * second + partition)
        made.commit("g", TopicPartition("t", partition), 12 * (partition % 5))
    assert len(time_lags(made)) == 300
    assert len(made.looks) < 45
    assert made.looks[0] == 300
    assert made.read == [0]
