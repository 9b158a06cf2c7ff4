"""Offsets at a moment on three brokers that compact and expire committed offsets, and of which two die.

The judge is what the clients have sent.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.events import Events
from migrate_groups.migration.offsets_topic.copied import copy_offsets_log
from migrate_groups.migration.ports import LogClients
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, log_partition
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.node import Node
from migrate_groups.spark.offsets_topic.offsets_at import KNOWN, PENDING, UNKNOWN, offsets_at
from migrate_groups.spark.offsets_topic.offsets_log import copied_log
from tests.support.broker_world import BrokerWorld, broker_world, until, wait_for_coordinators
from tests.support.cli import CliHere
from tests.support.versions import NEEDS_THREE_BROKERS

State = dict[tuple[str, int], int]
"""The committed offset of each group and partition."""

LOG_PARTITIONS = 4  # of the offsets topic in the sandbox
PARTITIONS = 4
SETTINGS = {
    "log.roll.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.delete.retention.ms": "500",
    "log.segment.delete.delay.ms": "100",
    "offsets.retention.check.interval.ms": "200",
}
_SECONDS = 60


@pytest.fixture
def brokers(java: Java, kafka_jars: KafkaJars) -> Iterator[Sandbox]:
    """Three brokers that all the time compact their offsets topic, and look for offsets that have expired."""
    with start_sandbox(kafka_jars, java=java, brokers=3, settings=SETTINGS, timeout=120) as sandbox:
        wait_for_coordinators(sandbox.bootstrap_servers)
        yield sandbox


class NowClock:
    """The clock of this machine, which is that of the brokers too."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        raise AssertionError

    def sleep(self, seconds: float) -> None:
        raise AssertionError


class Applications:
    """Groups that commit offsets, and their own record of what is committed: ``state``.

    The first ten groups commit in transactions only.
    """

    def __init__(self, world: BrokerWorld, groups: int, chance: random.Random) -> None:
        self.names = [world.name("group") for _ in range(groups)]
        self.topic = world.create_topic(PARTITIONS)
        self.state = State()
        self._world, self._chance = world, chance
        self._admin = AdminClient({"bootstrap.servers": world.bootstrap_servers, "log_level": 0})
        self._producer = world.transactional_producer()
        self._open: State | None = None
        self._members = {
            group: world.consumer(group, log_level=0).consumer_group_metadata() for group in self.names[:10]
        }

    def commit(self, offsets: State) -> None:
        """Commit offsets, of all groups at once."""
        begun = []
        for group in {group for group, _ in offsets}:
            of_group = [
                ConfluentPartition(self.topic, number, offset)
                for (name, number), offset in offsets.items()
                if name == group
            ]
            begun += self._admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, of_group)], request_timeout=_SECONDS
            ).values()
        for each in begun:
            assert not [partition.error for partition in each.result().topic_partitions if partition.error]
        self.state |= offsets

    def act(self, size: int) -> None:
        """Let ``size`` groups commit some offsets, delete them, or let them expire, and some others end a transaction.

        Then the next transaction is begun, and stays open.
        """
        commits, deleted, expired = State(), [], []
        for group in self._chance.sample(self.names[10:], size):
            there = [key for key in self.state if key[0] == group]
            action = self._chance.random()
            if there and action < 0.15:
                deleted.append(self._chance.choice(there))
            elif there and action < 0.3:
                expired += self._chance.sample(there, self._chance.randint(1, len(there)))
            else:
                numbers = self._chance.sample(range(PARTITIONS), self._chance.randint(1, PARTITIONS))
                commits |= {(group, number): self._chance.randrange(100) for number in numbers}
        self.commit(commits)
        for group, number in deleted:
            self._world.delete_offsets(group, TopicPartition(self.topic, number))
        self._let_expire(expired)
        for key in deleted + expired:
            del self.state[key]
        self.end_transaction(commit=self._chance.random() < 0.5)
        self._begin_transaction()

    def _let_expire(self, keys: Sequence[tuple[str, int]]) -> None:
        for group in {group for group, _ in keys}:
            partitions = [TopicPartition(self.topic, number) for name, number in keys if name == group]
            self._world.commit_for_a_moment(group, partitions)

        def is_gone() -> bool:
            there = self._world.committed_in({group for group, _ in keys})
            return not any(TopicPartition(self.topic, number) in there[group] for group, number in keys)

        until(is_gone, seconds=_SECONDS)

    def _begin_transaction(self) -> None:
        self._open = State()
        self._producer.begin_transaction()
        for group in self._chance.sample([*self._members], 6):
            number, offset = self._chance.randrange(PARTITIONS), self._chance.randrange(100)
            commits = [ConfluentPartition(self.topic, number, offset)]
            self._producer.send_offsets_to_transaction(commits, self._members[group], _SECONDS)
            self._open[group, number] = offset

    def end_transaction(self, *, commit: bool) -> None:
        """Commit or abort the open transaction, if there is one."""
        offsets, self._open = self._open, None
        if offsets is None:
            return
        if not commit:
            self._producer.abort_transaction(_SECONDS)
            return
        self._producer.commit_transaction(_SECONDS)
        self.state |= offsets

        def is_seen() -> bool:
            there = self._world.committed_in({group for group, _ in offsets})
            return all(there[group].get(TopicPartition(self.topic, n)) == at for (group, n), at in offsets.items())

        until(is_seen, seconds=_SECONDS)


