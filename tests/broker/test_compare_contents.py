"""``compare`` with records and mirrors of every kind: the target offset that it finds is exact, or it says that it is
not.

The offset on the target that corresponds to the committed offset is called the translated offset.
"""

from __future__ import annotations

import json
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Message

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.jars import fetch_mirror_jars, user_cache
from migrate_groups.sandbox.mirror_maker import mirror_maker
from tests.support.broker_world import BrokerWorld, until
from tests.support.cli import Cli
from tests.support.mirror import produce, records, unchanged, write

# In milliseconds since 1970: old records would be deleted by the retention.
NOW = int(time.time() * 1000) - 600_000
CODECS = ("none", "gzip", "lz4", "snappy", "zstd")
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "1"}
KINDS: tuple[dict[str, Any], ...] = (
    {"key": b"k", "value": None},
    {"key": None, "value": b""},
    {"key": b"", "value": b"v"},
    {"key": b"", "value": None, "headers": [("trace", b"1"), ("trace", None), ("empty", b"")]},
    {"key": b"k", "value": b"long " * 200, "headers": [("trace", b"2"), ("other", b"3")]},
    {"key": None, "value": b"long " * 200},
)


class Copied:
    """Topics on both clusters, and groups that have each committed one offset in all partitions of these topics."""

    def __init__(self, source: BrokerWorld, target: BrokerWorld, cli: Cli) -> None:
        self.source, self.target, self._cli = source, target, cli
        self._groups: list[str] = []
        self._logs: dict[tuple[str, str, int], list[tuple[int, object]]] = {}

    def create(self, partitions: int = 1, on_target: int = 1) -> str:
        """Create a topic on both clusters, and return its name. on_target: its number of partitions on the target
        cluster.
        """
        return self.target.create_topic(on_target, topic=self.source.create_topic(partitions))

    def of_source(self, topic: str, partition: int = 0) -> list[Message]:
        """Return the records of a partition on the source cluster."""
        return records(self.source.bootstrap_servers, topic, partition)

    def of_target(self, topic: str, partition: int = 0) -> list[Message]:
        """Return the records of a partition on the target cluster."""
        return records(self.target.bootstrap_servers, topic, partition)

    def commit(self, partitions: Sequence[TopicPartition], *offsets: int) -> None:
        """For each of these offsets, create a group on the source cluster that commits it in all partitions."""
        for offset in offsets:
            group = self.source.name("group")
            self._groups.append(group)
            self.source.commit_all(group, dict.fromkeys(partitions, offset))

    def compare(self, code: int) -> list[dict[str, Any]]:
        """Run ``compare --format json``, and return what it prints about each group and partition."""
        done = self._cli("compare", *self._groups, "--format", "json", code=code)
        return list(json.loads(done.stdout)["partitions"])

    def read_again(self, found: dict[str, Any], compacted: Sequence[dict[str, Any]] = ()) -> int:
        """Return how many records a consumer at the found target offset reads again; fail if it would skip a record.

        compacted: the records of the source partition before compaction.
        """
        here = self._read(self.source, found["topic"], found["partition"])
        there = self._read(self.target, found["target_topic"], found["partition"])
        left = {content for offset, content in here if offset >= found["committed_offset"]}
        read = Counter(content for offset, content in there if offset >= found["translated_offset"])
        skipped = (left & {content for _, content in there}) - read.keys()
        assert not skipped, found
        gone = {(each["timestamp"], each["key"], each["value"], ()) for each in compacted[found["committed_offset"] :]}
        return sum(number for content, number in read.items() if content not in left | gone)

    def _read(self, world: BrokerWorld, topic: str, partition: int) -> list[tuple[int, object]]:
        """Return the offset and the content of each record."""
        at = world.bootstrap_servers, topic, partition
        if at not in self._logs:
            self._logs[at] = [
                (each.offset(), (each.timestamp()[1], each.key(), each.value(), tuple(each.headers() or ())))
                for each in records(*at)
            ]
        return self._logs[at]


