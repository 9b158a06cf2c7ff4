"""Partitions and topics that are added during the guard of a hand-over: exit code 4, and what to do."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from migrate_groups.errors import ClusterUnavailable, PartlyApplied
from migrate_groups.migration.guard import guard
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.options import WriteOptions
from tests.support.connected import APPLY, MIGRATE, SPEC
from tests.support.move import Move

ADDED = TopicPartition("t", 1)
GUARD = "migrate_groups.migration.carry_out.guard"
GUARDED = WriteOptions(settle=0, guard=1)


@pytest.fixture
def during_guard(monkeypatch):
    """Return a function whose argument is called during the guard of the next command."""

    def act(do) -> None:
        def acting(*arguments):
            do()
            monkeypatch.setattr(GUARD, guard)
            return guard(*arguments)

        monkeypatch.setattr(GUARD, acting)

    return act


@pytest.mark.parametrize("command", [MIGRATE, APPLY])
def test_a_partition_that_is_added_during_the_guard_is_exit_4(cli, during_guard, command):
    """If a partition is added and the new group has no offset there, the exit code is 4, and the error names it.

    The receipt has the message.
    """
    during_guard(lambda: cli.cluster.add_partitions("t", 2))
    error = cli.fails(*command, code=4)
    assert "partition new t-1 added since the write, without a committed offset: with auto.offset.reset=latest" in error
    receipt = "receipt.json" if command is APPLY else "split.toml.run/receipt.json"
    (execution,) = json.loads((cli.folder / receipt).read_text())["executions"]
    assert execution["added"] == ["partition new t-1 added since the write, without a committed offset"]


def test_the_same_command_hands_over_an_added_partition(cli, during_guard):
    """If the new group has not started, `migrate` again sets the added partition's log start offset."""
    during_guard(lambda: cli.cluster.add_partitions("t", 2))
    cli.fails(*MIGRATE, code=4)
    cli.cluster.produce("t", 1, 10)
    cli(*MIGRATE)
    committed = cli.cluster.offsets("new").get(ADDED)
    assert committed is not None
    assert committed.offset == 0


def test_a_partition_on_which_the_group_has_committed_is_not_named(cli, during_guard):
    """If the new group has a committed offset on the added partition, the exit code is 0."""

    def add_and_consume() -> None:
        cli.cluster.add_partitions("t", 2)
        cli.cluster.commit("new", ADDED, 0)

    during_guard(add_and_consume)
    cli(*MIGRATE)


def test_topics_that_can_not_be_described_after_the_guard_are_exit_4(cli, during_guard, monkeypatch):
    """If the topics can't be described at the end of the guard, it is not known whether partitions were added."""

    def unavailable(topics):
        raise ClusterUnavailable("no answer")

    during_guard(lambda: monkeypatch.setattr(cli.cluster, "describe_topics", unavailable))
    error = cli.fails(*MIGRATE, code=4)
    assert "it is not known whether partitions were added since the write: no answer" in error


@pytest.mark.parametrize(
    ("cluster", "topic", "named"),
    [
        ("target", "eu.orders", "partition g eu.orders-2 added since the write"),
        ("source", "orders", "partition orders-2 added on the old group's cluster since the write"),
    ],
)
def test_a_partition_that_is_added_on_either_cluster_of_a_move(tmp_path, during_guard, cluster, topic, named):
    """In a move to another cluster, a partition that is added to a topic or to its copy is named (exit code 4)."""
    move = Move(tmp_path)
    move.commit(30, 10)
    move.copy(0, 50)
    during_guard(lambda: getattr(move, cluster).add_partitions(topic, 3))
    with pytest.raises(PartlyApplied, match=named):
        move.migrate(GUARDED)


def test_a_partition_that_is_added_to_the_source_of_a_move_may_be_left(tmp_path, during_guard):
    """With ``--on-uncommitted leave``, a partition that is added on the source cluster of a move is not named."""
    move = Move(tmp_path)
    move.commit(30, 10)
    move.copy(0, 50)
    during_guard(lambda: move.source.add_partitions("orders", 3))
    move.migrate(replace(GUARDED, on_uncommitted="leave"))
    assert len(move.source.describe_topics(["orders"])["orders"].partitions) == 3


@pytest.mark.parametrize(
    ("late", "code"), [("t2", 4), ("other", 4), ("s2", 0)], ids=["of a target", "in no pattern", "that stays"]
)
def test_a_first_commit_on_a_topic_during_the_guard_is_exit_4(cli, during_guard, late, code):
    """If the old group commits on a topic that it had no offset for, and that does not stay, the error names the topic.

    The new group has no offset there. After a `rollback`, the same command hands over this topic as well.
    """
    for topic in ("s", late):
        cli.cluster.create_topic(topic, 1)
    cli.cluster.commit("old", TopicPartition("s", 0), 0)
    (cli.folder / "split.toml").write_text(
        SPEC.replace('["t"]', '["t*"]').replace("[options]", '[stay]\ntopics = ["s*"]\n[options]')
    )
    cli.cluster.produce(late, 0, 10)
    during_guard(lambda: cli.cluster.commit("old", TopicPartition(late, 0), 7))
    said = cli(*MIGRATE, code=code).stderr
    named = f"group 'old' has committed since its offsets were read on {late}-0, not handed over: the same command"
    assert (f"{named} takes all after a rollback; stop its consumers" in said) is (code == 4)
    if late == "t2":
        cli("rollback", "split.toml.run", "--yes")
        cli(*MIGRATE)
        assert cli.cluster.offsets("new")[TopicPartition("t2", 0)].offset == 7


def test_a_first_commit_on_a_partition_that_was_left_is_exit_4(cli, during_guard):
    """With ``on_uncommitted=leave`` a partition is left to the new group. If the old group commits there, exit 4."""
    cli.cluster.add_partitions("t", 2)
    cli.cluster.produce("t", 1, 10)
    (cli.folder / "split.toml").write_text(f'{SPEC}on_uncommitted = "leave"\n')
    during_guard(lambda: cli.cluster.commit("old", ADDED, 7))
    assert "has committed since its offsets were read on t-1, not handed over" in cli.fails(*MIGRATE, code=4)


def test_offsets_that_can_not_be_read_after_the_guard_are_exit_4(cli, during_guard, monkeypatch):
    """If the old group's offsets can't be read at the end of the guard, it is not known whether it has committed."""
    answers = cli.cluster.committed

    def unavailable(wanted, *, wait=True):
        if wanted == {"old": None}:
            raise ClusterUnavailable("no answer")
        return answers(wanted, wait=wait)

    during_guard(lambda: monkeypatch.setattr(cli.cluster, "committed", unavailable))
    assert "group 'old' could not be watched after the write: no answer" in cli.fails(*MIGRATE, code=4)
