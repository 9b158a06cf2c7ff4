"""Fixtures of all tests: one real Kafka broker for the whole test run.

The tests fail without Java. They fail without a network on the first run, which downloads Kafka.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest

from migrate_groups.kafka import child
from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars, fetch_jars, user_cache
from migrate_groups.sandbox.java import Java, find_java
from migrate_groups.sandbox.versions import DEFAULT_VERSION
from tests.support import forks
from tests.support.broker_world import broker_world, wait_for_coordinators
from tests.support.cli import Cli
from tests.support.kafka_tool import KafkaTool
from tests.support.versions import is_at_least

pytest_plugins = ["tests.support.parts", "tests.support.shared_spark"]

# A shell that starts this run in the background makes it ignore Ctrl-C, and nohup makes it ignore SIGHUP. Every process
# that a test starts inherits this.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)

# Examples have no deadline, because their duration depends on the machine and its load.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--kafka``: the version of Kafka that this run's brokers have, such as 3.9.1."""
    parser.addoption("--kafka", default=DEFAULT_VERSION, metavar="VERSION", help="the version of Kafka to test with")


def pytest_configure() -> None:
    """Make the tool fork its child processes for confluent-kafka: tests start hundreds, and a fork is faster.

    Garbage is not collected before the tests: what the imports make is not garbage, and is searched in vain each time.
    """
    gc.disable()
    vars(child)["subprocess"] = SimpleNamespace(Popen=forks.Popen, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    forks.end_server()


def pytest_report_header(config: pytest.Config) -> str:
    return f"Kafka {config.getoption('--kafka')}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests marked ``needs_kafka(version, why)`` if this run's Kafka is older than ``version``."""
    version = config.getoption("--kafka")
    for item in items:
        for mark in item.iter_markers("needs_kafka"):
            least, why = mark.args
            if not is_at_least(version, least):
                item.add_marker(pytest.mark.skip(reason=f"Kafka {version} is older than {least}: {why}"))


@pytest.fixture(scope="session")
def java() -> Java:
    """The Java that Kafka and Spark run on."""
    return find_java(os.environ)


@pytest.fixture(scope="session")
def kafka_jars(java: Java, pytestconfig: pytest.Config) -> KafkaJars:
    """The jars of the Kafka version under test, downloaded to the user's cache."""
    mirror = os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR")
    return fetch_jars(java=java, cache=user_cache(), version=pytestconfig.getoption("--kafka"), mirror=mirror)


@pytest.fixture(scope="session")
def sandbox(java: Java, kafka_jars: KafkaJars) -> Iterator[Sandbox]:
    """A running Kafka broker that all tests share. Each test uses its own groups and topics.

    So that tests are fast, the broker's log cleaner looks for work every 200 ms instead of 15 s, and members of KIP-848
    groups learn of a rebalance within 500 ms instead of 5 s. Records of any age stay, because tests write some of 2023.
    """
    settings = {
        "log.retention.ms": "-1",
        "log.cleaner.backoff.ms": "200",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
    }
    with start_sandbox(kafka_jars, java=java, settings=settings) as running:
        wait_for_coordinators(running.bootstrap_servers)
        yield running


@pytest.fixture(scope="session")
def kafka_tool(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaTool]:
    """Kafka's own ``kafka-consumer-groups`` tool, connected to the shared broker."""
    with KafkaTool(sandbox, tmp_path_factory.mktemp("kafka_tool")) as tool:
        yield tool


@pytest.fixture(scope="session")
def bootstrap_servers(sandbox: Sandbox) -> str:
    """The bootstrap servers of the Kafka broker that all tests share."""
    return sandbox.bootstrap_servers


@pytest.fixture
def world(bootstrap_servers: str):
    """Kafka clients with which tests make and inspect topics and groups on the shared broker."""
    with broker_world(bootstrap_servers) as others:
        yield others


@pytest.fixture
def cli(bootstrap_servers: str, tmp_path: Path) -> Cli:
    """A `Cli`, which runs the tool's commands in an empty folder, with the broker's address in the environment."""
    return Cli(tmp_path, bootstrap_servers)
