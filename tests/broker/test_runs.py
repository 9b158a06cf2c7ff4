"""Repeated runs on a real broker, and a source group that has lost its committed offsets."""

from __future__ import annotations

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import running
from tests.support.old_group import Old

RUN = "split.toml.run"


def test_repeated_migrate_after_the_target_groups_have_started(cli, world):
    """A second migrate is exit 0, or, if the source group has committed since, exit 4 with the range of records."""
    old = Old(cli, world)
    first = TopicPartition(old.pay, 0)
    cli("migrate", "split.toml", "--yes")
    world.commit(old.pay_group, first, 7)
    again = cli("migrate", "split.toml", "--yes").stderr
    assert f"handed over already, and started since: group {old.pay_group}; nothing was written" in again
    world.commit(old.group, first, 9)
    assert f"{first} 4 → 9 (5 records)" in cli.fails("migrate", "split.toml", "--yes", code=4)
    assert world.committed(old.pay_group)[first] == 7


def test_hand_back_waits_for_the_source_group_and_migrate_works_again(cli, world):
    """Hand-back waits until the source group stops. Afterwards migrate can hand over again."""
    old = Old(cli, world, stay=True)
    first = TopicPartition(old.pay, 0)
    member = world.join(old.group, old.find)
    assert "way back" in cli("migrate", "split.toml", "--dry-run").stdout
    cli("migrate", "split.toml", "--yes")
    world.commit(old.pay_group, first, 8)
    with running(cli, "hand-back", RUN, "--yes", "--wait", "60s") as process:
        assert "test-app" in "".join(process.stderr.readline() for _ in range(2))
        world.leave(member)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert world.committed(old.group)[first] == 8
    world.commit(old.group, first, 9)
    cli("migrate", "split.toml", "--yes")
    assert world.committed(old.pay_group)[first] == 9


def test_rollback_counts_a_partition_that_was_added(cli, world):
    """A new group that committed only on an added partition has started: no rollback, but a hand-back."""
    old = Old(cli, world)
    before = world.committed(old.group)
    cli("migrate", "split.toml", "--yes")
    world.add_partitions(old.pay, 3)
    added = TopicPartition(old.pay, 2)
    world.produce(old.pay, 2, 5)
    world.commit(old.pay_group, added, 5)
    error = cli.fails("rollback", RUN, "--yes", code=3)
    assert f"not committed since: {old.pay_group} {added}: the group has committed since the hand-over" in error
    assert "handed over already, and started since" in cli("migrate", "split.toml", "--yes").stderr
    cli("hand-back", RUN, "--yes")
    assert world.committed(old.group) == before | {added: 5}


def test_rollback_restores_offsets_that_the_source_group_lost(cli, world):
    """Rollback restores an offset that the source group has lost, and then deletes the target group's offset."""
    old = Old(cli, world)
    before = world.committed(old.group)
    cli("migrate", "split.toml", "--yes")
    lost = TopicPartition(old.pay, 1)
    world.delete_offsets(old.group, lost)
    done = cli("rollback", RUN, "--yes")
    assert f"expired or deleted, set again from the receipt: {old.group} {lost}" in done.stdout
    assert world.committed(old.group) == before
    assert world.committed(old.pay_group) == world.committed(old.find_group) == {}


def test_offsets_of_a_deleted_source_group_are_restored_from_the_baseline(cli, world):
    """If all offsets vanish during the wait, the run is refused; ``--vanished restore`` uses the snapshot."""
    old = Old(cli, world)
    before = world.committed(old.group)
    with running(cli, "migrate", "split.toml", "--yes", "--settle", "3s", "--wait", "6s") as process:
        assert "waiting up to" in process.stderr.readline()
        world.delete_group(old.group)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "has no committed offset any more: 4 committed offsets" in err
    until(lambda: not world.committed(old.group))
    assert "pass --vanished restore" in cli.fails("migrate", "split.toml", "--yes", code=3)
    cli("migrate", "split.toml", "--yes", "--vanished", "restore")
    assert world.committed(old.pay_group) | world.committed(old.find_group) == before
