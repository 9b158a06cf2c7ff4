"""The sandbox is a complete Kafka for tests. However it or its parent ends, no process and no file remains."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox import node as node_module
from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.broker_world import BrokerWorld, broker_world, until, wait_for_coordinators
from tests.support.cli import Cli, Process
from tests.support.processes import gone
from tests.support.versions import NEEDS_LATE_CLASSES, NEEDS_TOOL_NAMES

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PARENT = """
import json, os, signal, sys
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
java = find_java(os.environ)
with start_sandbox(fetch_jars(java=java, cache=user_cache()), java=java) as sandbox:
    if "fork" not in sys.argv or os.fork():
        print(json.dumps([sandbox.bootstrap_servers, sandbox.node.pid, sandbox.node.kept.pid]), flush=True)
    signal.pause()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the sandboxes of a test create their temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def parent(request: pytest.FixtureRequest, kafka_jars: KafkaJars, temporary: Path, tmp_path: Path):
    """A process, in a new process group, that has started a sandbox.

    Yields the process, the sandbox's address, and the process ids of Kafka and of its parent process, the supervisor.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, getattr(request, "param", "")],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "stderr").open("w"),
        text=True,
        process_group=0,
    )
    with process:
        try:
            assert process.stdout
            address, java, supervisor = json.loads(process.stdout.readline())
            yield process, address, java, supervisor
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def listens(address: str) -> bool:
    """Return whether a server accepts connections at an address."""
    host, port = address.split(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def test_sandbox_listens_on_localhost_only(sandbox: Sandbox):
    """The sandbox is a cluster of one broker that advertises 127.0.0.1 only; `Sandbox.cluster_id` is its cluster id."""
    assert sandbox.bootstrap_servers.startswith("127.0.0.1:")
    cluster = AdminClient({"bootstrap.servers": sandbox.bootstrap_servers}).list_topics(timeout=10)
    assert cluster.cluster_id == sandbox.cluster_id
    assert [str(broker) for broker in cluster.brokers.values()] == [f"{sandbox.bootstrap_servers}/1"]


@NEEDS_TOOL_NAMES
def test_run_tool_runs_a_command_of_kafka(sandbox: Sandbox, world: BrokerWorld):
    """``Sandbox.run_tool`` runs one of Kafka's commands on the sandbox; stdout contains only the command's output."""
    topic, group = world.create_topic(), world.name("group")
    world.commit(group, TopicPartition(topic, 0), 0)
    listed = sandbox.run_tool(CONSUMER_GROUPS, "--list", "--state", "Empty")
    assert listed.returncode == 0
    assert listed.stdout.startswith("GROUP")
    assert group in listed.stdout
    assert listed.stderr == ""


@NEEDS_TOOL_NAMES
def test_two_sandboxes_are_two_clusters(
    sandbox: Sandbox, java: Java, kafka_jars: KafkaJars, temporary: Path, monkeypatch: pytest.MonkeyPatch
):
    """Two sandboxes at the same time are two clusters with their own settings. If a port is taken, another port is
    used.
    """
    taken = int(sandbox.bootstrap_servers.split(":")[1])
    choose: Callable[[int], list[int]] = node_module._free_ports
    choices = iter([[taken, *choose(1)], choose(2)])
    monkeypatch.setattr(node_module, "_free_ports", lambda count: next(choices))
    with start_sandbox(kafka_jars, java=java, settings={"num.partitions": "7"}) as second:
        assert second.cluster_id != sandbox.cluster_id
        made = second.run_tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", "seven")
        assert made.returncode == 0, made.stderr
        topics = AdminClient({"bootstrap.servers": second.bootstrap_servers}).list_topics(timeout=10).topics
        assert len(topics["seven"].partitions) == 7
        assert second.node.folder.parent == temporary
    assert next(choices, "all used") == "all used"
    assert gone(second.node.pid)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        (("num.partitions", "-1"), r"^.*Invalid value -1 for configuration num.partitions.*$"),
        pytest.param(
            ("authorizer.class.name", "org.example.Missing"),
            r"^Kafka did not start .*org.example.Missing.*$",
            marks=NEEDS_LATE_CLASSES,
        ),
    ],
    ids=["refused", "fails while it starts"],
)
def test_kafka_that_does_not_start_is_a_one_line_error(
    java: Java, kafka_jars: KafkaJars, temporary: Path, setting, reason
):
    """If Kafka refuses a setting or fails while it starts, a one-line error has Kafka's reason, and no file remains.

    The error follows at once, not only at the timeout.
    """
    with (
        pytest.raises(ClusterUnavailable, match=reason),
        start_sandbox(kafka_jars, java=java, settings=dict([setting]), timeout=600),
    ):
        pass
    assert list(temporary.iterdir()) == []


def test_waiting_for_the_sandbox_raises_if_kafka_ends(java: Java, kafka_jars: KafkaJars, temporary: Path):
    """If Kafka is killed, `Sandbox.wait` raises an error with Kafka's exit code, and no file remains."""
    with start_sandbox(kafka_jars, java=java) as sandbox:
        os.kill(sandbox.node.pid, signal.SIGKILL)
        with pytest.raises(ClusterUnavailable, match=r"^Kafka has ended \(exit code -9.*$"):
            sandbox.wait()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("parent", [pytest.param("", marks=pytest.mark.long), "fork"], indirect=True)
