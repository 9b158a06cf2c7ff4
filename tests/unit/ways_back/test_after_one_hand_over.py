"""Rollback, hand-back and delete-offsets after one hand-over: other clients commit, and commands follow each other."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial

import pytest
import typer

from migrate_groups.cli.commands import ways_back
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.target_cluster import TargetCluster
from migrate_groups.errors import PartlyApplied, Refused
from migrate_groups.files.runs import receipt_json
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.write import write
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from tests.support import planning
from tests.support.clock import FakeClock
from tests.support.stopped import hand_over, stopped

HERE = Connection("x", timeout="1s")
PARTITION = TopicPartition("t", 0)


@pytest.fixture
def handed_over(tmp_path, monkeypatch):
    """A cluster on which ``old`` was handed over to ``new`` at offset 5, and the path of the receipt.

    The commands are connected to this cluster.
    """
    made = stopped({PARTITION: 5})
    path = tmp_path / "receipt.json"
    path.write_bytes(receipt_json.to_bytes(Receipt((hand_over(made, settle=0.0, guard=0.0),))))

    @contextmanager
    def connected(*_):
        yield Clients(made, made)

    monkeypatch.setattr(Connection, "open_writer", connected)
    monkeypatch.setattr(Connection, "open_reader", lambda *_: nullcontext(made))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    return made, path


def during_the_question(monkeypatch, event) -> None:
    """Make the confirmation prompt call ``event`` and then answer yes."""
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: (event(), True)[1])


def test_a_target_commit_during_the_question_refuses_rollback(handed_over, monkeypatch):
    """If a target group commits while the confirmation prompt waits, the rollback is refused and the commit stays."""
    made, path = handed_over
    during_the_question(monkeypatch, lambda: made.commit("new", PARTITION, 7))
    with pytest.raises(Refused, match="committed since"):
        ways_back.rollback(path, target=TargetCluster(), connection=HERE)
    assert made.offsets("new").get(PARTITION).offset == 7


def test_a_target_group_that_was_set_back_does_not_hand_back(handed_over):
    """If a target group is below the offset that it was handed, hand-back is refused: it may have read further before.

    Once its right offset is set, the old group gets this offset.
    """
    made, path = handed_over
    made.commit("new", PARTITION, 9)
    made.commit("new", PARTITION, 3)
    with pytest.raises(Refused, match="new t-0 is at 3, handed over at 5: set back by a reset, so it is not known how"):
        ways_back.hand_back(path, target=TargetCluster(), connection=HERE)
    assert made.offsets("old").get(PARTITION).offset == 5
    made.commit("new", PARTITION, 9)
    ways_back.hand_back(path, yes=True, target=TargetCluster(), connection=HERE)
    assert made.offsets("old").get(PARTITION).offset == 9


def test_a_source_commit_during_the_question_refuses_delete_offsets(handed_over, monkeypatch):
    """If the source group commits while the confirmation prompt waits, delete-offsets is refused; the commit stays."""
    made, path = handed_over
    during_the_question(monkeypatch, lambda: made.commit("old", PARTITION, 7))
    with pytest.raises(Refused, match="the source group has committed since the hand-over"):
        ways_back.delete_offsets(path, target=TargetCluster(), connection=HERE)
    assert made.offsets("old").get(PARTITION).offset == 7


def test_rollback_deletes_the_offset_if_nothing_changed_during_the_question(handed_over, monkeypatch):
    """If nothing changes while the confirmation prompt waits, the rollback deletes the target group's offset."""
    made, path = handed_over
    during_the_question(monkeypatch, lambda: None)
    ways_back.rollback(path, target=TargetCluster(), connection=HERE)
    assert made.offsets("new").get(PARTITION) is None


def migrate_again(made, path) -> None:
    """Hand ``old`` over a second time, with the same receipt."""
    receipt = receipt_json.load(path)
    plan = make_plan(made, planning.handed_over(made, "old", "new"), WriteOptions(settle=0.0, guard=0.0), receipt)
    execution = write(made.clients, receipt.begun(Verb.HAND_OVER, plan, FakeClock().now()), lambda state: None)
    path.write_bytes(receipt_json.to_bytes(receipt.with_execution(execution)))


def offset(made, group: str) -> int | None:
    found = made.offsets(group).get(PARTITION)
    return found and found.offset


