"""Fixtures for tests on a real broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.metadata import MetadataRequest

from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.broker_world import BrokerWorld, broker_world, wait_for_coordinators
from tests.support.cli import Cli, CliHere
from tests.support.hand_over import HandOver
from tests.support.offering import Offering
from tests.support.proxy import LISTENER, put_before
from tests.support.secured import Secured, start_secured


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> range:
    """The step numbers for `Cli.killed_at`: with ``--long`` each from 1 to 40, otherwise every third."""
    return range(1, 41, 1 if request.config.getoption("--long") else 3)


@pytest.fixture(scope="session")
def target_servers(java: Java, kafka_jars: KafkaJars) -> Iterator[str]:
    """The bootstrap servers of a second cluster, to which mirrors copy, with a log cleaner that runs every 200 ms."""
    with start_sandbox(kafka_jars, java=java, settings={"log.cleaner.backoff.ms": "200"}) as running:
        wait_for_coordinators(running.bootstrap_servers)
        yield running.bootstrap_servers


@pytest.fixture
def elsewhere(target_servers: str, cli: Cli) -> Iterator[BrokerWorld]:
    """Kafka clients on the second cluster, which is the target of the commands of ``cli``."""
    cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"] = target_servers
    with broker_world(target_servers) as target:
        yield target


@pytest.fixture(scope="session")
def secured(java: Java, kafka_jars: KafkaJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with a listener for each security protocol."""
    with start_secured(kafka_jars, java, tmp_path_factory.mktemp("secured")) as running:
        wait_for_coordinators(running.sandbox.bootstrap_servers)
        yield running


@pytest.fixture(scope="session")
def secured_topic(secured: Secured) -> str:
    """The name of a topic with ten records on the broker of `secured`."""
    with broker_world(secured.sandbox.bootstrap_servers) as world:
        name = world.create_topic()
        world.produce(name, 0, 10)
        return name


@pytest.fixture
def hand_over(secured: Secured, secured_topic: str, here: CliHere) -> Iterator[HandOver]:
    """A source group on the broker of `secured`, and in the current folder a split spec for migrating this group."""
    with broker_world(secured.sandbox.bootstrap_servers) as world:
        yield HandOver(here, world, secured_topic)


@pytest.fixture(scope="session")
def guarded_sandbox(java: Java, kafka_jars: KafkaJars) -> Iterator[Sandbox]:
    """A broker with an authorizer. A resource without ACLs is open to all principals.

    The range of session timeouts is narrow, and offsets are kept for 600 minutes.
    """
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "group.min.session.timeout.ms": "2000",
        "group.max.session.timeout.ms": "10000",
        "offsets.retention.minutes": "600",
    }
    with start_sandbox(kafka_jars, java=java, settings=settings) as running:
        wait_for_coordinators(running.bootstrap_servers)
        yield running


@pytest.fixture
def sent(monkeypatch) -> Counter[str]:
    """How many requests kafka-python has sent, by the request's name; Metadata requests are left out."""
    counts: Counter[str] = Counter()
    send = KafkaConnectionManager.send

    def counting(manager, request, *arguments, **named):
        if not isinstance(request, MetadataRequest):
            counts[type(request).__name__.removesuffix("Request")] += 1
        return send(manager, request, *arguments, **named)

    monkeypatch.setattr(KafkaConnectionManager, "send", counting)
    return counts


@pytest.fixture
def most(monkeypatch) -> Counter[str]:
    """How many requests of kafka-python waited for an answer at the same time, at most, by the request's name."""
    waiting: Counter[str] = Counter()
    most: Counter[str] = Counter()
    send = KafkaConnectionManager.send

    def counting(manager, request, *arguments, **named):
        name = type(request).__name__.removesuffix("Request")
        waiting[name] += 1
        most[name] = max(most[name], waiting[name])
        return send(manager, request, *arguments, **named).add_both(lambda _: waiting.subtract([name]))

    monkeypatch.setattr(KafkaConnectionManager, "send", counting)
    return most


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CliHere:
    """A `CliHere`, which runs the tool's commands in an empty folder and in this process; a new process is slower."""
    monkeypatch.chdir(tmp_path)
    return CliHere(tmp_path)


@pytest.fixture(scope="module")
def offered(java: Java, kafka_jars: KafkaJars) -> Iterator[tuple[Offering, BrokerWorld]]:
    """A broker with proxies whose offers can be changed, and clients that are connected to the broker itself."""
    with start_sandbox(kafka_jars, java=java, listeners={LISTENER: "PLAINTEXT"}) as sandbox:
        proxies = put_before(sandbox, Offering)
        sandbox.node.await_answer()
        wait_for_coordinators(sandbox.bootstrap_servers)
        with broker_world(sandbox.bootstrap_servers) as world:
            yield proxies, world


@pytest.fixture
def offering(
    offered: tuple[Offering, BrokerWorld], here: CliHere, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Offering]:
    """Proxies whose offers a test sets, and which the commands of ``here`` use."""
    proxies, _ = offered
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_BOOTSTRAP_SERVER", proxies.bootstrap_servers)
    yield proxies
    proxies.without, proxies.versions, proxies.most_api_versions = frozenset(), {}, 4
    proxies.heal()
