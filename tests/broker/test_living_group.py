"""A topic is handed over from a live group and handed back, with each kind of client: every record is
processed once.
"""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import confluent_kafka
import pytest

from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.sandbox.broker import Sandbox
from tests.support.broker_world import BrokerWorld, until
from tests.support.cli import running
from tests.support.old_group import Old
from tests.support.planning import connected
from tests.support.versions import NEEDS_KIP_848, NEEDS_TOOL_NAMES, is_at_least

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
WAIT = ("--yes", "--wait", "60s")


class Member:
    """A confluent-kafka consumer that commits each record when it has processed it."""

    def __init__(self, world: BrokerWorld, group: str, topics: list[str], config: Mapping[str, object]) -> None:
        self.processed: list[str] = []
        self._world, self._consumer = world, world.consumer(group, *topics, **config)
        self.subscribe = self._consumer.subscribe

    def read(self) -> None:
        """Poll once: process and commit the next record if there is one, and take part in a rebalance."""
        message = self._consumer.poll(0.02)
        if message is not None and message.error() is None:
            self.processed.append(message.value().decode())
            until(lambda: self._committed(message))

    def _committed(self, message: confluent_kafka.Message) -> bool:
        """Commit, and return whether the coordinator accepted it. During a rebalance it may refuse."""
        try:
            self._consumer.commit(message, asynchronous=False)
        except confluent_kafka.KafkaException:
            return False
        return True

    def stop(self) -> None:
        """Leave the group."""
        self._world.leave(self._consumer)


class ConsoleConsumer:
    """Kafka's console consumer, which subscribes to a regular expression.

    It prints the records that it processes, and commits when it ends.
    """

    def __init__(self, sandbox: Sandbox, group: str, include: str, printed: Path, *options: str) -> None:
        self._printed = printed
        command = [*sandbox.tool_command, CONSOLE, "--bootstrap-server", sandbox.bootstrap_servers, "--group", group]
        command += ["--include", include, *options]
        with printed.open("wb") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)

    @property
    def processed(self) -> list[str]:
        return self._printed.read_text().splitlines()

    def read(self) -> None:
        """Do nothing, because the process reads by itself."""

    def subscribe(self, topics: list[str]) -> None:
        raise NotImplementedError("a console consumer keeps its pattern")

    def stop(self) -> None:
        """Leave the group."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def reader(bootstrap_servers: str) -> Iterator[KafkaPythonWriter]:
    """The tool's client, with which groups are described."""
    with connected(bootstrap_servers) as client:
        yield client


CONFIG: Mapping[str, Mapping[str, object]] = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "static": {"session.timeout.ms": 6000},
    "KIP-848": {"group.protocol": "consumer"},
    "KIP-848 by regex": {"group.protocol": "consumer"},
    "console": {},
    "KIP-848 console": {"group.protocol": "consumer"},
}
KINDS = [
    pytest.param("eager", marks=pytest.mark.long),
    pytest.param("cooperative", marks=pytest.mark.long),
    pytest.param("static", marks=pytest.mark.long),
    pytest.param("KIP-848", marks=NEEDS_KIP_848),
    pytest.param("KIP-848 by regex", marks=[NEEDS_KIP_848, pytest.mark.long]),
    pytest.param("console", marks=[NEEDS_TOOL_NAMES, pytest.mark.long]),
    pytest.param("KIP-848 console", marks=[NEEDS_KIP_848, pytest.mark.long]),
]