def test_a_second_rollback_after_a_second_migration(handed_over):
    """After a hand-over, its rollback and a second hand-over, a second rollback and its dry run succeed."""
    made, path = handed_over
    ways_back.rollback(path, target=TargetCluster(), connection=HERE, yes=True)
    made.delete_group(journal_group("old"))  # `migrate_again` claims nothing
    made.commit("old", PARTITION, 8)
    migrate_again(made, path)
    ways_back.rollback(path, target=TargetCluster(), connection=HERE, dry_run=True)
    ways_back.rollback(path, target=TargetCluster(), connection=HERE, yes=True)
    assert offset(made, "new") is None
    verbs = [execution.verb for execution in receipt_json.load(path).executions]
    assert verbs == [Verb.HAND_OVER, Verb.ROLLBACK, Verb.HAND_OVER, Verb.ROLLBACK]


@pytest.mark.parametrize(
    ("command", "done"),
    [
        (partial(ways_back.rollback, target=TargetCluster(), connection=HERE, yes=True), "is rolled back already"),
        (
            partial(ways_back.hand_back, target=TargetCluster(), connection=HERE, wait="0s", yes=True),
            "is handed back already",
        ),
    ],
    ids=["rollback", "hand-back"],
)
def test_a_repeated_way_back_looks_at_the_new_group(handed_over, capsys, command, done):
    """If a rollback or hand-back is repeated, the command says that it is done, and writes nothing.

    The exit code is 4 if the new group has committed since, also if this was after the guard. The message says how an
    old group that has not started can go on from there.
    """
    made, path = handed_over
    command(path)
    command(path)
    assert f"{done}; nothing was written" in capsys.readouterr().err
    made.commit("new", PARTITION, 9)
    forward = "rewind --group NEW --to-current and apply --on-existing forward; nothing was written"
    with pytest.raises(PartlyApplied, match=f"{done}, but group 'new' has committed .*{forward}"):
        command(path)
    assert offset(made, "new") == 9


def test_delete_offsets_after_a_hand_back_is_refused(handed_over):
    """After a hand-back, delete-offsets is refused, because the source group consumes its topics again.

    It is refused even if the source group has committed nothing since then.
    """
    made, path = handed_over
    ways_back.hand_back(path, target=TargetCluster(), connection=HERE, wait="0s", yes=True)
    with pytest.raises(Refused, match="new t-0: handed back already"):
        ways_back.delete_offsets(path, target=TargetCluster(), connection=HERE, yes=True)
    assert offset(made, "old") == 5


@pytest.mark.parametrize(
    "command",
    [
        partial(ways_back.delete_offsets, target=TargetCluster(), connection=HERE, yes=True),
        partial(ways_back.hand_back, target=TargetCluster(), connection=HERE, wait="0s", yes=True),
    ],
    ids=["delete-offsets", "hand-back"],
)
def test_what_follows_a_rollback_is_refused(handed_over, command):
    """After a rollback, delete-offsets and hand-back are refused, even if the target group has a committed offset.

    This offset does not come from the hand-over.
    """
    made, path = handed_over
    ways_back.rollback(path, target=TargetCluster(), connection=HERE, yes=True)
    made.commit("new", PARTITION, 9)
    with pytest.raises(Refused, match="new t-0: rolled back already"):
        command(path)
    assert offset(made, "old") == 5


def test_a_consumer_without_membership_that_commits_after_a_rollback_is_exit_4(handed_over, monkeypatch):
    """If a consumer without membership commits in the target group after its rollback, the exit code is 4."""
    made, path = handed_over
    receipt = receipt_json.load(path)
    (execution,) = receipt.executions
    guarded = replace(execution, options=WriteOptions(settle=0.0, guard=5.0))
    path.write_bytes(receipt_json.to_bytes(Receipt((guarded,))))
    clock = FakeClock(lambda: made.commit("new", PARTITION, 7))
    monkeypatch.setattr(ways_back, "SystemClock", lambda: clock)
    with pytest.raises(
        PartlyApplied, match=r"'new' has committed on 1 partition .* t-0 no offset → 7; stop its consumers"
    ):
        ways_back.rollback(path, target=TargetCluster(), connection=HERE, yes=True)


def test_a_consumer_without_membership_that_commits_before_a_rollback_is_refused(handed_over, monkeypatch):
    """If a consumer without membership commits in the ``settle`` time before a rollback, the rollback is refused."""
    made, path = handed_over
    (execution,) = receipt_json.load(path).executions
    settling = replace(execution, options=WriteOptions(settle=5.0, guard=0.0))
    path.write_bytes(receipt_json.to_bytes(Receipt((settling,))))
    clock = FakeClock(lambda: made.commit("new", PARTITION, 7))
    monkeypatch.setattr(ways_back, "SystemClock", lambda: clock)
    with pytest.raises(Refused, match="committed since"):
        ways_back.rollback(path, target=TargetCluster(), connection=HERE, yes=True)
    assert offset(made, "new") == 7
