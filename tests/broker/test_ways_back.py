"""`rollback`, `hand-back` and `delete-offsets` on a real broker, after a migration within one cluster.

`test_crash.py` kills them at each step. `test_concurrent_runs.py` runs two at once. `test_two_clusters.py` has those
after a move to another cluster.
"""

from __future__ import annotations

import json

from migrate_groups.model.partitions import TopicPartition
from tests.support.cli import running, waiting
from tests.support.old_group import Old

RUN = "split.toml.run"


def test_rollback_restores_the_previous_offsets(cli, world):
    """`rollback` deletes the offsets that `migrate` created, restores those that it changed, and records this in the
    receipt.
    """
    old = Old(cli, world, options='on_existing = "overwrite"')
    first = TopicPartition(old.pay, 0)
    world.commit(old.pay_group, first, 1)
    cli("migrate", "split.toml", "--yes")
    assert "delete" in cli("rollback", RUN, "--dry-run").stdout
    assert world.committed(old.pay_group) == old.offsets(old.pay)
    done = cli("rollback", RUN, "--yes")
    assert "4 partitions: 4 confirmed" in done.stdout
    assert world.committed(old.pay_group) == {first: 1}
    assert world.committed(old.find_group) == {}
    entries = json.loads((cli.folder / RUN / "receipt.json").read_text())["entries"]
    assert {entry["outcome"] for entry in entries if entry["execution"] == 2} == {"confirmed"}
    assert "is rolled back already" in cli("rollback", RUN, "--yes").stderr


def test_rollback_is_refused_after_a_target_group_has_started(cli, world):
    """`rollback` is refused if a target group has a member or has committed, because records would be
    processed twice.
    """
    old = Old(cli, world)
    cli("migrate", "split.toml", "--yes")
    consumer = world.join(old.pay_group, old.pay)
    assert "targets: " in cli.fails("rollback", RUN, "--yes", code=3)
    world.consume(consumer, 3)
    consumer.commit(asynchronous=False)
    world.leave(consumer)
    refusal = cli.fails("rollback", RUN, "--yes", code=3)
    assert "has committed since the hand-over: use hand-back" in refusal


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


def test_hand_back_skips_and_repeats_no_record(cli, world):
    """After `hand-back` the source group continues where the target groups stopped: each record is processed once."""
    old = Old(cli, world)
    partitions = [TopicPartition(topic, number) for topic in (old.pay, old.find) for number in (0, 1)]
    cli("migrate", "split.toml", "--yes")
    pay = world.join(old.pay_group, old.pay)
    values = world.consume(pay, 7)
    pay.commit(asynchronous=False)
    with running(cli, "hand-back", RUN, "--yes", "--wait", "60s") as process:
        assert old.pay_group in process.stderr.readline()
        world.leave(pay)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    again = world.join(old.group, old.pay, old.find)
    left = sum(10 - world.committed(old.group)[partition] for partition in partitions)
    values += world.consume(again, left)
    expected = [f"{tp.topic}-{tp.partition}-{number}" for tp in partitions for number in range(4 + tp.partition, 10)]
    assert sorted(values) == sorted(expected)


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


def test_delete_offsets_deletes_only_moved_topics(cli, world):
    """`delete-offsets` deletes the source group's offsets of moved topics only; other offsets stay.

    While a member subscribes to a moved topic, `delete-offsets` is refused.
    """
    old = Old(cli, world, stay=True)
    cli("migrate", "split.toml", "--yes")
    consumer = world.join(old.group, old.pay)
    assert "stop these consumers" in cli.fails("delete-offsets", RUN, "--yes", code=3)
    world.leave(consumer)
    cli("delete-offsets", RUN, "--yes")
    assert world.committed(old.group) == old.offsets(old.find) != {}


def test_delete_offsets_is_refused_if_a_target_group_is_behind(cli, world):
    """If a target group has committed a lower offset than was handed over, `delete-offsets` is refused."""
    old = Old(cli, world)
    cli("migrate", "split.toml", "--yes")
    world.commit(old.pay_group, TopicPartition(old.pay, 0), 1)
    assert "or a lower one than was handed over" in cli.fails("delete-offsets", RUN, "--yes", code=3)
    assert len(world.committed(old.group)) == 4
