"""Repeated runs of `migrate` on a real broker, and a source group that was deleted meanwhile."""

from __future__ import annotations

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.cli import running
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


def test_offsets_of_a_deleted_source_group_are_restored_from_the_baseline(cli, world):
    """If the source group is deleted while `migrate` waits, the run is refused.

    ``--on-removed restore`` then hands over the offsets of the snapshot that was taken before the wait.
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
    assert "pass --on-removed restore" in cli.fails("migrate", "split.toml", "--yes", code=3)
    cli("migrate", "split.toml", "--yes", "--on-removed", "restore")
    assert world.committed(old.pay_group) | world.committed(old.find_group) == before