@pytest.fixture
def copied(world, elsewhere, cli) -> Copied:
    """The shared cluster as source, and the second cluster as target."""
    return Copied(world, elsewhere, cli)


def test_records_of_every_kind_have_their_translated_offset(copied):
    """``compare`` finds the exact target offset for records with headers, null or empty keys and values, in any
    compression.
    """
    topic = copied.create()
    made = [{"partition": 0, "timestamp": NOW + number // 6} | KINDS[number % 6] for number in range(60)]
    for number, codec in enumerate(CODECS):
        part = made[12 * number : 12 * number + 12]
        produce(copied.source.bootstrap_servers, topic, part, codec)
    here = copied.of_source(topic)
    assert [(each.key(), each.value()) for each in here[:6]] == [(each["key"], each["value"]) for each in KINDS]
    for (first, last), codec in zip(((0, 20), (20, 45), (30, 60)), CODECS[:1:-1], strict=True):  # begun again once
        write(copied.target.bootstrap_servers, topic, here[first:last], codec=codec)
    copied.commit([TopicPartition(topic, 0)], 0, 7, 20, 30, 31, 44, 45, 59, 60)
    for found in copied.compare(code=6):
        assert found["status"] == "exact", found
        assert copied.read_again(found) == 0


@pytest.mark.long
def test_logs_that_are_compacted_differently(copied):
    """If only the source's log, only the target's, or both are compacted, a consumer at the found target offset skips
    nothing.

    ``compare`` says how many records it reads again at most: none if only the target's log is compacted.
    """
    servers = copied.source.bootstrap_servers, copied.target.bootstrap_servers
    topics = [copied.source.name("topic") for _ in range(3)]
    made = [
        {"partition": 0, "timestamp": NOW + 1000 * number, "key": b"%d" % (number % 7 if number % 3 else number),
         "value": b"%d" % number if number % 11 else None}
        for number in range(40)
    ]  # fmt: skip
    delivered = {topics[0]: made, topics[1]: made, topics[2]: made[:25] + made[10:]}
    for topic, on_source, on_target in zip(topics, (COMPACTED, {}, COMPACTED), ({}, COMPACTED, COMPACTED), strict=True):
        copied.source.create_topic(1, topic=topic, **on_source)
        copied.target.create_topic(1, topic=topic, **on_target)
        for server, sent in zip(servers, (made, delivered[topic]), strict=True):
            produce(server, topic, sent, batch=1)  # because a segment ends with a batch
    for server, compacted in ((servers[0], topics[::2]), (servers[1], topics[1:])):
        until(lambda: all(len(records(server, each, 0)) < 30 for each in compacted), seconds=60)  # noqa: B023
    copied.commit([TopicPartition(topic, 0) for topic in topics], 0, 1, 9, 12, 13, 20, 26, 33, 39, 40)
    told: Counter[tuple[str, str]] = Counter()
    for found in copied.compare(code=6):
        told[found["topic"], found["status"]] += 1
        if found["translated_offset"] is not None:
            assert copied.read_again(found, made) <= found["reread_at_most"], found
    assert {status for _, status in told} == {"exact", "bounded"}, told
    assert told[topics[1], "exact"] == 10


def test_a_dishonest_mirror_of_a_topic_that_was_not_compacted(copied):
    """In a topic with ``cleanup.policy=compact`` from which nothing was removed, ``compare`` finds each difference.

    The mirrors drop every third record, lose records after the committed offset, write a header into each record, or
    let another producer write to the copy. An honest mirror of the same records is exact, by the order of the records.
    """
    topics = {each: copied.source.name(each) for each in ("honest", "drops", "loses", "stamps", "foreign")}
    made = [
        {"partition": 0, "timestamp": NOW + number, "key": b"%d" % (number % 7), "value": b"%d" % number}
        for number in range(60)
    ]
    stamped = [each | {"headers": [("mirrored", b"yes")]} for each in made]
    others = [
        {"partition": 0, "timestamp": NOW + 60 + number, "key": b"%d" % (number % 7), "value": b"foreign"}
        for number in range(100)
    ]
    delivered = {
        "honest": made,
        "drops": [each for number, each in enumerate(made) if number % 3 < 2],
        "loses": made[:40] + made[45:],
        "stamps": stamped,
        "foreign": made + others,
    }
    for kind, topic in topics.items():
        for world, sent in ((copied.source, made), (copied.target, delivered[kind])):
            world.create_topic(1, topic=topic, **{"cleanup.policy": "compact"})
            produce(world.bootstrap_servers, topic, sent)
    copied.commit([TopicPartition(topic, 0) for topic in topics.values()], 30)
    found = {each["topic"]: each for each in copied.compare(code=6)}
    assert {kind: found[topic]["status"] for kind, topic in topics.items()} == {
        "honest": "exact",
        **dict.fromkeys(("drops", "loses", "stamps", "foreign"), "different"),
    }
    honest = found[topics["honest"]]
    assert (honest["translated_offset"], honest["method"], honest["compared"]) == (30, "walk", 60)


def shifted(each: Message) -> dict[str, Any]:
    """Return a record's copy for a mirror that writes each partition's records to the next of three partitions."""
    return unchanged(each) | {"partition": (each.partition() + 1) % 3}


def spread(each: Message) -> dict[str, Any]:
    """Return a record's copy for a mirror that chooses one of four target partitions by the record's key."""
    return unchanged(each) | {"partition": zlib.crc32(each.key()) % 4}


def in_turns(each: Message) -> dict[str, Any]:
    """Return a record's copy for a mirror that writes 40 records to one of two partitions, and the next 40 to the
    other.

    Producers without keys do so.
    """
    return unchanged(each) | {"partition": each.offset() // 40 % 2}


def altered(each: Message) -> dict[str, Any] | None:
    """Return a record's altered copy. Each partition's copies are altered in another way; the last partition lacks some
    copies.
    """
    if each.partition() == 4 and each.offset() % 10 == 9:
        return None
    changes = [
        {"headers": [("mirrored", b"yes")]},
        {"value": each.value() + b"!"},
        {"key": None},
        {"timestamp": each.timestamp()[1] + 1},
        {},
    ]
    return unchanged(each) | changes[each.partition()]


@pytest.mark.parametrize(
    ("partitions", "on_target", "change"),
    [
        pytest.param(3, 3, shifted, id="next partition"),
        pytest.param(2, 4, spread, id="more partitions", marks=pytest.mark.long),
        pytest.param(3, 2, in_turns, id="fewer partitions", marks=pytest.mark.long),
        pytest.param(2, 2, in_turns, id="in turns", marks=pytest.mark.long),
        pytest.param(5, 5, altered, id="altered"),
    ],
)
def test_a_mirror_that_repartitions_or_alters_records_is_never_exact(copied, partitions, on_target, change):
    """If a mirror changes the partition or the content of records, the status in ``compare`` is never ``exact``."""
    topic = copied.create(partitions, on_target)
    made = [
        {"partition": partition, "timestamp": NOW + number // 4, "key": b"%d" % (number % 17),
         "value": b"%d of %d" % (number, partition)}
        for number in range(240)
        for partition in range(partitions)
    ]  # fmt: skip
    produce(copied.source.bootstrap_servers, topic, made)
    here = [each for partition in range(partitions) for each in copied.of_source(topic, partition)]
    write(copied.target.bootstrap_servers, topic, sorted(here, key=Message.timestamp), change)
    copied.commit([TopicPartition(topic, partition) for partition in range(partitions)], 0, 1, 120, 200, 239, 240)
    told = Counter((found["partition"], found["status"]) for found in copied.compare(code=7))
    assert {status for _, status in told} <= {"different", "not mirrored yet", "undetermined", "gone"}, told
    assert all(told[number, "different"] for number in range(min(partitions, on_target))), told
    if change is altered:
        assert [told[number, "different"] for number in range(4)] == [6] * 4, told


@pytest.fixture
def mirrormaker(copied, java, kafka_jars) -> Iterator[tuple[Copied, str]]:
    """Yield the two clusters, with a MirrorMaker 2 between them, and the prefix of the topics that it copies.

    In copies of topics whose names end with ``-dropped`` it drops a header.
    """
    name = copied.source.name("kinds")
    settings = {
        "source->target.topics": f"{name}-.*",
        "source->target.transforms": "drop",
        "source->target.transforms.drop.type": "org.apache.kafka.connect.transforms.DropHeaders",
        "source->target.transforms.drop.headers": "trace",
        "source->target.transforms.drop.predicate": "dropped",
        "source->target.predicates": "dropped",
        "source->target.predicates.dropped.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "source->target.predicates.dropped.pattern": ".*-dropped",
    }
    jars = fetch_mirror_jars(java=java, cache=user_cache(), version=kafka_jars.version)
    servers = copied.source.bootstrap_servers, copied.target.bootstrap_servers
    with mirror_maker(jars, *servers, java=java, settings=settings):
        yield copied, name


@pytest.mark.long
@pytest.mark.timeout(300)
def test_mirrormaker_and_records_of_every_kind(mirrormaker):
    """``compare`` finds the exact offset in MirrorMaker's copy of a topic, also in partitions that were added.

    If MirrorMaker drops headers, the status is ``different``. If the log is compacted, it is ``exact`` or ``bounded``.
    """
    mirror, name = mirrormaker
    servers = mirror.source.bootstrap_servers
    plain, dropped = (mirror.source.create_topic(topic=f"{name}-{each}") for each in ("plain", "dropped"))
    compacted = mirror.source.create_topic(topic=f"{name}-compacted", **COMPACTED)
    made = [{"timestamp": NOW + 100 * (number // 6)} | KINDS[number % 6] for number in range(240)]
    keyed = [
        {"timestamp": NOW + 1000 * number, "key": b"%d" % (number % 7), "value": b"%d" % number} for number in range(60)
    ]
    for number, codec in enumerate(CODECS):
        for topic in (plain, dropped):
            part = [each | {"partition": 0} for each in made[48 * number : 48 * number + 48]]
            produce(servers, topic, part, codec)
    produce(servers, compacted, (each | {"partition": 0} for each in keyed), batch=1)
    mirror.source.add_partitions(plain, 3)
    mirror.source.produce(plain, 2, 50)
    last = {TopicPartition(plain, 0): 240, TopicPartition(plain, 2): 50, TopicPartition(dropped, 0): 240}
    until(lambda: all(_has(mirror, at, number) for at, number in last.items()), seconds=120)
    until(lambda: [each.value() for each in mirror.of_target(f"source.{compacted}")][-1:] == [b"59"], seconds=120)
    mirror.commit([TopicPartition(topic, 0) for topic in (plain, dropped, compacted)], 0, 5, 60)
    mirror.commit([*last], 50)
    told: Counter[tuple[str, str]] = Counter()
    for found in mirror.compare(code=6):
        told[found["topic"], found["status"]] += 1
        if found["status"] == "exact":
            assert mirror.read_again(found, keyed if found["topic"] == compacted else ()) == 0, found
    assert told[dropped, "different"] == 4
    assert told[plain, "exact"] == 5
    assert {status for topic, status in told if topic == compacted} <= {"exact", "bounded"}, told


def _has(mirror: Copied, at: TopicPartition, number: int) -> bool:
    name = f"source.{at.topic}"
    if name not in mirror.target.topics():
        return False
    try:
        return len(mirror.of_target(name, at.partition)) >= number
    except AssertionError:  # the partition is not there yet
        return False
