"""`snapshot`, `filter`, `split`, `export`, `verify` and `apply`, one after another on a real broker."""

from __future__ import annotations

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from migrate_groups.model.partitions import TopicPartition

NOW = ("--settle", "0s", "--guard", "0s")


@pytest.fixture
def old_group(world):
    """An Empty group with committed offsets for three topics: (group, [invoices, payments, catalog])."""
    group = world.name("big")
    topics = [world.create_topic(2, topic=world.name(what)) for what in ("invoices", "payments", "catalog")]
    for number, topic in enumerate(topics):
        for partition in (0, 1):
            world.produce(topic, partition, 10)
            world.commit(group, TopicPartition(topic, partition), 3 + number + partition, metadata=f"at {number}")
    return group, topics


def split_toml(cli, group, topics):
    (cli.folder / "split.toml").write_text(
        f"""
        source = "{group}"
        [[target]]
        group = "{group}-billing"
        topics = ["invoices-*", "payments-*"]
        [[target]]
        group = "{group}-search"
        topics_regex = ["catalog-.+"]
        """
    )
    return {f"{group}-billing": topics[:2], f"{group}-search": topics[2:]}


def test_snapshot_is_split_verified_and_applied(cli, world, old_group):
    """After snapshot, split and apply, the target groups have the source group's offsets, leader epochs and metadata.

    The source group keeps its offsets.
    """
    group, topics = old_group
    before = world.committed(group)
    targets = split_toml(cli, group, topics)
    cli("snapshot", group, "-o", "before.parquet")
    cli("split", "before.parquet", "--spec", "split.toml", "-o", "split.csv")
    assert cli("verify", group, "--settle", "0s").stdout.startswith("stopped: ")
    dry = cli("apply", "split.csv", "--dry-run")
    assert "create" in dry.stdout
    for target in targets:
        assert world.committed(target) == {}
    done = cli("apply", "split.csv", *NOW, "--yes")
    assert "6 partitions: 6 confirmed" in done.stdout
    for target, of_target in targets.items():
        assert world.committed(target) == {tp: offset for tp, offset in before.items() if tp.topic in of_target}
    assert world.committed(group) == before
    receipt = json.loads((cli.folder / "split.csv.receipt.json").read_text())
    assert {entry["outcome"] for entry in receipt["entries"]} == {"confirmed"}
    assert {entry["after"]["metadata"] for entry in receipt["entries"]} == {"at 0", "at 1", "at 2"}
    assert {entry["after"]["leader_epoch"] for entry in receipt["entries"]} == {0}


def test_repeated_apply_writes_nothing(cli, old_group):
    """A second `apply` of the same file finds that every offset is already committed, and reports each as unchanged."""
    group, topics = old_group
    split_toml(cli, group, topics)
    cli("snapshot", group, "-o", "before.csv")
    cli("split", "before.csv", "--spec", "split.toml", "-o", "split.parquet")
    cli("apply", "split.parquet", *NOW, "--yes")
    again = cli("apply", "split.parquet", *NOW, "--yes").stdout
    assert again.count("unchanged\n") == 6
    assert "6 partitions: 6 confirmed" in again


def test_commands_read_and_write_a_pipe(cli, world, old_group):
    """With ``-`` as file name, snapshot, filter, split and export read stdin and write stdout, so they work as one
    pipe.

    Stdout contains only data.
    """
    group, topics = old_group
    taken = cli("snapshot", group, "-o", "-")
    assert [row["group"] for row in csv.DictReader(io.StringIO(taken.stdout))] == [group] * 6
    kept = cli("filter", "-", "--topic", "payments-*", "--partition", "1", "-o", "-", stdin=taken.stdout)
    moved = cli("split", "-", "--to", f"{group}-pay=payments-*", "-o", "-", stdin=kept.stdout)
    exported = cli("export", "-", "-o", "-", stdin=moved.stdout)
    assert exported.stdout == f"{topics[1]},1,5\n"


def test_snapshot_has_partitions_without_a_committed_offset(cli, world):
    """The snapshot of a live group has a row for each partition of a subscribed topic, even if no offset is committed
    for it.
    """
    committed, subscribed = world.create_topic(1), world.create_topic(2)
    group = world.name("live")
    world.commit(group, TopicPartition(committed, 0), 0)
    world.join(group, subscribed)
    cli("snapshot", group, "-o", "s.parquet")
    rows = pq.read_table(cli.folder / "s.parquet").to_pylist()
    assert {(row["topic"], row["partition"], row["offset"]) for row in rows} == {
        (committed, 0, 0),
        (subscribed, 0, None),
        (subscribed, 1, None),
    }
    assert {row["group_state"] for row in rows} == {"Stable"}


