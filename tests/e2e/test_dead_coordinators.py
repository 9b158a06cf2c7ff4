"""``snapshot --log`` of groups whose coordinators are dead: two of three brokers are killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.model.offsets_topic import log_partition
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.cli import CliHere
from tests.support.three_brokers import ThreeBrokers

_PARTITIONS = 4  # of the offsets topic in the sandbox


@pytest.fixture
def brokers(java: Java, kafka_jars: KafkaJars) -> Iterator[ThreeBrokers]:
    """A cluster of three brokers, for a test that kills two of them."""
    with start_sandbox(kafka_jars, java=java, brokers=3, timeout=120) as sandbox:
        yield ThreeBrokers(sandbox)


def test_the_last_offsets_are_read_from_a_follower(brokers, tmp_path, spark):
    """With two of three brokers dead, every group's last committed offsets are read from the surviving follower.

    The result says for each partition of the offsets topic that was read from a follower how current it can be. At a
    moment after the last record the offsets are not known.
    """
    topic = brokers.create_topic("topic", 2)
    names = [brokers.name(f"group-{number}") for number in range(200)]
    by_log = [[name for name in names if log_partition(name, _PARTITIONS) == number] for number in range(_PARTITIONS)]
    groups = [name for of_log in by_log for name in of_log[:3]]
    expected: dict[tuple[str, str, int], int] = {}
    for number, group in enumerate(groups):
        for turn in (1, 2):
            offsets = {TopicPartition(topic, each): 10 * turn + number + each for each in (0, 1)}
            brokers.commit(group, offsets)
        expected |= {(group, *partition): offset for partition, offset in offsets.items()}
    # A follower learns of the high watermark with the next record.
    for of_log in by_log:
        brokers.commit(of_log[3], {TopicPartition(topic, 0): 1})
    survivor, *others = brokers.sandbox.nodes
    for node in others:
        node.kill()

    here = CliHere(tmp_path, survivor.bootstrap_servers)
    take = ("snapshot", *groups, "--log", "log", "--timeout", "20s")
    shown = here(*take, "-o", "last.csv")
    found = {(row.group, row.topic, row.partition): row.offset for row in tables.load(tmp_path / "last.csv").rows()}
    assert found == expected
    assert "does not answer: read from broker 1 up to its high watermark" in shown.stderr
    at = next(iter(tables.load(tmp_path / "last.csv").rows())).taken_at
    assert at is not None
    refused = here(*take, "--at", at.isoformat(timespec="milliseconds"), "-o", "then.csv", code=7)
    assert "the follower that was read shows no record from after the moment" in refused.stderr