def test_sandbox_ends_with_its_parent(parent, temporary: Path):
    """If the process that started a sandbox is killed, no process and no folder of the sandbox remains.

    This holds even if the process had forked.
    """
    process, address, java, supervisor = parent
    assert listens(address)
    process.kill()
    until(lambda: gone(java) and gone(supervisor))
    assert list(temporary.iterdir()) == []
    assert not listens(address)


def test_ctrl_c_ends_the_sandbox(parent, temporary: Path):
    """Ctrl-C, which all processes of a terminal receive, ends the sandbox and the process that started it."""
    process, _, java, supervisor = parent
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == -signal.SIGINT
    assert gone(java)
    assert gone(supervisor)
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a process with the one that started it")
def test_sandbox_ends_with_its_keeper(java: Java, kafka_jars: KafkaJars, temporary: Path):
    """If Kafka's parent process (the supervisor) is killed, Kafka ends, too.

    Its folder is deleted when the sandbox is closed.
    """
    with start_sandbox(kafka_jars, java=java) as sandbox:
        os.kill(sandbox.node.kept.pid, signal.SIGKILL)
        until(lambda: gone(sandbox.node.pid))
        with pytest.raises(ClusterUnavailable, match="Kafka has ended"):
            sandbox.wait()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_command_prints_the_address_and_ends_on_a_signal(
    kafka_jars: KafkaJars, tmp_path: Path, temporary: Path, how: int
):
    """`migrate-groups sandbox` prints only its address on stdout; SIGINT and SIGTERM end it with exit code 0."""
    with Cli(tmp_path).start("sandbox") as process:
        try:
            assert process.stdout
            address = process.stdout.readline().strip()
            assert listens(address)
            process.send_signal(how)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out == ""
    assert "Ctrl-C" in err
    assert f"--bootstrap-server {address}" in err
    assert list(temporary.iterdir()) == []
    assert not listens(address)


def test_enter_starts_a_killed_broker_again(kafka_jars: KafkaJars, tmp_path: Path, temporary: Path):
    """If Kafka is killed, ``sandbox`` runs on; Enter starts Kafka again, at the same address, with its data.

    If stdin is at its end, the command ends with exit code 5.
    """
    with Cli(tmp_path).start("sandbox", "--format", "json") as process:
        try:
            assert process.stdout
            shown = "".join(iter(process.stdout.readline, "}\n"))
            [broker] = json.loads(f"{shown}}}")["brokers"]
            with broker_world(broker["bootstrap_servers"]) as world:
                topic = world.create_topic()
            os.kill(broker["pid"], signal.SIGKILL)
            until_said(process, "broker 1 has ended: press Enter here to start it again")
            process.stdin.write("\n")
            process.stdin.flush()
            again = until_said(process, "broker 1 runs again, process ")
            with broker_world(broker["bootstrap_servers"]) as world:
                assert topic in world.topics()
            os.kill(int(again.split()[-1]), signal.SIGKILL)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 5, err
    assert "error: Kafka has ended: run the command again\n" in err
    assert list(temporary.iterdir()) == []


def until_said(process: Process, text: str) -> str:
    """Return the first line on stderr that contains a text."""
    return next(line for line in process.stderr if text in line)


@pytest.mark.long
def test_a_sandbox_with_a_mirror(tmp_path: Path, temporary: Path):
    """``sandbox --mirror`` runs two clusters, prints both addresses, and copies topics to the second cluster.

    After Ctrl-C no file is left.
    """
    cli = Cli(tmp_path)
    with cli.start("sandbox", "--mirror") as process:
        try:
            assert process.stdout
            source, target = (process.stdout.readline().strip() for _ in range(2))
            for each in (source, target):
                wait_for_coordinators(each)
            with broker_world(source) as world, broker_world(target) as there:
                topic, group = world.create_topic(), world.name("group")
                world.produce(topic, 0, 10)
                world.commit(group, TopicPartition(topic, 0), 4)
                copy = f"source.{topic}"
                until(lambda: copy in there.topics() and there.ends(copy, [0]) == {0: 10}, seconds=120)
            assert "workers of MirrorMaker 2\n" in cli("list", "--bootstrap-server", target).stdout
            addresses = ("--bootstrap-server", source, "--to-bootstrap-server", target)
            shown = cli("compare", group, *addresses, code=6).stdout
            assert shown.splitlines()[1].split()[4:6] == [f"source.{topic}", "4"]
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert list(temporary.iterdir()) == []


def test_a_mirror_has_one_broker_on_each_side(tmp_path: Path):
    """``sandbox --mirror`` with ``--brokers`` is refused with exit code 2."""
    line = Cli(tmp_path).fails("sandbox", "--mirror", "--brokers", "3", code=2)
    assert line == "error: --mirror runs two clusters of one broker each: leave out --brokers"
