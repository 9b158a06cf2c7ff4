"""`rollback`, `hand-back`, `delete-offsets` and `reconcile` after runs that were partly done or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from migrate_groups.errors import Refused, Undetermined
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.ways_back.delete_source_offsets import delete_source_offsets
from migrate_groups.migration.ways_back.hand_back import plan_hand_back
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.migration.write import write
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Change, Outcome
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Verb
from tests.support import planning
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.stopped import carry_out, stopped

FIRST, SECOND, ADDED = (TopicPartition("t", number) for number in range(3))
NOW = FakeClock().now()


@pytest.fixture
def cluster() -> InMemoryCluster:
    """An in-memory cluster whose group ``old`` has committed offsets 4 and 6 in ``t``, and 1 in topic ``other``.

    Each partition has ten records.
    """
    return stopped({FIRST: 4, SECOND: 6, TopicPartition("other", 0): 1})


def handed_over(made: InMemoryCluster) -> Receipt:
    """Hand topic ``t`` over from group ``old`` to ``new``, and return the receipt."""
    rows = planning.handed_over(made, "old", "new").keep({"topic": ["t"]})
    return Receipt((carry_out(made, make_plan(made, rows, WriteOptions())),))


def check(plan: Plan, name: str) -> Verdict:
    (verdict,) = (each.verdict for each in plan.checks if each.name == name)
    return verdict


@pytest.mark.parametrize(
    ("start", "end", "verdict"),
    [(4, 10, Verdict.PASS), (0, 4, Verdict.PASS), (5, 10, Verdict.REFUSE), (0, 3, Verdict.REFUSE)],
)
def test_an_offset_outside_the_log_is_not_restored(cluster, start, end, verdict):
    """If a lost offset of the source group is outside the log by now, a rollback that would restore it is refused.

    Otherwise consumers would apply auto.offset.reset there.
    """
    receipt = handed_over(cluster)
    cluster.delete("old", [FIRST])
    cluster.delete_records("t", 0, start)
    if end < 10:
        cluster.elect("t", 0, end)
    plan = plan_rollback(cluster, receipt)
    assert check(plan, "in range") is verdict
    restored = [change for change in plan.changes if change.group == "old"]
    assert [(change.topic_partition, change.after and change.after.offset) for change in restored] == [(FIRST, 4)]


def test_a_rollback_that_was_interrupted_does_not_know_whether_its_target_group_has_committed(cluster):
    """If an offset is missing that an interrupted rollback may have deleted, the next rollback says what is not known.

    The target group may have committed in between, and this commit may have expired. If the offset is still there, no
    such commit is possible. Once the rollback is complete, its receipt has no open entry.
    """
    receipt = handed_over(cluster)
    plan = plan_rollback(cluster, receipt)
    assert check(plan, "not committed since") is Verdict.PASS
    open_receipt = receipt.with_execution(receipt.begun(Verb.ROLLBACK, plan, NOW))
    assert check(plan_rollback(cluster, open_receipt), "not committed since") is Verdict.PASS
    cluster.commit("new", SECOND, 8)
    cluster.delete("new", [SECOND])
    resumed = plan_rollback(cluster, open_receipt)
    (found,) = (each for each in resumed.checks if each.name == "not committed since")
    assert found.verdict is Verdict.NOT_KNOWN
    assert "new t-1: may have been deleted by the rollback that was interrupted" in found.reason
    assert not resumed.refusals(at_the_write=True)
    execution = write(cluster.clients, open_receipt.begun(Verb.ROLLBACK, resumed, NOW), lambda execution: None)
    done = open_receipt.with_execution(execution)
    assert check(plan_rollback(cluster, done), "not committed since") is Verdict.NOT_APPLICABLE


def test_an_entry_refused_before_its_request_has_no_write_of_its_run():
    """`Change.own`, the offsets that a run may have written, stays empty if the entry was refused before its request.

    If a request was sent, ``own`` contains the entry's offset once.
    """
    after = CommittedOffset(offset=5)
    entry = Change(source_group="old", group="new", topic="t", partition=0, after=after)
    assert entry.refused("no").own == ()
    assert entry.refused("no", sent=True).own == (after,)
    assert entry.refused("no", sent=True).refused("no", sent=True).own == (after,)


def test_a_hand_over_with_an_unknown_outcome_is_undetermined(cluster):
    """If the outcome of one partition's hand-over is unknown, `reconcile` does not judge the hand-over.

    The error names the partition, and says that `migrate` or `apply` has not finished.
    """
    (execution,) = handed_over(cluster).executions
    first, second = execution.changes
    unanswered = replace(execution, changes=(first, structs.replace(second, outcome=Outcome.UNKNOWN)))
    with pytest.raises(Undetermined, match="new t-1: migrate or apply has not finished"):
        Receipt((unanswered,)).hand_over_to_judge()


def test_a_refused_partition_of_the_last_hand_over_is_judged(cluster):
    """`reconcile` also judges a partition whose offset the broker refused, because it was meant to be handed over."""
    (execution,) = handed_over(cluster).executions
    first, second = execution.changes
    refused = replace(execution, changes=(first, second.refused("UNKNOWN_TOPIC_OR_PARTITION")))
    judged = Receipt((refused,)).hand_over_to_judge()
    assert [entry.outcome for entry in judged.changes] == [Outcome.CONFIRMED, Outcome.REFUSED]


def test_hand_back_omits_partitions_that_are_done_or_were_refused(cluster):
    """`hand-back` leaves out partitions that are handed back already, and those whose hand-over was refused."""
    (execution,) = handed_over(cluster).executions
    first, second = execution.changes
    with_refused = Receipt((replace(execution, changes=(first, second.refused("no"))),))
    plan = plan_hand_back(cluster, with_refused, FakeClock())
    assert [change.topic_partition for change in plan.changes] == [FIRST]
    receipt = handed_over(cluster)
    for partition, offset in ((FIRST, 5), (SECOND, 8)):
        cluster.commit("new", partition, offset)
    plan = plan_hand_back(cluster, receipt, FakeClock())
    begun = receipt.begun(Verb.HAND_BACK, plan, NOW)
    one, other = begun.changes
    half = replace(begun, changes=(structs.replace(one, outcome=Outcome.CONFIRMED), other))
    plan = plan_hand_back(cluster, receipt.with_execution(half), FakeClock())
    assert [change.topic_partition for change in plan.changes] == [SECOND]
    options = plan.options
    assert (options.on_existing, options.on_uncommitted, options.restore) == ("forward", "leave", False)


def test_a_hand_back_warns_of_topics_that_it_leaves_with_the_target_group(cluster):
    """If the target group has also committed in a topic that was not handed over, `hand-back` warns of this topic.

    The target group keeps its offsets there.
    """
    receipt = handed_over(cluster)
    plan = plan_hand_back(cluster, receipt, FakeClock())
    assert check(plan, "other topics") is Verdict.PASS
    cluster.commit("new", TopicPartition("other", 0), 0)
    plan = plan_hand_back(cluster, receipt, FakeClock())
    assert check(plan, "other topics") is Verdict.WARN
    assert "new keeps its offsets of topic other, which this run did not hand over" in str(plan.checks)
    assert {change.topic for change in plan.changes} == {"t"}


def test_a_partition_that_was_added_later_is_handed_back(cluster):
    """If the target group has committed in a partition added after the hand-over, `hand-back` hands this back too.

    The receipt then lists the partition as handed back.
    """
    receipt = handed_over(cluster)
    cluster.add_partitions("t", 3)
    cluster.produce(ADDED.topic, ADDED.partition, 5)
    cluster.commit("new", ADDED, 2)
    plan = plan_hand_back(cluster, receipt, FakeClock())
    done = write(cluster.clients, receipt.begun(Verb.HAND_BACK, plan, NOW), lambda _: None)
    assert cluster.offsets("old")[ADDED] == CommittedOffset(offset=2, leader_epoch=0)
    partition = receipt.with_execution(done).partition_states["new", "t", 2]
    assert (partition.state, partition.sources, partition.execution) == (State.HANDED_BACK, frozenset({"old"}), 2)
    assert (partition.change.source_group, partition.change.group) == ("old", "new")
    assert partition.change.outcome is Outcome.UNCHANGED


def test_a_resumed_rollback_keeps_confirmed_entries(cluster):
    """A resumed rollback keeps the confirmed entries of the receipt; only the other entries are still to be written."""
    receipt = handed_over(cluster)
    begun = receipt.begun(Verb.ROLLBACK, plan_rollback(cluster, receipt), NOW)
    one, other = begun.changes
    cluster.delete("new", [FIRST])
    half = receipt.with_execution(replace(begun, changes=(structs.replace(one, outcome=Outcome.CONFIRMED), other)))
    again = half.begun(Verb.ROLLBACK, plan_rollback(cluster, half), NOW)
    assert [(entry.topic_partition, entry.outcome) for entry in again.changes] == [
        (FIRST, Outcome.CONFIRMED),
        (SECOND, Outcome.NOT_ATTEMPTED),
    ]
    assert again.number == begun.number


@pytest.mark.parametrize(("topic", "verdict"), [("t", Verdict.REFUSE), ("other", Verdict.PASS)])
def test_delete_offsets_is_refused_while_a_source_member_is_on_the_topic(cluster, topic, verdict):
    """`delete-offsets` is refused while a member of the source group is subscribed to the topic of these offsets.

    A member on another topic does not prevent the deletion.
    """
    receipt = handed_over(cluster)
    partition = TopicPartition(topic, 0)
    held, subscribed = frozenset({partition}), frozenset({topic})
    cluster.join("old", Member(member_id="m", client_id="m", host="/h", assignment=held, subscription=subscribed))
    plan = delete_source_offsets(one_cluster(cluster), receipt)
    assert check(plan, "stopped") is verdict
    assert {(change.group, change.after, change.source_group) for change in plan.changes} == {("old", None, None)}
    assert [change.before and change.before.offset for change in plan.changes] == [4, 6]


def test_ways_back_of_a_run_that_wrote_nothing_are_refused(cluster):
    """If a run wrote no offset, `hand-back` and `delete-offsets` are refused, and the error gives this reason."""
    (execution,) = handed_over(cluster).executions
    refused = Receipt((replace(execution, changes=tuple(each.refused("no") for each in execution.changes)),))
    with pytest.raises(Refused, match="nothing to hand back: this run wrote nothing"):
        plan_hand_back(cluster, refused, FakeClock())
    with pytest.raises(Refused, match="nothing to delete: this run handed over no offset"):
        delete_source_offsets(one_cluster(cluster), refused)
