"""Rollback and hand-back after a cut-over, in cases that could skip a record or repeat one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate_groups.errors import Refused
from migrate_groups.migration.ways_back.hand_back import plan_hand_back
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.migration.write import write
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from tests.support.clock import FakeClock
from tests.support.cut_overs import (
    CAT,
    FRESH,
    INV,
    LEAVE,
    cluster,
    committed_offset,
    fully_committed,
    member,
    migrate,
    spec,
)
from tests.support.in_memory import InMemoryCluster
from tests.support.stopped import carry_out


class LosesWrites(InMemoryCluster):
    """A cluster that loses writes and answers them with a time-out, while ``lost`` is set."""

    lost = False

    def alter(self, group, offsets):
        if self.lost:
            return dict.fromkeys(offsets, WriteAnswer(answer=Answer.UNKNOWN, error="timed out"))
        return super().alter(group, offsets)


def test_a_run_that_was_interrupted_twice_can_be_resumed_and_rolled_back():
    """If two runs of a migration fail, a third run and a rollback recognise the offsets that the earlier runs wrote."""
    made = fully_committed(LosesWrites)
    assert isinstance(made, LosesWrites)
    first = migrate(made, spec(), LEAVE)
    made.commit("big", INV, 8)
    made.lost = True
    second = migrate(made, spec(), LEAVE, earlier=first)
    (entry,) = second.failed
    assert (entry.outcome, entry.attempts, entry.error) == (Outcome.UNKNOWN, 2, "timed out")
    made.lost = False
    assert plan_rollback(made, Receipt((second,))).verdict is Verdict.PASS
    made.commit("big", INV, 9)
    third = migrate(made, spec(), LEAVE, earlier=second)
    assert third.failed == ()
    assert committed_offset(made, "bill", INV) == 9
    carry_out(made, plan_rollback(made, Receipt((third,))))
    assert made.offsets("bill") == {}


def test_hand_back_without_target_offsets_is_refused():
    """If the target groups have no committed offset on the moved topics, hand-back is refused."""
    made = fully_committed()
    receipt = migrate(made, spec("cat"), LEAVE)
    made.delete("bill", [INV, FRESH])
    made.commit("bill", CAT, 1)
    with pytest.raises(Refused, match="bill committed nothing on the topics that were handed over"):
        plan_hand_back(made, Receipt((receipt,)), FakeClock())


@pytest.mark.parametrize("lost", [[INV], [INV, CAT]])
def test_rollback_restores_commits_that_the_source_group_lost(lost):
    """If the source group lost committed offsets after the hand-over, a rollback restores them, metadata included.

    It also deletes the target groups' offsets.
    """
    made = cluster()
    made.commit("big", INV, 5, metadata="where I was")
    before = made.offsets("big")
    receipt = Receipt((migrate(made, spec(), LEAVE),))
    made.delete("big", lost)
    plan = plan_rollback(made, receipt)
    assert [(change.group, change.topic_partition) for change in plan.changes if change.source_group] == [
        ("big", partition) for partition in sorted(lost)
    ]
    carry_out(made, plan)
    assert made.offsets("big") == before
    assert not made.offsets("bill")
    assert not made.offsets("shop")


def test_rollback_is_refused_if_the_source_group_lost_offsets_and_has_members():
    """If the source group lost offsets and has members, rollback is refused, and the error names the partitions."""
    made = cluster()
    receipt = Receipt((migrate(made, spec(), LEAVE),))
    made.delete("big", [INV])
    made.join("big", member("a", CAT))
    (refusal,) = plan_rollback(made, receipt).refusals(at_the_write=True)
    assert refusal.name == "source group"
    assert "big no longer has a committed offset for inv-0, and is Stable with 1 member" in refusal.reason


@pytest.mark.parametrize("before", [None, 9])
def test_rollback_changes_no_target_offset_if_restoring_the_source_fails(before):
    """If the source group's lost offset can't be restored, a rollback deletes or restores no offset of a target group.

    It can be resumed.
    """
    made = cluster(LosesWrites)
    assert isinstance(made, LosesWrites)
    if before is not None:
        made.commit("bill", INV, before)
    receipt = Receipt((migrate(made, spec(), replace(LEAVE, on_existing="overwrite")),))
    made.delete("big", [INV])
    plan = plan_rollback(made, receipt)
    made.lost = True
    execution = write(made.clients, receipt.begun(Verb.ROLLBACK, plan, FakeClock().now()), lambda execution: None)
    assert {entry.group: str(entry.outcome) for entry in execution.changes} == {
        "big": "unknown",
        "bill": "not attempted",
        "shop": "not attempted",
    }
    assert committed_offset(made, "bill", INV) == 5
    made.lost = False
    halfway = receipt.with_execution(execution)
    again = halfway.begun(Verb.ROLLBACK, plan_rollback(made, halfway), FakeClock().now())
    done = halfway.with_execution(write(made.clients, again, lambda execution: None))
    assert done.is_done(Verb.ROLLBACK)
    assert len(done.executions) == 2
    assert committed_offset(made, "big", INV) == 5
    assert committed_offset(made, "bill", INV) == before


def test_hand_back_includes_partitions_without_a_commit_at_the_migration():
    """If a partition had no source offset at the hand-over, hand-back writes the target group's committed offset."""
    made = cluster()
    receipt = migrate(made, spec(), LEAVE)
    made.commit("bill", FRESH, 40)
    carry_out(made, plan_hand_back(made, Receipt((receipt,)), FakeClock()))
    assert committed_offset(made, "big", FRESH) == 40


@pytest.mark.parametrize("way_back", [plan_rollback, lambda made, receipt: plan_hand_back(made, receipt, FakeClock())])
def test_an_expired_target_offset_refuses_both_ways_back(way_back):
    """If a target offset written by the hand-over has expired, rollback and hand-back are refused.

    The target group's progress is then not known.
    """
    made = cluster()
    receipt = Receipt((migrate(made, spec(), LEAVE),))
    made.commit("bill", INV, 9)
    made.delete("bill", [INV])
    try:
        complaint = " ".join(check.reason for check in way_back(made, receipt).refusals(at_the_write=True))
    except Refused as error:
        complaint = str(error)
    assert "bill inv-0" in complaint
    assert "it is not known" in complaint
