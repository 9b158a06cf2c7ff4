"""What every `RecordReader` reads, and which topics are compacted, on the in-memory cluster and on a real broker."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.records import NULL_KEY
from tests.support.versions import NEEDS_TRANSACTIONS

NOW = int(time.time() * 1000) - 60_000


def read(world, topic: str, span: range, *, committed_only: bool = True):
    partition = TopicPartition(topic, 0)
    return world.records.read({partition: span}, committed_only=committed_only)[partition]


def test_records_in_a_span(world):
    """A read of a span of offsets returns the records in order, with their timestamps.

    For an empty span or log it returns no records.
    """
    topic = world.create_topic()
    for number in range(5):
        world.produce(topic, 0, 1, timestamp=NOW + number)
    found = read(world, topic, range(1, 4))
    assert (list(found.offsets), list(found.timestamps)) == ([1, 2, 3], [NOW + 1, NOW + 2, NOW + 3])
    assert not found.log_append_time
    assert not read(world, topic, range(3, 3)).offsets
    assert not read(world, world.create_topic(), range(1)).offsets


def test_several_threads_read_at_once(world):
    """Threads that read at the same time, as the groups of a fleet do, each get the records that they asked for."""
    topic = world.create_topic()
    world.produce(topic, 0, 200)
    spans = [range(first, first + 20) for first in range(0, 180, 9)]
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda span: list(read(world, topic, span).offsets), spans)]
    assert found == [list(span) for span in spans]


def test_a_fingerprint_stands_for_the_record_and_not_for_its_offset(world):
    """Equal records at different offsets have equal fingerprints of 16 bytes.

    A record with another timestamp or value has another fingerprint.
    """
    topic = world.create_topic()
    for timestamp in (NOW, NOW, NOW + 1):
        world.produce(topic, 0, 2, timestamp=timestamp)
    first, other, again, _, later, _ = read(world, topic, range(6)).prints
    assert len(first) == 16
    assert first == again
    assert len({first, other, later}) == 3


def test_records_that_were_deleted_are_left_out(world):
    """After records are deleted, a read from the log start offset on returns the remaining ones."""
    topic = world.create_topic()
    world.produce(topic, 0, 5, timestamp=NOW)
    world.delete_records(topic, 0, 3)
    assert list(read(world, topic, range(3, 5)).offsets) == [3, 4]


@NEEDS_TRANSACTIONS
def test_transactions(world):
    """A read of records never returns control records.

    It returns aborted and not yet committed records only if ``committed_only`` is false.
    """
    topic = world.create_topic()
    world.produce(topic, 0, 1)
    world.transact(topic, 0, 2, commit=False)
    world.transact(topic, 0, 1)
    with world.transaction(topic, 0, 1):
        assert list(read(world, topic, range(7), committed_only=False).offsets) == [0, 1, 2, 4, 6]
        assert list(read(world, topic, range(7)).offsets) == [0, 4]
    assert list(read(world, topic, range(8)).offsets) == [0, 4, 6]


def test_keys_and_tombstones(world):
    """A read of records returns a hash of 8 bytes for each key, zeros for a null key, and whether the value is null."""
    topic = world.create_topic()
    world.produce(topic, 0, 2, timestamp=NOW)
    found = read(world, topic, range(2))
    assert (list(found.keys), [*found.tombstones]) == ([NULL_KEY] * 2, [0, 0])


def test_compacted_topics(world):
    """`maybe_compacted_topics` returns the topics whose cleanup.policy contains compact.

    A topic that does not exist is among them, because its policy can't be read.
    """
    kept, other = world.create_topic(**{"cleanup.policy": "compact"}), world.name("topic")
    assert world.writer.maybe_compacted_topics({kept, world.create_topic()}) == {kept}
    assert world.writer.maybe_compacted_topics({other}) == {other}
