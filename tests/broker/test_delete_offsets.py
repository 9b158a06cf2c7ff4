"""``delete-offsets --group`` on a real broker: live groups, kills at any step, and the rollback of a deletion."""

from __future__ import annotations

import csv
import json

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.raw_member import raw_member
from tests.support.versions import CONSUMER

NOW = ("--settle", "0s", "--yes")


@pytest.fixture
def partitions(world) -> list[TopicPartition]:
    """Two partitions with ten records each, in two topics."""
    found = [TopicPartition(world.create_topic(), 0) for _ in range(2)]
    for partition in found:
        world.produce(*partition, 10)
    return found


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_a_topic_that_a_live_group_has_left(cli, world, partitions, protocol):
    """``delete-offsets --group`` deletes a live group's offsets of a topic only if no member subscribes to
    the topic.
    """
    left, held = partitions
    group = world.name("g")
    consumer = world.join(group, left.topic, held.topic, **{"group.protocol": protocol})
    world.consume(consumer, 20)
    consumer.commit(asynchronous=False)
    world.leave(consumer)
    consumer = world.join(group, held.topic, **{"group.protocol": protocol})
    command = ("delete-offsets", "--group", group, "--topic")
    for arguments in (NOW, ("--dry-run",)):
        error = cli.fails(*command, held.topic, *arguments, code=3)
        assert "test-app at 127.0.0.1" in error
    assert world.committed(group) == {left: 10, held: 10}
    assert "1 partition: 1 confirmed" in cli(*command, left.topic, *NOW).stdout
    assert world.committed(group) == {held: 10}
    receipt = f"{group}.delete-offsets.receipt.json"
    assert "with 1 member" in cli.fails("rollback", receipt, "--yes", code=3)
    world.leave(consumer)
    cli("rollback", receipt, "--yes")
    assert world.committed(group) == {left: 10, held: 10}


def test_a_rollback_restores_epoch_and_metadata(cli, world, partitions):
    """After ``delete-offsets --group``, `rollback` restores offset, leader epoch and metadata of each partition.

    It does so even if the group was deleted with its last offset. Only one client confirms it, because confluent-kafka
    would read another group than one whose name begins with a space.
    """
    group = world.name(" a b/ü\n")
    for number, partition in enumerate(partitions):
        world.commit(group, partition, 3 + number, metadata=f"at {number}")
    cli("snapshot", group, "-o", "before.csv")
    cli("delete-offsets", "--group", group, "--topic", "*", *NOW, "--receipt", "r.json")
    assert world.committed(group) == {}
    deleted = [
        (each["before"]["offset"], each["before"]["metadata"], each["outcome"])
        for each in json.loads((cli.folder / "r.json").read_text())["entries"]
    ]
    assert sorted(deleted) == [(3, "at 0", "confirmed by one client"), (4, "at 1", "confirmed by one client")]
    cli("rollback", "r.json", "--yes")
    cli("snapshot", group, "-o", "after.csv")
    before, after = (list(csv.DictReader((cli.folder / name).open())) for name in ("before.csv", "after.csv"))
    kept = ("topic", "partition", "offset", "leader_epoch", "metadata")
    assert [[row[name] for name in kept] for row in before] == [[row[name] for name in kept] for row in after]
    assert len(after) == 2


def test_a_topic_without_a_committed_offset_is_exit_2(cli, world, partitions):
    """If the group has no committed offset for the topic, ``delete-offsets --group`` ends with exit code 2, and names
    the topic, even if the topic does not exist.
    """
    group = world.name("g")
    world.commit(group, partitions[0], 1)
    for topic in (partitions[1].topic, "nowhere", "no*"):
        error = cli.fails("delete-offsets", "--group", group, "--topic", topic, *NOW, code=2)
        assert f"group '{group}' has no committed offset for topic {topic}" in error
    assert world.committed(group) == {partitions[0]: 1}


def test_a_connect_group_is_refused(cli, world, partitions):
    """``delete-offsets --group`` is refused for a group of Connect workers, because it is not a consumer group."""
    group = world.name("connect")
    world.commit(group, partitions[0], 0)
    with raw_member(world.bootstrap_servers, group, protocol_type="connect", protocol="sessioned", metadata=b""):
        error = cli.fails("delete-offsets", "--group", group, "--topic", partitions[0].topic, *NOW, code=3)
    assert "not a consumer group" in error


def test_rerun_or_rollback_after_a_kill_at_any_step(cli, world, partitions, steps):
    """If ``delete-offsets --group`` is killed at any step, a re-run completes the deletion, and `rollback` restores the
    offsets.
    """
    for step in steps:
        group = world.name("g")
        for partition in partitions:
            world.commit(group, partition, 5)
        receipt = f"{group}.delete-offsets.receipt.json"
        command = ("delete-offsets", "--group", group, "--topic", "*", *NOW)
        was_killed = cli.killed_at(step, *command)
        if step % 2:
            cli(*command)
            assert world.committed(group) == {}
        if (cli.folder / receipt).exists():  # a kill before the first record leaves none
            cli.killed_at(step, "rollback", receipt, "--yes")
            cli("rollback", receipt, "--yes")
        assert world.committed(group) == dict.fromkeys(partitions, 5)
        if not was_killed:
            break
    assert 4 < step < steps[-1]
