"""A fleet on real brokers: groups that stop at any time are handed over side by side, also by a run that was killed.

Living applications write each record that they process to a ledger.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaException

from migrate_groups.sandbox.broker import start_sandbox
from tests.support.broker_world import until
from tests.support.cli import Cli
from tests.support.closed_consumers import close_consumer
from tests.support.three_brokers import ThreeBrokers
from tests.support.versions import NEEDS_KIP_848, NEEDS_THREE_BROKERS

GROUPS, TOPICS, PARTITIONS, RECORDS = 12, 3, 4, 40


def of(cli: Cli, event: str) -> set[str]:
    """Return the source groups that had this event."""
    path = cli.folder / "events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {each["source_groups"][0] for each in events if each["event"] == event}


def write_spec(cli: Cli, base: str) -> None:
    (cli.folder / "fleet.toml").write_text(
        f'groups = ["{base}-*"]\nrename = ["*=new.*"]\n'
        '[options]\nsettle = "2s"\nguard = "2s"\non_uncommitted = "earliest"\n'
    )


class Applications:
    """The applications of a fleet: one consumer for each group, in turns classic and KIP-848, and their ledgers."""

    def __init__(self, world, cli) -> None:
        self.world, self.cli = world, cli
        self.topics = [world.name(f"topic-{number}") for number in range(TOPICS)]
        for topic in self.topics:
            world.create_topic(PARTITIONS, topic=topic)
            for partition in range(PARTITIONS):
                world.produce(topic, partition, RECORDS)
        self.base = world.name("fleet")
        self.groups = [f"{self.base}-{number:02}" for number in range(GROUPS)]
        self.ledger = {group: Counter[tuple[int, int]]() for group in self.groups}
        write_spec(cli, self.base)

    def consumer(self, group: str, number: int):
        protocol = {"group.protocol": "consumer"} if number % 2 else {}
        return self.world.consumer(group, self.topics[number % TOPICS], **{"enable.auto.commit": False, **protocol})

    def process(self, consumer, group: str, records: int) -> None:
        """Process so many records more, and commit each batch."""
        left = records
        while left > 0:
            messages = consumer.consume(min(left, 20), 5.0)
            for message in messages:
                assert not message.error(), message.error()
                self.ledger[group][message.partition(), message.offset()] += 1
            left -= len(messages)
            if messages:
                consumer.commit(asynchronous=False)

    def finish(self) -> None:
        """Let the new applications process what is left."""
        for number, group in enumerate(self.groups):
            left = PARTITIONS * RECORDS - self.ledger[group].total()
            consumer = self.consumer(f"new.{group}", number)
            self.process(consumer, group, left)
            assert consumer.poll(0.5) is None
            close_consumer(consumer)

    def check(self) -> None:
        """Check that each group's records were processed exactly once."""
        every = Counter((partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS))
        for group in self.groups:
            assert self.ledger[group] == every, group


@pytest.fixture
def applications(world, cli) -> Applications:
    return Applications(world, cli)


MIGRATE = ("migrate", "fleet.toml", "--yes", "--wait", "2m", "--events", "events.jsonl")


@NEEDS_KIP_848
def test_each_group_of_a_fleet_goes_on_exactly_where_it_stopped(applications):
    """Groups that stop one after the other are each handed over beside the others, before the last one has stopped.

    No record is skipped or processed twice.
    """
    with ExitStack() as stack:
        consumers = {group: applications.consumer(group, number) for number, group in enumerate(applications.groups)}
        for number, (group, consumer) in enumerate(consumers.items()):
            stack.callback(close_consumer, consumer)
            applications.process(consumer, group, 20 + 7 * number)
        running = stack.enter_context(applications.cli.start(*MIGRATE))
        until(lambda: len(of(applications.cli, "planned")) == GROUPS, seconds=60)
        last = applications.groups[-1]
        for group in applications.groups[:-1]:
            close_consumer(consumers[group])
        until(lambda: len(of(applications.cli, "START")) == GROUPS - 1, seconds=60)
        assert last not in of(applications.cli, "START")
        close_consumer(consumers[last])
        out, err = running.communicate(timeout=60)
        assert running.returncode == 0, err
    assert f"{GROUPS} groups: {GROUPS} moved" in out
    outages = [json.loads(path.read_text())["executions"][0]["outage"] for path in _receipts(applications)]
    assert [each for each in outages if not (each["ran_until"] and each["start_at"])] == []
    applications.finish()
    applications.check()


