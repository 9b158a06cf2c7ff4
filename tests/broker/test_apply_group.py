"""``apply --from-group`` on a real broker: live groups, commits without membership, and kills at any step."""

from __future__ import annotations

import threading

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.versions import CONSUMER

NOW = ("--settle", "0s", "--guard", "0s", "--yes")


@pytest.fixture
def partition(world) -> TopicPartition:
    """A partition with ten records."""
    found = TopicPartition(world.create_topic(), 0)
    world.produce(*found, 10)
    return found


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_a_group_is_handed_over_once_its_members_have_left(cli, world, partition, protocol):
    """``apply --from-group`` is refused while the group has members.

    Once they have left, the whole group is handed over.
    """
    group, new = world.name("old"), world.name("new")
    consumer = world.join(group, partition.topic, **{"group.protocol": protocol})
    world.consume(consumer, 4)
    consumer.commit(asynchronous=False)
    command = ("apply", "--from-group", group, "--to-group", new)
    assert "pending  stopped" in cli(*command, "--dry-run").stdout
    error = cli.fails(*command, *NOW, code=3)
    assert "test-app at 127.0.0.1" in error
    assert f"rewind --group {group} --to-current -o copy.csv" in error
    assert world.committed(new) == {}
    world.leave(consumer)
    assert "1 partition: 1 confirmed" in cli(*command, *NOW).stdout
    assert world.committed(new) == world.committed(group) == {partition: 4}


def test_a_live_group_is_forked_by_the_commands_that_the_error_names(cli, world, partition):
    """The two commands in the error of ``apply --from-group`` for a live group copy its offsets to another group.

    The live group keeps its offsets.
    """
    group, new = world.name("old"), world.name("new")
    consumer = world.join(group, partition.topic)
    world.consume(consumer, 4)
    consumer.commit(asynchronous=False)
    cli("rewind", "--group", group, "--to-current", "-o", "copy.csv")
    cli("apply", "copy.csv", "--to-group", new, *NOW)
    assert world.committed(new) == world.committed(group) == {partition: 4}


def test_a_consumer_without_membership_is_noticed_in_the_settle_time(cli, world, partition):
    """If a consumer without membership commits between the snapshot and the write, ``apply --from-group`` is
    refused.
    """
    group, new, stopped = world.name("old"), world.name("new"), threading.Event()
    world.commit(group, partition, 1)

    def keep_committing() -> None:
        offset = 1
        while not stopped.wait(0.2):
            offset = min(offset + 1, 10)
            world.commit(group, partition, offset)
            offset %= 10

    committing = threading.Thread(target=keep_committing)
    committing.start()
    try:
        error = cli.fails("apply", "--from-group", group, "--to-group", new, "--settle", "3s", "--yes", code=3)
    finally:
        stopped.set()
        committing.join()
    assert "moved since the snapshot" in error
    assert "run the same command again" in error
    assert world.committed(new) == {}


def test_rerun_after_a_kill_at_any_step(cli, world, partition, steps):
    """If ``apply --from-group`` is killed at any step, a re-run writes the target group's offsets, and `rollback`
    deletes them.
    """
    group = world.name("old")
    world.commit(group, partition, 5)
    for step in steps:
        new = f"{group}-new-{step}"
        command = ("apply", "--from-group", group, "--to-group", new, *NOW)
        was_killed = cli.killed_at(step, *command)
        cli(*command)
        assert world.committed(new) == {partition: 5}
        cli("rollback", f"{group}.{new}.receipt.json", "--yes")
        assert world.committed(new) == {}
        if not was_killed:
            break
    assert 4 < step < steps[-1]
