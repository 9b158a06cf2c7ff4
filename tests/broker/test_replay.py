"""The end of a replay on a real broker: watch and delete."""

from __future__ import annotations

import os
import pty
import sys
from contextlib import closing

import pytest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.model.partitions import TopicPartition
from tests.support import forks
from tests.support.broker_world import until
from tests.support.cli import CliHere
from tests.support.raw_member import raw_member
from tests.support.versions import CONSUMER, NEEDS_TRANSACTIONS

T = 1_700_000_000_000
NOW = ("--settle", "0s", "--guard", "0s")


@pytest.fixture
def cli(bootstrap_servers, tmp_path) -> CliHere:
    """The command line in an empty folder, with the broker's address in the environment."""
    return CliHere(tmp_path, bootstrap_servers)


@pytest.fixture
def replay(cli, world) -> tuple[str, str]:
    """A topic with twenty records, a replay group at its start, and replay.csv: (topic, group)."""
    topic, group = world.create_topic(2), world.name("replay")
    for partition in (0, 1):
        world.produce(topic, partition, 10)
    cli("rewind", "--topic", topic, "--to-earliest", "-o", "replay.csv")
    cli("apply", "replay.csv", "--to-group", group, *NOW, "--yes")
    return topic, group


def test_watch_ends_when_the_noted_ends_are_reached(cli, world, replay):
    """Watch prints lines while the group consumes, and exits with 0 at the log ends of the rewind."""
    topic, group = replay
    watching = cli.start("watch", group, "--until", "replay.csv", "--timeout", "60s")
    first = watching.stderr.readline()
    assert first.endswith(f"{topic}: 20 of 20 left\n")
    assert "has no members: nobody consumes" in watching.stderr.readline()
    world.produce(topic, 0, 5)
    consumer = world.join(group, topic)
    world.consume(consumer, 25)
    consumer.commit(asynchronous=False)
    out, err = watching.communicate(timeout=60)
    assert watching.returncode == 0, err
    assert f"{topic}: 20 done" in err
    assert out.startswith(f"reached: 2 partitions of {group}, 20 records")


def test_watch_gives_up_when_its_time_is_over(cli, replay):
    """With --timeout watch exits with 3 and reports the records that are left."""
    _, group = replay
    refusal = cli.fails("watch", group, "--until", "replay.csv", "--timeout", "1s", code=3)
    assert "not finished after 1 s: 20 records left in 2 partitions" in refusal


@NEEDS_TRANSACTIONS
def test_a_consumer_that_commits_each_record_arrives_in_a_transactional_topic(cli, world):
    """A consumer of single records never commits behind the last marker; watch ends because no record is left."""
    topic, group = world.create_topic(), world.name("replay")
    world.transact(topic, 0, 3)
    world.transact(topic, 0, 2, commit=False)
    cli("rewind", "--topic", topic, "--to-earliest", "-o", "replay.csv")
    cli("apply", "replay.csv", "--to-group", group, *NOW, "--yes")
    consumer = world.join(group, topic, **{"isolation.level": "read_committed"})

    def handled() -> bool:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            consumer.commit(message=message, asynchronous=False)
        return world.committed(group)[TopicPartition(topic, 0)] == 3

    until(handled)
    out = cli("watch", group, "--until", "replay.csv", "--timeout", "30s").stdout
    assert out.startswith(f"reached: 1 partition of {group}")
    assert world.committed(group) == {TopicPartition(topic, 0): 3}


@NEEDS_TRANSACTIONS
def test_an_open_transaction_may_still_bring_records(world):
    """Records of an open transaction count as left, so that watch waits for its end."""
    topic = world.create_topic()
    producer = world.transactional_producer()
    producer.begin_transaction()
    producer.produce(topic, value="open", partition=0)
    assert producer.flush(30) == 0
    span = {TopicPartition(topic, 0): range(1)}
    config = ClientConfig(bootstrap_servers=world.bootstrap_servers, timeout=2)
    with closing(KafkaPythonReader(config)) as reader:
        assert reader.first_records(span) == {}
        producer.abort_transaction(30)
        assert reader.first_records(span) == dict.fromkeys(span)


