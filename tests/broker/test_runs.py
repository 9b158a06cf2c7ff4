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


def test_a_member_that_was_not_stopped_in_time_and_has_left(cli, world):
    """A member that consumed during the guard and left is told as past; the deletion by group that is advised works.

    `status` and `migrate` name it with the time of the hand-over, and `delete-offsets` the command. The group lives on.
    """
    old = Old(cli, world, stay=True)
    new_protocol = {"group.protocol": "consumer"}  # a rebalance does not wait for a member that does not poll
    stays = world.join(old.group, old.find, **new_protocol)
    with running(cli, "migrate", "split.toml", "--yes", "--guard", "60s") as process:
        while not (line := process.stderr.readline()).startswith("watching "):
            assert line
        late = world.join(old.group, old.pay, **new_protocol)
        world.consume(late, 3)
        late.commit(asynchronous=False)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    world.leave(late)
    until(lambda: [stays.poll(0.05)] and "Stable" in cli("describe", old.group).stdout)
    world.commit(old.pay_group, TopicPartition(old.pay, 0), 10)
    step = cli("status", RUN).stdout.partition("next: ")[2]
    assert f"started since: group {old.pay_group}; group '{old.group}' has committed on " in step
    assert "; no member is on the topics now" in step
    assert "stop these consumers" not in step
    assert "processed twice: audit counts it" in cli.fails("migrate", "split.toml", "--yes", code=4)
    advice = f"migrate-groups delete-offsets --group {old.group} --topic {old.pay} deletes its offsets"
    assert advice in cli.fails("delete-offsets", RUN, "--yes", code=3)
    cli("delete-offsets", "--group", old.group, "--topic", old.pay, "--settle", "1s", "--yes")
    assert world.committed(old.group) == old.offsets(old.find) != {}
    world.leave(stays)


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
