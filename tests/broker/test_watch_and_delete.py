"""`watch` and `delete-group` on a real broker, as at the end of a replay."""

from __future__ import annotations

from contextlib import closing

import pytest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import CliHere
from tests.support.raw_member import raw_member
from tests.support.terminal import on_a_terminal
from tests.support.versions import CONSUMER, NEEDS_TRANSACTIONS

T = 1_700_000_000_000
NOW = ("--settle", "0s", "--guard", "0s")


@pytest.fixture
def cli(bootstrap_servers, tmp_path) -> CliHere:
    """The command line in an empty folder, with the broker's address in the environment."""
    return CliHere(tmp_path, bootstrap_servers)


@pytest.fixture
def replay(cli, world) -> tuple[str, str]:
    """A topic with twenty records, and a group with committed offsets at the log start, written from replay.csv.

    Returns (topic, group).
    """
    topic, group = world.create_topic(2), world.name("replay")
    for partition in (0, 1):
        world.produce(topic, partition, 10)
    cli("rewind", "--topic", topic, "--to-earliest", "-o", "replay.csv")
    cli("apply", "replay.csv", "--to-group", group, *NOW, "--yes")
    return topic, group


def test_watch_ends_at_the_log_end_offsets_of_the_rewind(cli, world, replay):
    """`watch` prints progress, and ends with exit code 0 once the group has reached the log end offsets saved by
    `rewind`.
    """
    topic, group = replay
    watching = cli.start("watch", group, "--until", "replay.csv", "--wait", "60s")
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


def test_watch_is_exit_3_at_the_end_of_the_wait(cli, replay):
    """If the group has not read all records at the end of ``--wait``, `watch` ends with exit code 3.

    The error states the number of unread records.
    """
    _, group = replay
    refusal = cli.fails("watch", group, "--until", "replay.csv", "--wait", "1s", code=3)
    assert "not finished after 1 s: 20 records left in 2 partitions" in refusal


@NEEDS_TRANSACTIONS
def test_watch_ends_before_the_last_transaction_marker(cli, world):
    """`watch` ends if no record is unread, even if the committed offset is below the last transaction marker."""
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
    out = cli("watch", group, "--until", "replay.csv", "--wait", "30s").stdout
    assert out.startswith(f"reached: 1 partition of {group}")
    assert world.committed(group) == {TopicPartition(topic, 0): 3}


@NEEDS_TRANSACTIONS
def test_watch_waits_for_the_end_of_a_transaction(world):
    """While a transaction is open, the reader does not know the first unread record, so `watch` must wait.

    Once the transaction has ended, the reader knows whether there is an unread record.
    """
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


def test_watch_waits_for_the_log_end_offsets_of_a_snapshot_or_the_current_ones(cli, world):
    """With ``--until``, `watch` waits for the log end offsets in a snapshot; without it, for the current log end
    offsets.
    """
    topic, group = world.create_topic(), world.name("old")
    world.produce(topic, 0, 10)
    world.commit(group, TopicPartition(topic, 0), 4)
    cli("snapshot", group, "-o", "before.csv")
    world.produce(topic, 0, 2)
    world.commit(group, TopicPartition(topic, 0), 10)
    assert "1 partition" in cli("watch", group, "--until", "before.csv").stdout
    assert "2 records left" in cli.fails("watch", group, "--wait", "0s", code=3)
    world.commit(group, TopicPartition(topic, 0), 12)
    assert "reached" in cli("watch", group).stdout


def test_watch_shows_a_progress_bar_on_a_terminal(cli, world, replay):
    """On a terminal, `watch` shows a progress bar with the number of unread records."""
    topic, group = replay
    for partition in (0, 1):
        world.commit(group, TopicPartition(topic, partition), 10)
    code, shown = on_a_terminal(cli, "watch", group, "--until", "replay.csv")
    assert code == 0
    assert "━" in shown
    assert "0 left" in shown
    assert f"reached: 2 partitions of {group}" in shown


def test_delete_deletes_a_group_and_its_offsets(cli, world, replay):
    """``delete-group --dry-run`` shows the offsets, and ``delete-group --yes`` deletes the group with them.

    If the group does not exist any more, a second deletion ends with exit code 3.
    """
    topic, group = replay
    dry = cli("delete-group", group, "--dry-run")
    assert dry.stdout.count(topic) == 2
    assert ": 2 committed offsets" in dry.stderr
    assert len(world.committed(group)) == 2
    assert cli("delete-group", group, "--yes").stdout.endswith(f"deleted: {group}\n")
    assert world.committed(group) == {}
    assert "does not exist" in cli.fails("delete-group", group, "--yes", code=3)


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_delete_is_refused_while_the_group_has_members(cli, world, replay, protocol):
    """If a group has a member, `delete-group` does not delete the group, and its error names the member."""
    topic, group = replay
    world.join(group, topic, **{"group.protocol": protocol})
    for arguments in (["--yes"], ["--dry-run"]):
        assert "test-app at 127.0.0.1" in cli.fails("delete-group", group, *arguments, code=3)
    assert len(world.committed(group)) == 2


def test_delete_asks_for_confirmation(cli, world, replay):
    """`delete-group` asks for confirmation: with the answer yes it deletes the group, and with no it ends with exit
    code 3.

    Without a terminal and without ``--yes``, it ends with exit code 2.
    """
    _, group = replay
    assert "--yes" in cli.fails("delete-group", group, code=2)
    code, shown = on_a_terminal(cli, "delete-group", group, typed="n\n")
    assert code == 3
    assert f"Delete group {group}?" in shown
    assert "migrate-groups snapshot" in shown
    assert len(world.committed(group)) == 2
    code, _ = on_a_terminal(cli, "delete-group", group, typed="y\n")
    assert code == 0
    assert world.committed(group) == {}


def test_delete_refuses_a_connect_group(cli, world):
    """`delete-group` refuses a group of Connect workers, with or without members."""
    group = world.name("connect")
    world.commit(group, TopicPartition(world.create_topic(), 0), 0)  # Kafka deletes an Empty group without offsets
    with raw_member(world.bootstrap_servers, group, protocol_type="connect", protocol="sessioned", metadata=b""):
        assert "not a consumer group" in cli.fails("delete-group", group, "--yes", code=3)
    assert "not a consumer group" in cli.fails("delete-group", group, "--yes", code=3)


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_delete_checks_all_groups_before_the_first_deletion(cli, world, replay, protocol):
    """If one of several groups is live and one does not exist, `delete-group` names both, and deletes no group."""
    topic, group = replay
    live, other = world.name("live"), world.name("a b/ü\n")
    consumer = world.join(live, topic, **{"group.protocol": protocol})
    world.commit(other, TopicPartition(topic, 0), 1)
    error = cli.fails("delete-group", group, live, "nobody", other, "--yes", code=3)
    assert "test-app at 127.0.0.1" in error
    assert "'nobody' does not exist" in error
    assert (len(world.committed(group)), len(world.committed(other))) == (2, 1)
    world.consume(consumer, 3)
    consumer.commit(asynchronous=False)
    world.leave(consumer)
    assert cli("delete-group", group, live, other, "--yes").stdout.count("deleted: ") == 3
    assert world.committed(group) == world.committed(live) == world.committed(other) == {}


def test_a_missing_group_is_exit_3(cli, replay):
    """If a group does not exist, `watch` and `delete-group` end with exit code 3, and name the group."""
    for command in (
        ["watch", "nobody", "--until", "replay.csv"],
        ["watch", "nobody"],
        ["delete-group", "nobody", "--yes"],
    ):
        assert "'nobody' does not exist" in cli.fails(*command, code=3)
