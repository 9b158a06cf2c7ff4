"""Rollback, hand-back and delete-offsets after a write, whatever the groups had committed before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.ways_back.delete_source_offsets import delete_source_offsets
from migrate_groups.migration.ways_back.hand_back import plan_hand_back
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.migration.write import write
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import handed_over
from tests.support.stopped import carry_out

PARTITIONS = [TopicPartition("t", number) for number in range(4)]
OFFSETS = st.dictionaries(
    st.sampled_from(PARTITIONS),
    st.builds(CommittedOffset, offset=st.integers(0, 10), leader_epoch=st.just(0), metadata=st.text(max_size=3)),
)
OVERWRITE = WriteOptions(on_existing="overwrite", on_uncommitted="leave")


def cluster(**groups: dict[TopicPartition, CommittedOffset]) -> InMemoryCluster:
    made = InMemoryCluster()
    made.create_topic("t", len(PARTITIONS))
    for partition in PARTITIONS:
        made.produce(partition.topic, partition.partition, 10)
    for group, offsets in groups.items():
        made.alter(group, offsets)
    return made


def planned(made: InMemoryCluster, options: WriteOptions = OVERWRITE) -> Plan:
    return make_plan(made, handed_over(made, "old", "new"), options)


def migrate(made: InMemoryCluster, options: WriteOptions = OVERWRITE) -> Execution:
    return carry_out(made, planned(made, options))


def undo(made: InMemoryCluster, plan: Plan) -> None:
    assert carry_out(made, plan).failed == ()


@given(old=OFFSETS.filter(bool), new=OFFSETS)
@settings(deadline=None)
def test_rollback_undoes_apply(old, new):
    """A rollback restores exactly the offsets that the target group had before the write.

    A second rollback changes nothing.
    """
    made = cluster(old=old, new=new)
    before = made.offsets("new")
    receipt = migrate(made)
    assert {tp: made.offsets("new")[tp] for tp in old} == old
    if receipt.wrote_nothing:
        with pytest.raises(Refused, match="nothing to roll back"):
            plan_rollback(made, Receipt((receipt,)))
        return
    undo(made, plan_rollback(made, Receipt((receipt,))))
    assert made.offsets("new") == before
    assert plan_rollback(made, Receipt((receipt,))).to_write() == ()


@given(old=OFFSETS.filter(bool), done=st.lists(st.integers(0, 10), min_size=4, max_size=4))
@settings(deadline=None)
def test_hand_back_gives_the_source_group_the_targets_offsets(old, done):
    """`hand-back` gives the source group the target group's committed offset of each handed-over partition.

    The source group gets no offset in any other partition.
    """
    made = cluster(old=old)
    receipt = migrate(made)
    for partition in old:
        made.commit("new", partition, max(old[partition].offset, done[partition.partition]))
    undo(made, plan_hand_back(made, Receipt((receipt,)), FakeClock()))
    for partition, committed in ((each, made.offsets("old").get(each)) for each in PARTITIONS):
        if partition in old:
            assert committed is not None
            assert committed.offset == max(old[partition].offset, done[partition.partition])
        else:
            assert committed is None


@given(old=OFFSETS.filter(bool))
@settings(deadline=None)
def test_delete_offsets_deletes_only_handed_over_partitions(old):
    """`delete-offsets` deletes the source group's offsets of handed-over partitions, but not those of other topics."""
    made = cluster(old=old)
    made.create_topic("other", 1)
    receipt = migrate(made)
    made.commit("old", TopicPartition("other", 0), 0)
    undo(made, delete_source_offsets(one_cluster(made), Receipt((receipt,))))
    assert {each.topic for each in made.offsets("old")} == {"other"}


def test_a_resumed_run_keeps_the_before_offsets_of_the_first(monkeypatch):
    """A resumed run keeps the offsets that the interrupted run recorded as ``before``.

    If the offset to write is in place already, it is confirmed without being written again.
    """
    offset = CommittedOffset(offset=5, leader_epoch=0)
    made = cluster(old={PARTITIONS[0]: offset}, new={PARTITIONS[0]: CommittedOffset(offset=1)})
    plan = planned(made)
    states: list[Execution] = []
    write(made.clients, Execution.of(plan, FakeClock().now()), states.append)
    again = planned(made)
    assert again.intent == plan.intent
    writes = []
    monkeypatch.setattr(made, "alter", lambda *arguments: writes.append(arguments))
    execution = Receipt((states[0],)).begun(Verb.HAND_OVER, again, FakeClock().now())
    (entry,) = write(made.clients, execution, states.append).changes
    assert entry.before is not None
    assert (entry.outcome, entry.before.offset, entry.after) == (Outcome.CONFIRMED, 1, offset)
    assert writes == []