def test_describe_shows_members_offsets_and_lag(cli, world, old_group):
    """`describe` shows for each partition the committed offset, the log end offset, the lag and the owning member."""
    group, topics = old_group
    member = world.join(group, topics[0]).memberid()
    shown = cli("describe", group).stdout
    assert "Stable, classic, 1 member\n" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert [(line[2], line[6]) for line in lines if line[1:2] == [topics[0]]] == [("0", member), ("1", member)]
    assert [line for line in lines if line[1:2] == [topics[2]]] == [
        [group, topics[2], "0", "5", "10", "5", "-", "-", "-"],
        [group, topics[2], "1", "6", "10", "4", "-", "-", "-"],
    ]


def test_apply_to_one_group(cli, world, old_group):
    """``apply --to-group`` writes all offsets of a file to one target group; more than one target group needs
    ``--fan-out``.
    """
    group, _ = old_group
    cli("snapshot", group, "-o", "s.csv")
    refusal = cli.fails("apply", "s.csv", "--to-group", "a", "--to-group", "b", "--yes", code=2)
    assert "--fan-out" in refusal
    cli("apply", "s.csv", "--to-group", f"{group}-new", *NOW, "--yes")
    assert world.committed(f"{group}-new") == world.committed(group)
    cli(
        "apply",
        "s.csv",
        "--to-group",
        f"{group}-c",
        "--to-group",
        f"{group}-d",
        "--fan-out",
        "--copy",
        *NOW,
        "--yes",
    )
    receipts = {f"s.csv.{group}-new.receipt.json", f"s.csv.{group}-c+{group}-d.receipt.json"}
    assert {path.name for path in cli.folder.glob("*.json")} == receipts
    assert world.committed(f"{group}-c") == world.committed(f"{group}-d") == world.committed(group)


def test_own_snapshot_is_applied_only_with_restore(cli, world, old_group):
    """A snapshot is applied to its own group only with ``--restore``; the group then gets the offsets of the snapshot
    again.
    """
    group, topics = old_group
    cli("snapshot", group, "-o", "s.csv")
    before = world.committed(group)
    assert "--restore" in cli.fails("apply", "s.csv", "--yes", code=2)
    world.commit(group, TopicPartition(topics[0], 0), 9)
    assert "--on-existing" in cli.fails("apply", "s.csv", "--restore", *NOW, "--yes", code=3)
    cli("apply", "s.csv", "--restore", "--on-existing", "overwrite", *NOW, "--yes")
    assert world.committed(group) == before


def test_json_plan_is_equal_for_equal_input(cli, old_group):
    """If nothing has changed, ``apply --dry-run --format json`` prints the same bytes again. The plan has a schema
    version.
    """
    group, topics = old_group
    split_toml(cli, group, topics)
    cli("snapshot", group, "-o", "s.csv")
    cli("split", "s.csv", "--spec", "split.toml", "-o", "split.csv")
    first = cli("apply", "split.csv", "--dry-run", "--format", "json").stdout
    assert first == cli("apply", "split.csv", "--dry-run", "--format", "json").stdout
    plan = json.loads(first)
    assert plan["schema_version"] == 6
    assert len(plan["changes"]) == 6
    assert len(plan["intent"]) == len(plan["content"]) == 64


def test_file_of_kafkas_tool_is_applied(cli, world):
    """`apply` reads a file of Kafka's tool: one with three columns only with ``--to-group``, one with four also
    without.

    Neither file names a source group, so no source group is checked.
    """
    topic, group = world.create_topic(2), world.name("group")
    world.produce(topic, 0, 5)
    (cli.folder / "three.csv").write_text(f"{topic},0,4\n")
    (cli.folder / "four.csv").write_text(f"{group}-x,{topic},0,3\n{group}-y,{topic},0,2\n")
    assert "--to-group" in cli.fails("apply", "three.csv", "--yes", code=2)
    done = cli("apply", "three.csv", "--no-source-group", "--to-group", group, *NOW, "--yes")
    assert "so no old group is checked" in done.stdout
    assert world.committed(group) == {TopicPartition(topic, 0): 4}
    cli("apply", "four.csv", "--no-source-group", *NOW, "--yes")
    assert world.committed(f"{group}-x") == {TopicPartition(topic, 0): 3}
    assert world.committed(f"{group}-y") == {TopicPartition(topic, 0): 2}
