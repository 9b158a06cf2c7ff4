"""A command that is killed at any step and then run again has the result of an uninterrupted run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.specs import split_spec

APPLY = ("--settle", "0s", "--guard", "0s", "--yes", "--receipt", "receipt.json")


def entries(path, verb: str = "hand-over") -> list[tuple[Any, ...]]:
    receipt = json.loads(path.read_text())
    last = max(execution["number"] for execution in receipt["executions"] if execution["verb"] == verb)
    return [
        (entry["outcome"], entry["topic"], entry["partition"], entry["before"], entry["after"])
        for entry in receipt["entries"]
        if entry["execution"] == last
    ]


def test_rerun_after_a_kill_at_any_step(cli, world, steps):
    """If `migrate` is killed at any step, a re-run has the result of an uninterrupted run, and can be rolled back.

    The same holds for `rollback`.
    """
    topic = world.create_topic(2)
    partitions = [TopicPartition(topic, number) for number in (0, 1)]
    source = world.name("old")
    for partition in partitions:
        world.produce(topic, partition.partition, 9)
        world.commit(source, partition, 5)
    expected = [("confirmed", topic, 0, 1, 5), ("confirmed", topic, 1, None, 5)]
    for step in steps:
        target, folder = f"{source}-new-{step}", cli.folder / str(step)
        world.commit(target, partitions[0], 1)
        folder.mkdir()
        (folder / "split.toml").write_text(split_spec(source, {target: "*"}, on_existing="overwrite"))
        command = ("migrate", f"{step}/split.toml", "--yes", "--wait", "5s")
        was_killed = cli.killed_at(step, *command)
        cli(*command)
        assert world.committed(target) == dict.fromkeys(partitions, 5)
        seen = entries(folder / "split.toml.run" / "receipt.json")
        assert [(*rest, before and before["offset"], after["offset"]) for *rest, before, after in seen] == expected
        cli.killed_at(step, "rollback", f"{step}/split.toml.run", "--yes")
        cli("rollback", f"{step}/split.toml.run", "--yes")
        assert world.committed(target) == {partitions[0]: 1}
        if not was_killed:
            break
    assert 8 < step < steps[-1]


@pytest.mark.parametrize(
    ("command", "target_offset", "source_offset", "written"),
    [
        ("hand-back", 7, 7, [("confirmed", 0, 5, 7), ("unchanged", 1, 5, 5)]),
        ("delete-offsets", 5, None, [("confirmed", 0, 5, None), ("confirmed", 1, 5, None)]),
    ],
)
def test_rerun_of_hand_back_or_delete_offsets_after_a_kill_at_any_step(
    cli, world, steps, command, target_offset, source_offset, written
):
    """If `hand-back` or `delete-offsets` is killed at any step, a re-run leaves the offsets and the receipt of an
    uninterrupted run.
    """
    topic = world.create_topic(2)
    first, second = (TopicPartition(topic, number) for number in (0, 1))
    source, target = world.name("old"), world.name("new")
    for partition in (first, second):
        world.produce(topic, partition.partition, 9)
        world.commit(source, partition, 5)
    cli("snapshot", source, "-o", "s.csv")
    cli("apply", "s.csv", "--to-group", target, *APPLY)
    world.commit(target, first, target_offset)
    receipt = cli.folder / "receipt.json"
    handed_over = receipt.read_bytes()
    for step in steps:
        was_killed = cli.killed_at(step, command, "receipt.json", "--yes")
        cli(command, "receipt.json", "--yes")
        assert world.committed(source) == ({first: source_offset, second: 5} if source_offset else {})
        seen = [
            (outcome, number, before and before["offset"], after and after["offset"])
            for outcome, _, number, before, after in entries(receipt, command)
        ]
        assert seen == written
        if not was_killed:
            break
        receipt.write_bytes(handed_over)
        for group in (source, target):
            world.forget_claims(group)
        for partition in (first, second):
            world.commit(source, partition, 5)
    assert 6 < step < steps[-1]


def test_rollback_of_a_killed_run(cli, world):
    """If `apply` is killed between the write and the update of its receipt, `rollback` deletes the offsets that were
    written.
    """
    topic = world.create_topic(1)
    source, partition = world.name("old"), TopicPartition(topic, 0)
    world.produce(topic, 0, 9)
    world.commit(source, partition, 5)
    cli("snapshot", source, "-o", "s.csv")
    target = f"{source}-new"
    command = ("apply", "s.csv", "--to-group", target, *APPLY)
    # 1 and 2: the first record; 3 and 4: the claim; 5 and 6: the same record; 7: before the request; 8: after it.
    assert cli.killed_at(8, *command)
    assert world.committed(target) == {partition: 5}
    assert {entry[0] for entry in entries(cli.folder / "receipt.json")} == {"not attempted"}
    cli("rollback", "receipt.json", "--yes")
    assert world.committed(target) == {}
