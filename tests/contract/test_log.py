"""What every `GroupReader` reads from logs, and how groups are deleted, on the in-memory cluster and on a broker."""

from __future__ import annotations

import time

import pytest

from migrate_groups.migration.reading.requests import describe_group, read_all_committed
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.reading.time_lag import with_time_lag
from migrate_groups.model.answers import Answer
from migrate_groups.model.partitions import CommittedOffset, LogRange, OffsetAndTimestamp, TopicPartition
from migrate_groups.snapshots.times import milliseconds_of
from tests.support.clock import FakeClock
from tests.support.versions import NEEDS_TRANSACTIONS

T = 1_700_000_000_000


def test_lookup_by_timestamp_takes_one_timestamp_per_partition(world):
    """One call of `offsets_at` can look up a different timestamp in each partition."""
    topic = world.create_topic(2)
    for partition in (0, 1):
        for seconds in range(3):
            world.produce(topic, partition, 1, timestamp=T + 1000 * seconds)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    found = world.writer.offsets_at({first: T + 1, second: T + 1001})
    assert (found[first].offset, found[second].offset) == (1, 2)


def test_lookup_by_timestamp_finds_the_first_record_at_or_after_it(world):
    """The lookup by timestamp finds the first record at or after it, and returns None if there is no such record."""
    topic = world.create_topic(2)
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for number in range(3):
        world.produce(topic, 0, 2, timestamp=T + 1000 * number)
    second = OffsetAndTimestamp(offset=2, timestamp=T + 1000)
    for moment, found in ((T - 5, OffsetAndTimestamp(offset=0, timestamp=T)), (T + 1, second), (T + 1000, second)):
        assert world.writer.offsets_at({full: moment, empty: moment}) == {full: found, empty: None}
    assert world.writer.offsets_at({full: T + 2001}) == {full: None}


def test_lookup_by_timestamp_with_records_out_of_order(world):
    """If timestamps are out of order, `offsets_at` finds the lowest offset of a record at or after the timestamp."""
    topic = world.create_topic()
    for seconds in (5, 3, 9, 1, 7):
        world.produce(topic, 0, 1, timestamp=T + 1000 * seconds)
    found = {
        seconds: world.writer.offsets_at({TopicPartition(topic, 0): T + 1000 * seconds}) for seconds in (1, 3, 6, 8)
    }
    offsets = {seconds: answer[TopicPartition(topic, 0)].offset for seconds, answer in found.items()}
    assert offsets == {1: 0, 3: 0, 6: 2, 8: 2}


def test_lookup_by_timestamp_skips_deleted_records(world):
    """If the record of a timestamp was deleted, the lookup by timestamp finds the first record that is left."""
    topic = world.create_topic()
    for seconds in range(5):
        world.produce(topic, 0, 1, timestamp=T + 1000 * seconds)
    world.delete_records(topic, 0, 3)
    assert world.writer.offsets_at({TopicPartition(topic, 0): T}) == {
        TopicPartition(topic, 0): OffsetAndTimestamp(offset=3, timestamp=T + 3000)
    }


def test_lookup_by_timestamp_omits_unknown_partitions(world):
    """The lookup by timestamp omits a partition or topic that does not exist, and does not create the topic."""
    topic = world.create_topic()
    asked = [TopicPartition(topic, 0), TopicPartition(topic, 7), TopicPartition("no-such-topic", 0)]
    assert world.writer.offsets_at(dict.fromkeys(asked, T)) == {TopicPartition(topic, 0): None}
    assert world.writer.offsets_at({}) == {}


def test_a_negative_timestamp_is_refused(world):
    """A negative timestamp is refused before any request, because brokers read -1 and -2 as log end and log start."""
    with pytest.raises(ValueError, match="negative"):
        world.writer.offsets_at({TopicPartition("any", 0): -1})


@NEEDS_TRANSACTIONS
def test_aborted_records_are_found_by_timestamp_but_not_consumed(world):
    """The lookup by timestamp also finds aborted records.

    `first_records`, which reads like a read_committed consumer, returns neither aborted records nor control records.
    """
    topic = world.create_topic()
    partition = TopicPartition(topic, 0)
    world.transact(topic, 0, 2, timestamp=T)
    world.transact(topic, 0, 2, timestamp=T + 1000, commit=False)
    assert world.writer.log_ranges([partition]) == {partition: LogRange(start=0, end=6)}
    assert world.writer.offsets_at({partition: T})[partition].offset == 0
    spans = {range(6): 0, range(1, 6): 1, range(2, 6): None, range(3, 5): None, range(6, 6): None}
    for span, offset in spans.items():
        first = None if offset is None else OffsetAndTimestamp(offset=offset, timestamp=T)
        assert world.writer.first_records({partition: span}) == {partition: first}, span
    only_aborted = TopicPartition(world.create_topic(), 0)
    world.transact(only_aborted.topic, 0, 2, timestamp=T, commit=False)
    assert world.writer.offsets_at({only_aborted: T})[only_aborted].offset == 0