def test_the_drain_of_an_old_group(cli, world):
    """With a snapshot watch waits for its log ends; without a file, for the current ones."""
    topic, group = world.create_topic(), world.name("old")
    world.produce(topic, 0, 10)
    world.commit(group, TopicPartition(topic, 0), 4)
    cli("snapshot", group, "-o", "before.csv")
    world.produce(topic, 0, 2)
    world.commit(group, TopicPartition(topic, 0), 10)
    assert "1 partition" in cli("watch", group, "--until", "before.csv").stdout
    assert "2 records left" in cli.fails("watch", group, "--timeout", "0s", code=3)
    world.commit(group, TopicPartition(topic, 0), 12)
    assert "reached" in cli("watch", group).stdout


def on_a_terminal(cli, *arguments: str, typed: str = "") -> tuple[int, str]:
    """Run a command on a terminal, type something, and return its exit code and output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "migrate_groups", *arguments]
    environment = {**cli.environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    with forks.Popen(
        command, cwd=cli.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # on Linux, when the other side is closed
                break
            shown += read
        os.close(ours)
    return process.returncode, shown.decode()


def test_watch_shows_a_bar_on_a_terminal(cli, world, replay):
    """On a terminal watch shows a bar with the records left, rate and time left."""
    topic, group = replay
    for partition in (0, 1):
        world.commit(group, TopicPartition(topic, partition), 10)
    code, shown = on_a_terminal(cli, "watch", group, "--until", "replay.csv")
    assert code == 0
    assert "━" in shown
    assert "0 left" in shown
    assert f"reached: 2 partitions of {group}" in shown


def test_delete_drops_a_replay_group(cli, world, replay):
    """A dry run shows the offsets; --yes deletes the group with its offsets; a second time is exit 3."""
    topic, group = replay
    dry = cli("delete", group, "--dry-run")
    assert dry.stdout.count(topic) == 2
    assert "2 committed offsets would be gone" in dry.stderr
    assert len(world.committed(group)) == 2
    assert cli("delete", group, "--yes").stdout.endswith(f"deleted: {group}\n")
    assert world.committed(group) == {}
    assert "does not exist" in cli.fails("delete", group, "--yes", code=3)


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_delete_is_refused_while_the_group_has_members(cli, world, replay, protocol):
    """A group with a member is not deleted, and the error names the member."""
    topic, group = replay
    world.join(group, topic, **{"group.protocol": protocol})
    for arguments in (["--yes"], ["--dry-run"]):
        assert "test-app at 127.0.0.1" in cli.fails("delete", group, *arguments, code=3)
    assert len(world.committed(group)) == 2


def test_delete_asks_first(cli, world, replay):
    """Without a terminal delete refuses with exit 2; the answer no is exit 3; the answer yes deletes."""
    _, group = replay
    assert "--yes" in cli.fails("delete", group, code=2)
    code, shown = on_a_terminal(cli, "delete", group, typed="n\n")
    assert code == 3
    assert f"Delete group {group}?" in shown
    assert "migrate-groups snapshot" in shown
    assert len(world.committed(group)) == 2
    code, _ = on_a_terminal(cli, "delete", group, typed="y\n")
    assert code == 0
    assert world.committed(group) == {}


def test_delete_leaves_other_kinds_of_groups_alone(cli, world):
    """A Connect group is refused, with or without members."""
    group = world.name("connect")
    world.commit(group, TopicPartition(world.create_topic(), 0), 0)  # Kafka deletes an Empty group without offsets
    with raw_member(world.bootstrap_servers, group, protocol_type="connect", protocol="sessioned", metadata=b""):
        assert "not a consumer group" in cli.fails("delete", group, "--yes", code=3)
    assert "not a consumer group" in cli.fails("delete", group, "--yes", code=3)


def test_a_missing_group_is_exit_3(cli, replay):
    """Watch and delete report a group that does not exist."""
    for command in (["watch", "nobody", "--until", "replay.csv"], ["watch", "nobody"], ["delete", "nobody", "--yes"]):
        assert "'nobody' does not exist" in cli.fails(*command, code=3)
