"""One topic is read by a consumer, a Connect sink, a consumer and Spark, one after the other, with one ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import confluent_kafka
import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.connect import connect_jars, connect_worker
from tests.support.spark_ledger import spark_kafka_jars

pytestmark = [pytest.mark.long, pytest.mark.needs_kafka("3.7.0", "connectors can't be created STOPPED (KIP-980)")]
NOW = ("--settle", "1s", "--guard", "1s")
MIRROR = os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR")
PARTITIONS = 3
BURST = 2300
SECONDS = 120


class Ledger:
    """A topic of numbered records, and a file with the number of each record that any reader has processed.

    repeated: how often each record may be processed again, because a reader was killed before it had committed it.
    """

    def __init__(self, cli, world) -> None:
        self.cli, self.world = cli, world
        self.topic = world.create_topic(PARTITIONS)
        self.file = cli.folder / "ledger.txt"
        self.file.touch()
        self.produced = 0
        self.repeated: Counter[int] = Counter()

    def produce(self) -> None:
        """Append a burst of records. Record n has the offset ``n // PARTITIONS`` in partition ``n % PARTITIONS``."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.world.bootstrap_servers})
        for number in range(self.produced, self.produced + BURST):
            producer.produce(self.topic, value=str(number), partition=number % PARTITIONS)
        assert producer.flush(SECONDS) == 0
        self.produced += BURST

    def lines(self) -> list[int]:
        return [int(line) for line in self.file.read_text().split()]

    def await_all(self, reader: subprocess.Popen[bytes] | None = None) -> None:
        """Wait until every record is processed. reader: the process that does so."""

        def done() -> bool:
            assert reader is None or reader.poll() is None
            return len(set(self.lines())) == self.produced

        until(done, seconds=SECONDS)

    def committed(self, group: str) -> dict[int, int]:
        return {partition.partition: offset for partition, offset in self.world.committed(group).items()}

    def note_killed(self, committed: Mapping[int, int]) -> None:
        """Note which records a killed reader had processed and not committed. There must be some."""
        again = {each for each in self.lines() if each // PARTITIONS >= committed[each % PARTITIONS]}
        assert again
        self.repeated.update(again)

    def hand_over(self, source: str, target: str) -> None:
        self.cli("apply", "--from-group", source, "--to-group", target, "--yes", *NOW)


@pytest.fixture
def ledger(cli, world):
    return Ledger(cli, world)


@pytest.fixture(scope="module")
def spark_jars(java) -> list[str]:
    """The jars of Spark's Kafka source. A test that needs them is skipped without them."""
    try:
        return spark_kafka_jars(java, MIRROR)
    except ClusterUnavailable as error:
        pytest.skip(str(error))


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module of tests in a process group of its own, which is killed at the end."""
    running = subprocess.Popen([sys.executable, "-m", *arguments], start_new_session=True)
    try:
        yield running
    finally:
        kill(running)


def kill(running: subprocess.Popen[bytes]) -> None:
    """Kill a process that has its own process group, with its children."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def stop(running: subprocess.Popen[bytes]) -> None:
    running.terminate()
    assert running.wait(SECONDS) == 0


def read_as_consumer(ledger: Ledger, group: str) -> None:
    """Read two bursts with a consumer that is killed after the first, and stopped after the second."""
    arguments = ("tests.support.ledger_consumer", ledger.world.bootstrap_servers, group, ledger.topic, str(ledger.file))
    with process(*arguments) as consumer:
        ledger.produce()
        ledger.await_all(consumer)
        kill(consumer)
    ledger.note_killed(ledger.committed(group))
    with process(*arguments) as consumer:
        ledger.produce()
        ledger.await_all(consumer)
        stop(consumer)


def read_as_sink(ledger: Ledger, worker, name: str) -> None:
    """Read with a sink that was created STOPPED: its worker is killed, and the sink is stopped."""
    worker.change(name, "resume", "RUNNING")
    ledger.produce()
    ledger.await_all()
    worker.change(name, "pause", "PAUSED")
    until(lambda: sum(ledger.committed(f"connect-{name}").values()) == ledger.produced)
    worker.change(name, "resume", "RUNNING")
    ledger.produce()
    ledger.await_all()
    worker.kill()
    ledger.note_killed(ledger.committed(f"connect-{name}"))
    worker.start_again()
    ledger.produce()
    ledger.await_all()
    worker.change(name, "stop", "STOPPED")


def spark(ledger: Ledger, jars: list[str], starting_offsets: str) -> tuple[str, str]:
    given = {
        "jars": jars,
        "bootstrap_servers": ledger.world.bootstrap_servers,
        "topic": ledger.topic,
        "starting_offsets": starting_offsets,
        "checkpoint": str(ledger.cli.folder / "checkpoint"),
        "ledger": str(ledger.file),
        "halt": str(ledger.cli.folder / "halt"),
    }
    return "tests.support.spark_ledger", json.dumps(given)


def read_as_spark(ledger: Ledger, jars: list[str], starting_offsets: str) -> None:
    """Read with a query that is killed after it has processed a batch, and stopped after it has started again.

    When it starts again it has a checkpoint, so it ignores ``startingOffsets``, which begin at the log start then.
    """
    with process(*spark(ledger, jars, starting_offsets)) as query:
        ledger.produce()
        ledger.await_all(query)
        checkpoint = ledger.cli.folder / "checkpoint"
        until(lambda: sum(spark_committed(checkpoint, ledger.topic).values()) == ledger.produced, seconds=SECONDS)
        (ledger.cli.folder / "halt").touch()
        ledger.produce()
        ledger.await_all(query)
        kill(query)
    ledger.note_killed(spark_committed(checkpoint, ledger.topic))
    (ledger.cli.folder / "halt").unlink()
    earliest = json.dumps({ledger.topic: {str(number): -2 for number in range(PARTITIONS)}})
    with process(*spark(ledger, jars, earliest)) as query:
        ledger.produce()
        ledger.await_all(query)
        stop(query)


def spark_committed(checkpoint, topic: str) -> dict[int, int]:
    """Return the offsets of the last batch that Spark's checkpoint has as committed, by partition."""
    last = max((int(file.name) for file in (checkpoint / "commits").glob("[0-9]*")), default=None)
    if last is None:
        return {}
    offsets = json.loads((checkpoint / "offsets" / str(last)).read_text().splitlines()[-1])
    return {int(number): offset for number, offset in offsets[topic].items()}


def test_consumer_sink_consumer_spark(ledger: Ledger, java, kafka_jars, spark_jars):
    """A topic is handed from a consumer to a Connect sink, to a consumer and to Spark. Each is killed and stopped once.

    No record is skipped, and just those are processed twice that a killed reader had processed and not committed.
    """
    name = ledger.world.name("files")
    first, third, start = (ledger.world.name(what) for what in ("first", "third", "spark"))
    ledger.world.commit_all(first, {TopicPartition(ledger.topic, number): 0 for number in range(PARTITIONS)})
    read_as_consumer(ledger, first)
    # The broker removes members of a killed worker after 6 s instead of 45 s.
    settings = {"offset.flush.interval.ms": "3600000", "consumer.session.timeout.ms": "6000"}
    jars = connect_jars(java, kafka_jars.version, MIRROR)
    with connect_worker(jars, ledger.world.bootstrap_servers, name, java=java, settings=settings) as worker:
        worker.create(name, [ledger.topic], ledger.file, state="STOPPED")
        ledger.hand_over(first, f"connect-{name}")
        read_as_sink(ledger, worker, name)
        ledger.cli("verify", f"connect-{name}", "--wait", "1m", "--settle", "0s")
        ledger.hand_over(f"connect-{name}", third)
    read_as_consumer(ledger, third)
    ledger.hand_over(third, start)
    ledger.cli("snapshot", start, "-o", "start.csv")
    ledger.cli("export", "start.csv", "--for", "spark", "-o", "start.json")
    read_as_spark(ledger, spark_jars, (ledger.cli.folder / "start.json").read_text())
    assert Counter(ledger.lines()) == Counter(range(ledger.produced)) + ledger.repeated


def test_spark_starts_at_earliest_and_latest(ledger: Ledger, spark_jars):
    """When a query starts, offset -2 is the log start offset, and -1 the log end offset of that moment."""
    ledger.produce()
    offsets = {ledger.topic: {"0": 700, "1": -2, "2": -1}}
    with process(*spark(ledger, spark_jars, json.dumps(offsets))) as query:
        of_partition = {number: range(number, ledger.produced, PARTITIONS) for number in range(PARTITIONS)}
        expected = {*of_partition[0][700:], *of_partition[1]}
        until(lambda: len(ledger.lines()) >= len(expected), seconds=SECONDS)
        assert {*ledger.lines()} == expected
        before = ledger.produced
        ledger.produce()
        until(lambda: len(ledger.lines()) >= len(expected) + BURST, seconds=SECONDS)
        stop(query)
    assert Counter(ledger.lines()) == Counter([*expected, *range(before, ledger.produced)])


@pytest.mark.parametrize(
    "changed", [lambda topic, offsets: offsets[topic].popitem(), lambda _, offsets: offsets.update(other={"0": 0})]
)
def test_spark_fails_if_partitions_differ(
    ledger: Ledger, spark_jars, changed: Callable[[str, dict[str, dict[str, int]]], object], capfd
):
    """A query whose ``startingOffsets`` lack a partition, or have another topic, fails when it starts."""
    offsets: dict[str, dict[str, int]] = {ledger.topic: {str(number): -2 for number in range(PARTITIONS)}}
    changed(ledger.topic, offsets)
    with process(*spark(ledger, spark_jars, json.dumps(offsets))) as query:
        assert query.wait(SECONDS) == 1
    assert "you must specify all TopicPartitions" in capfd.readouterr().err
