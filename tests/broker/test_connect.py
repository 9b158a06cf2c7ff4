"""Offsets to a sink of Kafka Connect and back, with a real worker: committed offsets are its whole position."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.connect import Refused, Worker, connect_jars, connect_worker
from tests.support.versions import NEEDS_KIP_848

NOW = ("--settle", "0s", "--guard", "0s")
pytestmark = pytest.mark.needs_kafka("3.7.0", "connectors can't be created STOPPED (KIP-980)")


@pytest.fixture(scope="module")
def worker(java, kafka_jars, bootstrap_servers):
    """A running worker of Kafka Connect on the shared broker."""
    jars = connect_jars(java, kafka_jars.version, os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR"))
    with connect_worker(jars, bootstrap_servers, "test-workers", java=java, settings={}) as running:
        yield running


@pytest.fixture
def old(world):
    """The topic and the group of a stopped application, which has committed 4 and 7 of 10 records in each partition."""
    topic, group = world.create_topic(2), world.name("shop")
    for number, offset in ((0, 4), (1, 7)):
        world.produce(topic, number, 10)
        world.commit(group, TopicPartition(topic, number), offset)
    return topic, group


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def stopped(cli, group: str) -> bool:
    """Return whether a group has no members, as ``describe`` shows it."""
    return json.loads(cli("describe", group, "--format", "json").stdout)["groups"][0]["state"] == "Empty"


@pytest.mark.parametrize(
    ("override", "protocol"),
    [
        pytest.param(False, "classic", id="default group"),
        pytest.param(True, "classic", id="consumer.override.group.id"),
        pytest.param(False, "consumer", id="KIP-848", marks=NEEDS_KIP_848),
    ],
)
def test_offsets_go_to_a_sink_and_back(cli, world, worker: Worker, old, override, protocol):
    """A sink that was created STOPPED starts at the offsets that `apply` wrote to its group, and Connect shows them.

    A PAUSED sink is still a member: the check ``stopped`` refuses its group. A STOPPED one has left, so that its group
    hands over to a consumer group, also if the connector's ``consumer.override.group.id`` names the group.
    """
    topic, group = old
    name = world.name("files")
    sink = world.name("audit") if override else f"connect-{name}"
    file = cli.folder / "delivered.txt"
    config = {"consumer.override.group.id": sink} if override else {}
    config["consumer.override.group.protocol"] = protocol
    worker.create(name, [topic], file, state="STOPPED", **config)
    cli("apply", "--from-group", group, "--to-group", sink, "--yes", *NOW)
    assert worker.offsets(name) == {(topic, 0): 4, (topic, 1): 7}
    worker.change(name, "resume", "RUNNING")
    until(lambda: len(lines(file)) == 9)
    worker.change(name, "pause", "PAUSED")
    shown = cli("apply", "--from-group", sink, "--to-group", f"{sink}-new", "--dry-run", *NOW).stdout
    assert f"{sink} belongs to Connect sink {name} (PUT /connectors/{name}/stop)" in shown
    assert "stopped: " in cli.fails("apply", "--from-group", sink, "--to-group", f"{sink}-new", "--yes", *NOW, code=3)
    worker.change(name, "stop", "STOPPED")
    until(lambda: stopped(cli, sink))
    assert sorted(lines(file)) == sorted(f"{topic}-{p}-{n}" for p, first in ((0, 4), (1, 7)) for n in range(first, 10))
    cli("apply", "--from-group", sink, "--to-group", f"{sink}-new", "--yes", *NOW)
    assert world.committed(f"{sink}-new") == {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 10}


def test_connect_takes_exported_offsets(cli, world, worker: Worker, old):
    """Connect accepts the file of ``export --for connect`` while the sink is STOPPED, and refuses it while it runs.

    The offsets are then committed in the group of the sink.
    """
    topic, group = old
    name = world.name("files")
    cli("snapshot", group, "-o", "before.csv")
    cli("export", "before.csv", "--for", "connect", "-o", "offsets.json")
    body = (cli.folder / "offsets.json").read_bytes()
    worker.create(name, [topic], cli.folder / "delivered.txt")
    with pytest.raises(Refused, match=r"400 .*must be in the STOPPED state"):
        worker.request("PATCH", f"/{name}/offsets", body)
    worker.change(name, "stop", "STOPPED")
    worker.request("PATCH", f"/{name}/offsets", body)
    assert world.committed(f"connect-{name}") == {TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 7}
    assert worker.offsets(name) == {(topic, 0): 4, (topic, 1): 7}


def test_rollback_takes_the_offsets_of_a_sink_away(cli, world, worker: Worker, old):
    """`rollback` of a hand-over to a STOPPED sink deletes the offsets that Connect showed."""
    topic, group = old
    name = world.name("files")
    worker.create(name, [topic], cli.folder / "delivered.txt", state="STOPPED")
    cli("apply", "--from-group", group, "--to-group", f"connect-{name}", "--receipt", "receipt.json", "--yes", *NOW)
    assert worker.offsets(name) == {(topic, 0): 4, (topic, 1): 7}
    cli("rollback", "receipt.json", "--yes")
    assert worker.offsets(name) == {}
