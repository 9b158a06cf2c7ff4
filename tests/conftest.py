"""One real Kafka for the whole run. Without Java, or a network for the first run, tests fail: none is skipped."""

from __future__ import annotations

import os
import signal
import string
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaAdminClient
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars, fetch_jars, user_cache
from migrate_groups.sandbox.java import Java, find_java

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
    """A running Kafka that all tests share: each names its own groups and topics.

    The first question about a group makes Kafka create its offsets topic, and has no answer for a while: it is asked
    here, for groups that between them need every partition of that topic.
    """
    not_yet = (CoordinatorNotAvailableError, NotCoordinatorError, CoordinatorLoadInProgressError)
    patience = Retrying(retry=retry_if_exception_type(not_yet), stop=stop_after_delay(30), wait=wait_fixed(0.05))
    settings = {"offsets.retention.check.interval.ms": "1000"}  # a commit that expires is gone soon after
    with start_sandbox(kafka_jars, java=java, settings=settings) as running:
        with closing(KafkaAdminClient(bootstrap_servers=running.bootstrap_servers)) as admin:
            patience(admin.list_group_offsets, dict.fromkeys(string.ascii_lowercase))
        yield running


@pytest.fixture(scope="session")
def bootstrap_servers(sandbox: Sandbox) -> str:
    """The address of the shared Kafka."""
    return sandbox.bootstrap_servers