@NEEDS_TRANSACTIONS
def test_last_stable_offsets(world):
    """`last_stable_offsets` returns the first offset of an open transaction, or else the log end offset.

    Unknown partitions are left out.
    """
    topic = world.create_topic(2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    world.produce(topic, 0, 3)
    world.produce(topic, 1, 2)
    with world.transaction(topic, 0, 5):
        world.produce(topic, 0, 1)
        assert world.writer.log_ranges([first]) == {first: LogRange(start=0, end=9)}
        asked = [first, second, TopicPartition(topic, 7), TopicPartition("no-such-topic", 0)]
        assert world.writer.last_stable_offsets(asked) == {first: 3, second: 2}
    assert world.writer.last_stable_offsets([first]) == {first: 10}
    assert world.writer.last_stable_offsets([]) == {}


@NEEDS_TRANSACTIONS
def test_first_record_ignores_records_after_the_span(world):
    """`first_records` returns the first record in a span of offsets, or None; records after the span are ignored.

    Each partition has its own span and result.
    """
    topic = world.create_topic(2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    world.produce(topic, 0, 2)
    world.transact(topic, 1, 1)
    world.produce(topic, 1, 3, timestamp=T + 5)
    found = world.writer.first_records({first: range(1, 2), second: range(1, 2)})
    assert (found[first].offset, found[second]) == (1, None)
    found = world.writer.first_records({first: range(1, 2), second: range(1, 4)})
    assert found[second] == OffsetAndTimestamp(offset=2, timestamp=T + 5)
    assert world.writer.first_records({}) == {}


@NEEDS_TRANSACTIONS
def test_time_lag_beside_equal_timestamps_markers_and_aborted_records(world):
    """The time lag is right even if equal timestamps, control records or aborted records are near the offset."""
    topic, group = world.create_topic(5), world.name("group")
    for partition in (0, 1):
        for seconds in (0, 5, 5, 5, 9):
            world.produce(topic, partition, 3, timestamp=T + 1000 * seconds)
    world.transact(topic, 2, 2, timestamp=T)
    now = round(time.time() * 1000)  # markers have the broker's current time
    world.transact(topic, 3, 2, timestamp=now)
    world.transact(topic, 3, 2, timestamp=now, commit=False)
    world.produce(topic, 3, 1, timestamp=now + 60_000)
    world.produce(topic, 4, 3, timestamp=T + 7000)
    world.delete_records(topic, 4, 2)
    for partition, offset in enumerate([7, 15, 2, 2, 0]):
        world.commit(group, TopicPartition(topic, partition), offset)
    taken = with_time_lag(world.writer, take_snapshot(world.writer, [group], FakeClock()))
    moments = [row.oldest_unconsumed_at and milliseconds_of(row.oldest_unconsumed_at) for row in taken.snapshot.rows()]
    assert moments == [T + 5000, None, None, now + 60_000, T + 7000]
    assert taken.remark == ""


def test_a_group_without_members_is_deleted(world):
    """A group without members is deleted with all its offsets. A second deletion is refused."""
    topic, group, other = world.create_topic(), world.name("group"), world.name("group")
    for each in (group, other):
        world.writer.alter_offsets({each: {TopicPartition(topic, 0): CommittedOffset(offset=1)}})
    assert world.writer.delete_groups([group])[group].answer is Answer.WRITTEN
    assert not describe_group(world.writer, group).exists
    assert read_all_committed(world.writer, [group])[group] == {}
    assert {each.topic for each in read_all_committed(world.writer, [other])[other]} == {topic}
    again = world.writer.delete_groups([group])[group]
    assert (again.answer, again.error) == (Answer.REFUSED, "GROUP_ID_NOT_FOUND")


def test_a_group_with_a_member_is_not_deleted(world):
    """If a group has a member, the coordinator refuses to delete the group, and its offsets stay."""
    topic, group = world.create_topic(), world.name("group")
    world.commit(group, TopicPartition(topic, 0), 3)
    joined = world.join(group, topic)
    refused = world.writer.delete_groups([group])[group]
    assert (refused.answer, refused.error) == (Answer.REFUSED, "NON_EMPTY_GROUP")
    assert {each.topic for each in read_all_committed(world.writer, [group])[group]} == {topic}
    world.leave(joined)