@NEEDS_KIP_848
@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_fleet_goes_on(applications, seed):
    """If the command is killed while it hands groups over, the same command again completes all of them.

    No record is skipped or processed twice.
    """
    for number, group in enumerate(applications.groups):
        consumer = applications.consumer(group, number)
        applications.process(consumer, group, 20 + 7 * number)
        close_consumer(consumer)
    chance = random.Random(seed)
    with applications.cli.start(*MIGRATE) as running:
        if seed % 2:
            until(lambda: _receipts(applications) or running.poll() is not None, seconds=60)
            assert running.poll() is None, running.communicate()
        else:
            most = chance.randrange(1, GROUPS)
            until(lambda: len(of(applications.cli, "START")) >= most, seconds=60)
        running.send_signal(signal.SIGKILL)
        running.wait(30)
    done = applications.cli(*MIGRATE)
    assert f"{GROUPS} groups: {GROUPS} moved" in done.stdout
    applications.finish()
    applications.check()


def _receipts(applications: Applications) -> list[Path]:
    return sorted(applications.cli.folder.glob("fleet.toml.run/*/receipt.json"))


class Application(threading.Thread):
    """The application of one group: the old one until `stop`, and the new one from `start_new` on.

    It is slow, and commits each batch. It notes each record that it processes although its offset was committed.

    committed: by partition, the offset of the commit that was answered last. It can go back, because librdkafka repeats
    commits after the loss of a coordinator, also after it has sent later ones. number: of each two, one is a KIP-848
    consumer; of each four, the old one stops without a last commit.
    """

    RECORDS = 300

    def __init__(self, brokers: ThreeBrokers, group: str, topic: str, number: int) -> None:
        super().__init__(daemon=True)
        self.brokers, self.group, self.topic = brokers, group, topic
        self.protocol, self.leaves = ("classic", "consumer")[number % 2], number % 4 == 0
        self.processed: Counter[tuple[int, int]] = Counter()
        self.committed: Counter[int] = Counter()
        self.repeated: list[tuple[int, int]] = []
        self.stopping, self.may_start, self.over = threading.Event(), threading.Event(), threading.Event()

    def run(self) -> None:
        self._consume(self.group, "earliest", self.stopping)
        self.may_start.wait()
        self._consume(f"new.{self.group}", "latest", self.over)

    def end(self) -> bool:
        for each in (self.stopping, self.may_start, self.over):
            each.set()
        return True

    @property
    def has_all(self) -> bool:
        return len(self.processed) == PARTITIONS * self.RECORDS

    def _consume(self, group: str, reset: str, until_set: threading.Event) -> None:
        settings = {"auto.offset.reset": reset, "on_commit": self._note_commit}
        consumer = self.brokers.consumer(group, protocol=self.protocol, **settings)
        consumer.subscribe([self.topic])
        while not until_set.wait(0.4):
            self._process(consumer)
            # Not awaited, because librdkafka may wait for ever for the answer of a broker that was killed.
            with suppress(KafkaException):
                consumer.commit(offsets=consumer.position(consumer.assignment()))
        if self.leaves:
            self._process(consumer)
        close_consumer(consumer)

    def _process(self, consumer: confluent_kafka.Consumer) -> None:
        for message in consumer.consume(20, 0.2):
            if message.error() is None:
                record = message.partition(), message.offset()
                if self.processed[record] and message.offset() < self.committed[message.partition()]:
                    self.repeated.append(record)
                self.processed[record] += 1

    def _note_commit(self, error: object, offsets: list[confluent_kafka.TopicPartition]) -> None:
        for each in offsets if error is None else ():
            if each.error is None:
                self.committed[each.partition] = each.offset