def moment() -> datetime:
    """Return a time after every request that was answered until now, and before every later one."""
    begun = datetime.now(UTC) + timedelta(milliseconds=2)
    until(lambda: datetime.now(UTC) > begun + timedelta(milliseconds=2))
    return begun


def copied(bootstrap_servers: str, folder: Path) -> CopiedLog:
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)
    with closing(KafkaPythonReader(config)) as reader, closing(KafkaOffsetsTopic(config)) as topic:
        clients = LogClients(reader, topic)
        return copy_offsets_log(clients, None, folder, NowClock(), Events(), followers=True)


def cleaned(node: Node) -> dict[int, int]:
    """Return up to which offset a broker has compacted each partition of the offsets topic."""
    lines = (node.folder / "data" / "cleaner-offset-checkpoint").read_text().splitlines()
    found = [line.split() for line in lines[2:]]
    return {int(number): int(offset) for topic, number, offset in found if topic == OFFSETS_TOPIC}


def judged(spark: SparkSession, log: CopiedLog, at: datetime | None, then: State) -> Counter[str]:
    """Return how many offsets are known, unknown and pending at a moment. Fail if a known one is not as in ``then``."""
    counts, seen = Counter[str](), set[tuple[str, int]]()
    for row in offsets_at(copied_log(spark, str(log.folder)), log.for_spark, at).collect():
        counts[row.evidence] += 1
        seen.add((row.group, row.partition))
        if row.evidence == KNOWN:
            assert row.offset == then.get((row.group, row.partition)), (at, row)
    assert at is not None or seen >= then.keys()
    return counts


@NEEDS_THREE_BROKERS
@pytest.mark.parametrize(
    ("groups", "turns"), [(60, 3), pytest.param(1_000, 9, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_no_known_offset_is_wrong_when_brokers_compact_and_die(brokers, spark, tmp_path, groups, turns):
    """Every offset that is known at a moment is the one that the clients had committed then.

    Groups commit in transactions or not, delete offsets, and let them expire; Kafka compacts the log all the time; then
    two of three brokers die. This holds for a log that was copied several times, and for one that was copied from the
    surviving broker only. There every last offset is known. The result says up to where each follower has the log, and
    a moment that it can't show is refused.
    """
    chance = random.Random(20261127)
    truth: list[tuple[datetime, State]] = []
    with broker_world(brokers.bootstrap_servers) as world:
        applications = Applications(world, groups, chance)
        applications.commit({(name, 0): 1 for name in applications.names})
        for turn in range(turns):
            applications.act(groups // 4)
            if turn % 3 == 1:
                if turn % 6 == 1:
                    truth.append((moment(), dict(applications.state)))
                applications.end_transaction(commit=True)  # otherwise the copy would wait for it
                copied(brokers.bootstrap_servers, tmp_path / "several")
        truth.append((moment(), dict(applications.state)))
        applications.end_transaction(commit=True)
        last = {log_partition(name, LOG_PARTITIONS): name for name in applications.names[10:]}
        assert len(last) == LOG_PARTITIONS
        ends = world.ends(OFFSETS_TOPIC, range(LOG_PARTITIONS))

        def is_compacted() -> bool:
            # A record rolls the active segment, which is never compacted. It also tells the followers of the last high
            # watermark.
            applications.commit({(name, 0): chance.randrange(100) for name in last.values()})
            return all(cleaned(node).get(number, 0) >= end for node in brokers.nodes for number, end in ends.items())

        until(is_compacted, seconds=120)
        final = dict(applications.state)
        applications.commit({(name, 0): final[name, 0] for name in last.values()})
        survivor = next(node for node in brokers.nodes if node.node_id != world.leader(OFFSETS_TOPIC, 0))
        for node in brokers.nodes:
            if node != survivor:
                node.kill()

    several, late = (copied(survivor.bootstrap_servers, tmp_path / name) for name in ("several", "late"))
    counts = {
        name: sum((judged(spark, log, at, then) for at, then in truth), Counter[str]())
        for name, log in (("several", several), ("late", late))
    }
    assert min(counts[name][each] for name in counts for each in (KNOWN, UNKNOWN, PENDING)) > 0, counts
    assert set(judged(spark, late, None, final)) == {KNOWN}

    here = CliHere(tmp_path, survivor.bootstrap_servers)
    followed = sorted({group for group, _ in final if log_partition(group, LOG_PARTITIONS) == 0})[:5]
    take = ("snapshot", *followed, "--log", "late", "--timeout", "20s")
    shown = here(*take, "-o", "last.csv")
    found = {(str(row.group), row.partition): row.offset for row in tables.load(tmp_path / "last.csv").rows()}
    assert found == {key: final.get(key) for key in found}
    assert f"does not answer: read from broker {survivor.node_id} up to its high watermark" in shown.stderr
    assert "offsets of __consumer_offsets away before they were copied; partitions of which" in shown.stderr
    at = next(iter(tables.load(tmp_path / "last.csv").rows())).taken_at
    assert at is not None
    refused = here(*take, "--at", at.isoformat(timespec="milliseconds"), "-o", "then.csv", code=7)
    assert "the follower that was read shows no record from after the moment" in refused.stderr
