"""Offsets at a moment from an offsets topic that a real broker compacts; the judge is what the clients have sent."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import TopicPartition as ConfluentPartition
from pyspark.sql import SparkSession

from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.events import Events
from migrate_groups.migration.offsets_topic.copied import copy_offsets_log
from migrate_groups.migration.ports import LogClients
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from migrate_groups.spark.offsets_topic.offsets_at import KNOWN, UNKNOWN, offsets_at
from migrate_groups.spark.offsets_topic.offsets_log import copied_log
from tests.support.broker_world import BrokerWorld, broker_world, until, wait_for_coordinators

State = dict[tuple[str, int], int]
SETTINGS = {
    "log.roll.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.delete.retention.ms": "500",
    "log.segment.delete.delay.ms": "100",
}


class NowClock:
    """The clock of this machine, which is that of the broker too."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        raise AssertionError

    def sleep(self, seconds: float) -> None:
        raise AssertionError


@pytest.fixture
def compacting(java: Java, kafka_jars: KafkaJars) -> Iterator[Sandbox]:
    """A broker that compacts its offsets topic all the time."""
    with start_sandbox(kafka_jars, java=java, settings=SETTINGS) as sandbox:
        wait_for_coordinators(sandbox.bootstrap_servers)
        yield sandbox


def moment() -> datetime:
    """Return a time after every request that was answered until now, and before every later one."""
    begun = datetime.now(UTC) + timedelta(milliseconds=2)
    until(lambda: datetime.now(UTC) > begun + timedelta(milliseconds=2))
    return begun


def copied(sandbox: Sandbox, folder: Path) -> CopiedLog:
    config = ClientConfig(bootstrap_servers=sandbox.bootstrap_servers, timeout=20)
    with closing(KafkaPythonReader(config)) as reader, closing(KafkaOffsetsTopic(config)) as topic:
        return copy_offsets_log(LogClients(reader, topic), None, folder, NowClock(), Events())


def act(world: BrokerWorld, topic: str, groups: list[str], state: State, chance: random.Random) -> None:
    """Commit in one group, in a transaction that is committed or aborted, or not; or delete an offset."""
    group, number, offset = chance.choice(groups), chance.randrange(4), chance.randrange(100)
    partition, kind = TopicPartition(topic, number), chance.random()
    if kind < 0.03:
        producer, commits = world.transactional_producer(), chance.random() < 0.5
        producer.begin_transaction()
        metadata = world.consumer(group).consumer_group_metadata()
        producer.send_offsets_to_transaction([ConfluentPartition(*partition, offset)], metadata, 30)
        if commits:
            producer.commit_transaction(30)
            until(lambda: world.committed(group).get(partition) == offset)
            state[group, number] = offset
        else:
            producer.abort_transaction(30)
    elif kind < 0.15 and (group, number) in state:
        world.delete_offsets(group, partition)
        del state[group, number]
    else:
        world.commit(group, partition, offset)
        state[group, number] = offset


def judged(spark: SparkSession, log: CopiedLog, truth: list[tuple[datetime, State]]) -> Counter[str]:
    """Return how many offsets are known and unknown at the moments of ``truth``; fail if a known one is wrong."""
    counts = Counter[str]()
    for at, then in truth:
        for row in offsets_at(copied_log(spark, str(log.folder)), log.for_spark, at).collect():
            counts[row.evidence] += 1
            if row.evidence == KNOWN:
                assert row.offset == then.get((row.group, row.partition)), (at, row)
    return counts


@pytest.mark.parametrize(
    ("groups", "actions"), [(20, 200), pytest.param(1_000, 6_000, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_no_known_offset_is_wrong_when_a_broker_compacts(compacting, spark, tmp_path, groups, actions):
    """Every offset that is known at a moment is the one that the clients had committed then.

    This holds for a log that was copied several times, between compactions, and for one that was copied after them.
    Groups commit in transactions or not, and delete offsets.
    """
    chance, state = random.Random(20261127), State()
    truth: list[tuple[datetime, State]] = []
    with broker_world(compacting.bootstrap_servers) as world:
        topic = world.create_topic(4)
        for number in range(4):
            world.produce(topic, number, 100)
        names = [world.name(f"group-{number}") for number in range(groups)]
        for number in range(actions):
            act(world, topic, names, state, chance)
            if number % (actions // 2) == actions // 4:
                truth.append((moment(), dict(state)))
            if number % (actions // 3) == actions // 6:
                copied(compacting, tmp_path / "several")
        truth.append((moment(), dict(state)))

        def is_compacted() -> bool:
            for group in names:  # a record is needed to roll the active segment, which is never compacted
                world.commit(group, TopicPartition(topic, 0), 1)
            found = copied(compacting, tmp_path / str(chance.random()))
            return pq.read_table(found.folder).num_rows < 0.7 * found.offsets

        until(is_compacted, seconds=120)
    for name in ("several", "late"):
        counts = judged(spark, copied(compacting, tmp_path / name), truth)
        assert min(counts[KNOWN], counts[UNKNOWN]) > 0, (name, counts)