class Applications:
    """Consumers of one kind (a key of ``CONFIG``), and the records that they have to process."""

    def __init__(
        self, kind: str, old: Old, sandbox: Sandbox, version: str, reader: KafkaPythonWriter, folder: Path
    ) -> None:
        self.kind, self.old = kind, old
        self.produced = [
            f"{topic}-{number}-{each}"
            for topic in (old.pay, old.find)
            for number in (0, 1)
            for each in range(4 + number, 10)
        ]
        self._sandbox, self._version, self._reader, self._folder = sandbox, version, reader, folder
        self._all: list[Member | ConsoleConsumer] = []
        self._running: list[Member | ConsoleConsumer] = []

    def topics(self, *names: str) -> list[str]:
        """Return what a member subscribes to: the topics' names, or a regular expression that matches them."""
        return [f"^({'|'.join(names)})$"] if self.kind == "KIP-848 by regex" else [*names]

    def start(self, group: str, *names: str, name: str = "node-1") -> Member | ConsoleConsumer:
        """Start a member. If the kind contains ``console``, member ``node-1`` is Kafka's console consumer."""
        started: Member | ConsoleConsumer
        if "console" in self.kind and name == "node-1":
            printed = self._folder / f"{len(self._all)}.txt"
            option = "--command-property" if is_at_least(self._version, "4.2.0") else "--consumer-property"  # KIP-1147
            options = [word for key, value in CONFIG[self.kind].items() for word in (option, f"{key}={value}")]
            started = ConsoleConsumer(self._sandbox, group, "|".join(names), printed, *options)
        else:
            static = {"group.instance.id": name} if self.kind == "static" else {}
            started = Member(self.old.world, group, self.topics(*names), {**CONFIG[self.kind], **static})
        self._all.append(started)
        self._running.append(started)
        return started

    def stop(self, *members: Member | ConsoleConsumer) -> None:
        for each in members:
            self._running.remove(each)
            each.stop()

    def end(self) -> None:
        """Kill the console consumers that still run, which happens if the test has failed."""
        for each in self._running:
            if isinstance(each, ConsoleConsumer):
                each.kill()

    def produce(self, lap: str) -> None:
        """Append three records to each partition. lap: a prefix of the records' values."""
        for topic in (self.old.pay, self.old.find):
            for number in (0, 1):
                self.old.world.produce(topic, number, 3, prefix=lap)
                self.produced += [f"{lap}{topic}-{number}-{each}" for each in range(3)]

    def processed(self) -> Counter[str]:
        return Counter(value for each in self._all for value in each.processed)

    def until(self, condition: Callable[[], bool]) -> None:
        """Let all members read until a condition is true."""

        def done() -> bool:
            for each in self._running:
                each.read()
            return condition()

        until(done, seconds=60)

    def read_all(self, group: str, number: int, *names: str) -> None:
        """Let the members read until they have processed all records.

        The group must become Stable, with ``number`` members, and with exactly these topics assigned.
        """
        wanted = [(name, each) for name in sorted(names) for each in (0, 1)]

        def settled() -> bool:
            found = describe_group(self._reader, group)
            assigned = [tuple(each) for member in found.members for each in member.assignment]
            return found.state == "Stable" and len(found.members) == number and sorted(assigned) == wanted

        self.until(settled)
        self.until(lambda: self.processed().total() >= len(self.produced))


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_leaves_a_living_group_and_comes_back(cli, world, sandbox, kafka_jars, reader, kind, tmp_path, request):
    """If one topic is handed over while the group consumes another, and is then handed back, each record is processed
    once.
    """
    old = Old(cli, world, stay=True)
    apps = Applications(kind, old, sandbox, kafka_jars.version, reader, tmp_path)
    request.addfinalizer(apps.end)
    leaves, stays = apps.start(old.group, old.pay), apps.start(old.group, old.pay, old.find, name="node-2")
    apps.read_all(old.group, 2, old.pay, old.find)
    apps.produce("left to ")
    with running(cli, "migrate", "split.toml", *WAIT) as process:
        assert "test-app at 127.0.0.1" in "".join(process.stderr.readline() for _ in range(2))
        apps.stop(leaves)
        stays.subscribe(apps.topics(old.find))
        apps.until(lambda: process.poll() is not None)
        _, err = process.communicate()
    assert process.returncode == 0, err
    new = apps.start(old.pay_group, old.pay)
    apps.read_all(old.pay_group, 1, old.pay)
    apps.stop(new, stays)
    cli("hand-back", "split.toml.run", *WAIT)
    apps.produce("back in ")
    back = apps.start(old.group, old.pay), apps.start(old.group, old.pay, old.find, name="node-2")
    apps.read_all(old.group, 2, old.pay, old.find)
    apps.stop(*back)
    assert apps.processed() == Counter(apps.produced)
