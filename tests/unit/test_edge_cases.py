"""Rare cases: offsets that can't be read, refused writes, timestamps beyond the calendar, and others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from migrate_groups.api.snapshot import Snapshot
from migrate_groups.errors import ClusterUnavailable, InvalidInput
from migrate_groups.files.runs import receipt_file
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.migration.write import write
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.sandbox import supervisor
from migrate_groups.sandbox.kept import Ended, ServerStarted, keep
from migrate_groups.snapshots.times import rfc_3339
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.stopped import hand_over, stopped

PARTITION = TopicPartition("t", 0)
NOW = FakeClock().now()


class Unreadable(InMemoryCluster):
    """An in-memory cluster that stops answering OffsetFetch once ``fails`` is set."""

    fails = False

    def committed(self, wanted: Any, *, wait: bool = True) -> Any:
        if self.fails:
            return {group: ClusterUnavailable("the cluster did not answer") for group in wanted}
        return super().committed(wanted, wait=wait)


@pytest.fixture
def cluster() -> Unreadable:
    """Return a cluster where group ``old`` has committed offset 4 in a partition with 10 records."""
    made = stopped({PARTITION: 4}, kind=Unreadable)
    assert isinstance(made, Unreadable)
    return made


def test_a_rollback_deletes_no_offset_that_it_cannot_read(cluster):
    """If a rollback can't read the target group's offset right before deleting it, the offset stays.

    The same rollback succeeds later.
    """
    receipt = Receipt((hand_over(cluster),))
    undo = replace(Execution.of(plan_rollback(cluster, receipt), NOW), number=2, verb=Verb.ROLLBACK)

    def record(_: Execution) -> None:
        cluster.fails = True

    done = write(cluster.clients, undo, record)
    (entry,) = (each for each in done.changes if each.group == "new")
    assert (entry.outcome, entry.error) == (
        Outcome.NOT_ATTEMPTED,
        "not rolled back, because the committed offset can't be read: the cluster did not answer",
    )
    cluster.fails = False
    assert cluster.offsets("new").get(PARTITION) is not None
    assert not write(cluster.clients, undo, lambda _: None).failed
    assert cluster.offsets("new").get(PARTITION) is None


@pytest.mark.parametrize(
    ("state", "then"), [(State.UNDONE, State.NEW), (State.HANDED_BACK, State.HANDED_BACK), (State.NEW, State.NEW)]
)
def test_a_refused_hand_over_hands_nothing_over(cluster, state, then):
    """If the broker refuses a further hand-over of a partition, its state does not change.

    Only the state ``undone`` becomes ``new`` (docs/run-states.md).
    """
    handed_over = hand_over(cluster)
    verb = Verb.ROLLBACK if state is State.UNDONE else Verb.HAND_BACK
    (entry,) = handed_over.changes
    if verb is Verb.HAND_BACK:
        change = structs.replace(entry, group="old", source_group="new", wanted=entry.after)
    else:
        change = structs.replace(entry, before=entry.after, after=None, source_group=None)
    back = replace(handed_over, number=2, verb=verb, changes=(change,))
    again = replace(handed_over, number=3, changes=(entry.refused("UNKNOWN_MEMBER_ID"),))
    earlier = (replace(again, number=1),) if state is State.NEW else (handed_over, back)
    for executions, expected in ((earlier, state), ((*earlier, again), then)):
        assert [partition.state for partition in Receipt(executions).partition_states.values()] == [expected]


def test_a_failed_save_of_the_receipt_is_repaired_by_the_next(tmp_path, monkeypatch, cluster):
    """If saving the receipt fails and the next save succeeds, no failure is reported any more."""
    execution = hand_over(cluster)
    file = ReceiptFile(tmp_path / "receipt.json")
    file.record(replace(execution, changes=()))

    def full(*_: object, **__: object) -> None:
        raise InvalidInput("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(receipt_file, "write_whole", full)
        file.record(execution)
    assert "could not be saved" in file.failure
    file.record(replace(execution, remarks=("read back",)))
    assert file.failure == ""


@pytest.mark.parametrize("microseconds", [253_402_300_800_000, 1_790_000_000_000_000])
def test_a_timestamp_beyond_the_calendar_is_shown_as_the_last_date(microseconds):
    """A timestamp that is too large for any date, such as one in microseconds, is shown as the last date."""
    assert rfc_3339(microseconds) == "9999-12-31T23:59:59.999Z"


def test_each_group_of_a_filter_must_be_in_the_snapshot(cluster):
    """If the snapshot lacks one of the requested groups, `Snapshot.filter` raises an error that names this group."""
    snapshot = Snapshot(take_snapshot(cluster, ["old"], FakeClock()))
    assert len(snapshot.filter(groups=["old"])) == 1
    with pytest.raises(InvalidInput, match="group absent not found in the file"):
        snapshot.filter(groups=["old", "absent"])


def test_two_keeper_messages_that_arrive_together_are_both_read(tmp_path, monkeypatch):
    """If the process that runs the sandbox's Kafka reports its start and its end at once, both messages are read."""
    (tmp_path / "supervisor.py").write_text(
        "import os, sys\n"
        "sys.stdin.readline()\n"
        """os.write(1, b'{"folder": "/no/such/folder", "pid": 1}\\n{"exit": 3, "log": "out of memory"}\\n')\n"""
        "sys.stdin.read()\n"
    )
    monkeypatch.setattr(supervisor, "__file__", str(tmp_path / "supervisor.py"))
    with keep(files={}, prepare=[], serve=[]) as kept:
        assert isinstance(kept.hear(20), ServerStarted)
        assert kept.hear(2) == Ended(exit_code=3, log="out of memory")