def test_a_resumed_run_that_writes_the_offset_from_before_again_has_written_it():
    """If a run resumes one that wrote another offset, and sets the offset from before again, it knows its own write.

    It does not take it for a commit of the target group.
    """
    before = CommittedOffset(offset=3, leader_epoch=0)
    made = cluster(old={PARTITIONS[0]: CommittedOffset(offset=8)}, new={PARTITIONS[0]: before})
    states: list[Execution] = []
    write(made.clients, Execution.of(planned(made), FakeClock().now()), states.append)
    made.alter("old", {PARTITIONS[0]: before})
    execution = Receipt((states[0],)).begun(Verb.HAND_OVER, planned(made), FakeClock().now())
    execution = write(made.clients, execution, states.append)
    assert [(each.outcome, each.before, each.after) for each in execution.changes] == [
        (Outcome.CONFIRMED, before, before)
    ]
    assert Receipt((execution,)).moved_since({change.order: change.before for change in planned(made).changes}) == []


def test_ways_back_that_would_repeat_records_are_refused():
    """If the target group has committed beyond the handed-over offset, a rollback is refused.

    If the target group's offset is lower, `delete-offsets` is refused.
    """
    made = cluster(old={PARTITIONS[0]: CommittedOffset(offset=5)})
    receipt = migrate(made)
    made.commit("new", PARTITIONS[0], 7)
    assert plan_rollback(made, Receipt((receipt,))).verdict is Verdict.REFUSE
    assert delete_source_offsets(one_cluster(made), Receipt((receipt,))).verdict is Verdict.PASS
    made.commit("new", PARTITIONS[0], 4)
    assert delete_source_offsets(one_cluster(made), Receipt((receipt,))).verdict is Verdict.REFUSE


@pytest.mark.parametrize("sign", ["none", "member", "commit"])
def test_delete_offsets_warns_about_a_target_group_that_was_never_seen_to_run(sign):
    """If a target group has no member and still has the handed-over offset, `delete-offsets` gives a warning.

    The warning says that the group was not seen to run.
    """
    made = cluster(old=dict.fromkeys(PARTITIONS, CommittedOffset(offset=5)))
    receipt = migrate(made)
    if sign == "member":
        made.join("new", Member(member_id="m", client_id="app", host="/h", assignment=frozenset(PARTITIONS)))
    elif sign == "commit":
        made.commit("new", PARTITIONS[0], 6)
    (found,) = (
        each
        for each in delete_source_offsets(one_cluster(made), Receipt((receipt,))).checks
        if each.name == "taken over"
    )
    assert found.verdict is (Verdict.WARN if sign == "none" else Verdict.PASS)
    assert ("target group new not seen to run" in found.reason) == (sign == "none")


def test_delete_offsets_takes_the_offset_from_before_for_no_sign_that_the_target_group_runs():
    """If the target group is back at its higher offset from before, `delete-offsets` gives the warning.

    A rollback with a copy of the receipt may have set it, so it does not show that the group consumes.
    """
    made = cluster(old={PARTITIONS[0]: CommittedOffset(offset=5)}, new={PARTITIONS[0]: CommittedOffset(offset=8)})
    receipt = migrate(made)
    made.alter("new", {PARTITIONS[0]: CommittedOffset(offset=8)})
    (found,) = (
        each
        for each in delete_source_offsets(one_cluster(made), Receipt((receipt,))).checks
        if each.name == "taken over"
    )
    assert (found.verdict, "target group new not seen to run" in found.reason) == (Verdict.WARN, True)


def test_a_rollback_does_not_need_the_logs_of_offsets_that_it_only_warns_about(monkeypatch):
    """If the logs can't be read, or have no leader, it is not known whether the offsets of a rollback are within.

    If the source group has lost an offset, the rollback writes it, and needs the log of its partition.
    """
    made = cluster(old={PARTITIONS[0]: CommittedOffset(offset=5)}, new={PARTITIONS[0]: CommittedOffset(offset=3)})
    receipt = Receipt((migrate(made),))

    def unavailable(partitions, *known):
        if partitions:
            raise ClusterUnavailable("broker 1 does not answer")
        return {}

    monkeypatch.setattr(made, "log_ranges", unavailable)
    plan = plan_rollback(made, receipt)
    (found,) = (each for each in plan.checks if each.name == "in range")
    assert (found.verdict, "broker 1 does not answer" in found.reason) == (Verdict.NOT_KNOWN, True)
    assert plan.refusals(at_the_write=True) == ()
    monkeypatch.setattr(made, "log_ranges", lambda partitions: {})
    (found,) = (each for each in plan_rollback(made, receipt).checks if each.name == "in range")
    assert (found.verdict, "t-0, t-0: no leader" in found.reason) == (Verdict.NOT_KNOWN, True)
    made.delete("old", [PARTITIONS[0]])
    (found,) = (each for each in plan_rollback(made, receipt).checks if each.name == "in range")
    assert (found.verdict, "t-0: no leader" in found.reason) == (Verdict.REFUSE, True)
    monkeypatch.setattr(made, "log_ranges", unavailable)
    with pytest.raises(ClusterUnavailable):
        plan_rollback(made, receipt)
