"""One real Kafka for the whole run. Without Java, or a network for the first run, tests fail: none is skipped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars, fetch_jars, user_cache
from migrate_groups.sandbox.java import Java, find_java
from tests.support.broker_world import wait_for_coordinators

# A shell that starts this run in the background has Ctrl-C ignored, in every process that a test starts as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def java() -> Java:
    """The Java that Kafka and Spark run on."""
    return find_java(os.environ)


@pytest.fixture(scope="session")
def kafka_jars(java: Java) -> KafkaJars:
    """Kafka's jars, in the user's cache."""
    return fetch_jars(java=java, cache=user_cache(), mirror=os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR"))


@pytest.fixture(scope="session")
def sandbox(java: Java, kafka_jars: KafkaJars) -> Iterator[Sandbox]:
    """A running Kafka that all tests share: each names its own groups and topics."""
    with start_sandbox(kafka_jars, java=java) as running:
        wait_for_coordinators(running.bootstrap_servers)
        yield running


@pytest.fixture(scope="session")
def bootstrap_servers(sandbox: Sandbox) -> str:
    """The address of the shared Kafka."""
    return sandbox.bootstrap_servers
