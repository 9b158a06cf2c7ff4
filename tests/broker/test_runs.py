"""Repeated runs of one migration on a real broker, and source groups that have lost their committed offsets."""

from __future__ import annotations

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import running, waiting
from tests.support.old_group import Old

RUN = "split.toml.run"


def test_repeated_migrate_after_the_target_groups_have_started(cli, world):
    """A second `migrate` after a target group has committed writes nothing, and ends with exit code 0.

    If the source group has committed after the hand-over, it ends with exit code 4, and shows the range of records.
    """
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
    """`hand-back` waits until the source group has stopped. Afterwards `migrate` can hand the group over again."""
    old = Old(cli, world, stay=True)
    first = TopicPartition(old.pay, 0)
    member = world.join(old.group, old.find)
    assert "way back" in cli("migrate", "split.toml", "--dry-run").stdout
    cli("migrate", "split.toml", "--yes")
    world.commit(old.pay_group, first, 8)
    with waiting(cli, "hand-back", RUN, "--yes", "--wait", "60s"):
        world.leave(member)
    assert world.committed(old.group)[first] == 8
    world.commit(old.group, first, 9)
    cli("migrate", "split.toml", "--yes")
    assert world.committed(old.pay_group)[first] == 9


def test_rollback_counts_a_partition_that_was_added(cli, world):
    """If a target group has committed only in a partition that was added later, it has started: `rollback` is refused.

    `hand-back` then gives the source group the offset of this partition, too.
    """
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
    """If the source group has lost an offset, `rollback` restores it, and deletes the target groups' offsets."""
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
    """If the source group is deleted while `migrate` waits, the run is refused.

    ``--vanished restore`` then hands over the offsets of the snapshot that was taken before the wait.
    """
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