def _stop_and_start(every: dict[str, Application], chance: random.Random, cli: Cli, is_over: threading.Event) -> None:
    """Stop each old application at a random time within a minute, and start each new one after its START."""
    began, stop_at = time.monotonic(), {group: chance.uniform(5, 60) for group in every}
    while not is_over.wait(0.2):
        for group, application in every.items():
            if time.monotonic() - began > stop_at[group]:
                application.stopping.set()
        for group in of(cli, "START"):
            assert every[group].stopping.is_set(), group
            every[group].may_start.set()


def _kill_brokers(brokers: ThreeBrokers, chance: random.Random, is_over: threading.Event, killed: list[int]) -> None:
    """Kill one broker after the other, and start each again after some seconds. killed: gets their ids."""
    while not is_over.wait(chance.uniform(1, 6)):
        victim = chance.choice(brokers.sandbox.nodes)
        victim.kill()
        killed.append(victim.node_id)
        is_over.wait(chance.uniform(0, 6))
        brokers.heal()


def _kill_ten_times(cli: Cli, chance: random.Random) -> None:
    """Kill the command ten times. Then run it until it ends with exit code 0."""
    for _ in range(10):
        with cli.start(*MIGRATE) as command, suppress(subprocess.TimeoutExpired):
            try:
                command.communicate(timeout=chance.uniform(2, 14))
            finally:
                command.kill()
    for _ in range(20):
        with cli.start(*MIGRATE) as command:
            said = command.communicate(timeout=300)
        assert command.returncode in (0, 3, 4, 5), said
        if command.returncode == 0:
            return
    pytest.fail(f"the fleet is not over: {said}")


@pytest.mark.long
@pytest.mark.timeout(900)
@NEEDS_KIP_848
@NEEDS_THREE_BROKERS
def test_a_fleet_outlives_kills_of_the_tool_and_of_brokers(java, kafka_jars, tmp_path):
    """Ten kills of the command and several of brokers, while 40 applications stop at random, and new ones start.

    After each START the new application starts, also if the command is killed then. No record is skipped, and none is
    processed twice but those that an application had processed and not committed. The short form is the test above.
    """
    chance, is_over, is_moved, killed = random.Random(8), threading.Event(), threading.Event(), list[int]()
    with start_sandbox(kafka_jars, java=java, brokers=3, timeout=120) as sandbox:
        brokers, cli = ThreeBrokers(sandbox), Cli(tmp_path, sandbox.bootstrap_servers)
        topics = [brokers.create_topic("topic", PARTITIONS) for _ in range(TOPICS)]
        brokers.produce({each: [*map(str, range(Application.RECORDS))] for each in brokers.partitions(topics)})
        brokers.flush()
        base = brokers.name("fleet")
        write_spec(cli, base)
        groups = [f"{base}-{number:02}" for number in range(40)]
        every = {group: Application(brokers, group, topics[at % TOPICS], at) for at, group in enumerate(groups)}
        for each in every.values():
            each.start()
        until(lambda: all(each.committed for each in every.values()), seconds=120)
        around = [
            threading.Thread(target=_stop_and_start, args=[every, chance, cli, is_over], daemon=True),
            threading.Thread(target=_kill_brokers, args=[brokers, chance, is_moved, killed], daemon=True),
        ]
        for thread in around:
            thread.start()
        try:
            _kill_ten_times(cli, chance)
            is_moved.set()  # the new applications would take long to read the rest while brokers are killed
            until(lambda: all(each.has_all for each in every.values()), seconds=300)
        finally:
            is_over.set()
            is_moved.set()
            for thread in [*around, *(each for each in every.values() if each.end())]:
                thread.join(120)
        assert {group: each.repeated for group, each in every.items() if each.repeated} == {}
        assert [each.group for each in every.values() if each.is_alive()] == []
        assert len(killed) > 2
