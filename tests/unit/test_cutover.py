"""Cut-overs on the in-memory cluster, in cases that could skip a record or repeat one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from migrate_groups.cli import console
from migrate_groups.errors import PendingCommits, Refused
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.guard import look_at_watched
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.ways_back.delete_source_offsets import delete_source_offsets
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.intent import resumed_differently
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import Receipt
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import SplitSpec, SplitTarget, split
from tests.support.clock import FakeClock
from tests.support.connected import MIGRATE, SPEC, Connected
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
from tests.support.in_memory import Asked, InMemoryCluster
from tests.support.planning import cut_over, prepare
from tests.support.stopped import carry_out


def test_the_plan_of_a_migration_equals_snapshot_and_split():
    """``migrate`` plans the same rows as ``snapshot`` followed by ``split``."""
    made = cluster()
    for wanted in (spec(), spec("cat")):
        parts, _ = split(take_snapshot(made, ["big"], FakeClock()), wanted)
        assert [*prepare(made, wanted, LEAVE, FakeClock()).rows()] == [*parts.rows()]


END = WriteOptions(on_uncommitted="latest", settle=0)


def test_a_log_end_counts_only_if_read_while_the_topic_has_a_member():
    """With ``on_uncommitted=latest``, a new group starts at the log end read while a member still consumed the topic.

    A log end that is read after this member has left is not used.
    """
    made = cluster()
    made.join("big", member("a", INV, FRESH))
    made.join("big", member("b", CAT))
    receipt = migrate(
        made,
        spec(),
        END,
        lambda: None,
        lambda: made.leave("big", "a"),
        lambda: made.produce("inv", 1, 7),
        lambda: None,
        lambda: made.leave("big", "b"),
    )
    assert receipt.failed == ()
    assert committed_offset(made, "bill", FRESH) == 50


def test_a_topic_without_a_proven_log_end_is_refused():
    """With ``on_uncommitted=latest``, a topic that no member consumed is refused, and nothing is written.

    The reason: its log end was never read while a member consumed the topic.
    """
    made = cluster()
    made.join("big", member("b", CAT))
    with pytest.raises(Refused, match=r"without a committed offset|log end offset was never read"):
        migrate(made, spec(), END, lambda: made.leave("big", "b"))
    assert not made.description("bill").exists


def test_by_topic_a_log_end_read_after_the_release_does_not_count():
    """With ``on_uncommitted=latest``, a moved topic without a member is refused.

    This holds even while the source group has a member on a topic that stays.
    """
    made = cluster()
    made.join("big", member("b", CAT))
    with pytest.raises(Refused, match="log end offset was never read"):
        migrate(made, spec("cat"), END)


def test_a_resumed_run_takes_proven_log_ends_from_the_receipt():
    """With ``on_uncommitted=latest``, a resumed run starts the target group at the log end in the receipt.

    This log end was read by the first run, while the source group still had a member.
    """
    made = cluster()
    made.join("big", member("a", INV, FRESH, CAT))
    receipt = migrate(made, spec(), END, lambda: None, lambda: made.leave("big", "a"))
    made.produce("inv", 1, 7)
    again = migrate(made, spec(), END, earlier=receipt)
    assert again.intent == receipt.intent
    assert {entry.outcome for entry in again.changes} == {Outcome.CONFIRMED}
    assert committed_offset(made, "bill", FRESH) == 50


def test_a_topic_recreated_during_the_wait_is_refused():
    """If a topic is deleted and created again during the wait for the members to leave, the hand-over is refused."""
    made = cluster()
    made.join("big", member("a", INV, FRESH, CAT))

    def recreate() -> None:
        made.delete_topic("inv")
        made.create_topic("inv", 2)
        made.leave("big", "a")

    with pytest.raises(Refused, match="inv deleted and created again"):
        migrate(made, spec(), WriteOptions(on_uncommitted="earliest", on_removed="restore", settle=0), recreate)


def test_a_topic_that_a_member_takes_up_during_the_wait_is_refused():
    """If a member takes up a new topic during the wait for the stop, the hand-over is refused and names the topic."""
    made = cluster()
    made.join("big", member("a", INV, FRESH, CAT))
    glob = SplitSpec(source="big", targets=(SplitTarget(group="bill", topics=(TopicPattern("*"),)),))

    def join_on_new() -> None:
        made.create_topic("new", 1)
        made.leave("big", "a")
        made.join("big", member("b", INV, TopicPartition("new", 0)))

    with pytest.raises(Refused, match=r"topics changed since the plan was shown: new \(bill\)"):
        migrate(made, glob, LEAVE, join_on_new, lambda: made.leave("big", "b"))
    assert not made.description("bill").exists


def test_a_staying_topic_may_have_no_commit():
    """If a topic under ``stay`` has no committed offset, the split is still valid, also after its members have left."""
    made = cluster()
    made.create_topic("legacy", 1)
    made.join("big", member("a", INV, FRESH, CAT, TopicPartition("legacy", 0)))
    receipt = migrate(made, spec("cat", "legacy"), LEAVE, lambda: made.leave("big", "a"))
    assert [entry.topic_partition for entry in receipt.changes] == [INV]
    assert receipt.failed == ()


class Transacting(InMemoryCluster):
    """A cluster where a transactional commit of group ``big`` is pending for the next ``questions`` offset reads."""

    questions = 0

    def fetched(self, group, partitions, *, wait):
        if group != "big" or not self.questions:
            return super().fetched(group, partitions, wait=wait)
        if not wait:
            return dict.fromkeys(self.offsets(group))
        self.questions -= 1
        raise PendingCommits("a commit is pending")


def test_a_transaction_that_is_pending_after_the_last_member_left_is_waited_for():
    """If a transactional commit is pending after the last member has left, the run waits until the transaction ends.

    This holds even with ``settle=0``.
    """
    made = cluster(Transacting)
    assert isinstance(made, Transacting)
    made.join("big", member("a", INV, FRESH, CAT))

    def leaves() -> None:
        made.leave("big", "a")
        made.questions = 3

    receipt = migrate(made, spec(), LEAVE, leaves)
    assert receipt.failed == ()
    assert made.questions == 0


class Rebalancing(InMemoryCluster):
    """A cluster that describes a group as rebalancing in description number ``due`` of ``old``, and then as Stable."""

    described, due = 0, 0

    def describe_groups(self, groups):
        found = super().describe_groups(groups)
        self.described += "old" in found
        if "old" in found and self.described == self.due:
            found = {**found, "old": replace(self.description("old"), state="Assigning")}
        return found


def test_a_group_that_rebalances_at_any_moment_is_waited_for(tmp_path, monkeypatch):
    """If a group that keeps topics rebalances at any moment before the write, ``migrate`` waits, and hands over.

    While it rebalances, the group does not show who has the moved topics.
    """
    for due in range(1, 100):
        (folder := tmp_path / str(due)).mkdir()
        rebalancing = Rebalancing()
        here = Connected(folder, monkeypatch, rebalancing)
        here.cluster.create_topic("stays", 1)
        here.cluster.commit("old", TopicPartition("stays", 0), 0)
        here.cluster.join("old", member("a", TopicPartition("stays", 0)))
        (folder / "split.toml").write_text(SPEC.replace("[options]", '[stay]\ntopics = ["stays"]\n[options]'))
        rebalancing.due = due
        code, _, err = here.outcome(*MIGRATE, "--wait", "60s")
        assert code == 0, err
        if rebalancing.described < due:
            break
    assert here.offset("new") == 5
    assert 4 < due < 99


@pytest.mark.parametrize("change", ["delete", "commit elsewhere"])
def test_topics_that_change_during_the_wait_are_refused(change):
    """If the source group gains or loses a topic after the plan was shown, the write is refused and names the topic."""
    made = cluster()
    made.join("big", member("a", INV, FRESH, CAT))
    made.create_topic("other", 1)

    def changes() -> None:
        made.leave("big", "a")
        made.delete_topic("cat") if change == "delete" else made.commit("big", TopicPartition("other", 0), 0)

    with pytest.raises(Refused, match=r"the group's topics changed since .* (cat|other).*; nothing was written"):
        migrate(made, spec(), LEAVE, changes)


def test_by_topic_a_topic_whose_commits_expire_during_the_wait_is_restored():
    """With ``on_removed=restore``, the target group gets offsets that expire in the source group during the wait."""
    made = cluster()
    made.join("big", member("a", INV, FRESH, CAT))

    def unsubscribe() -> None:
        made.join("big", member("a", CAT))
        made.delete("big", [INV])

    migrate(made, spec("cat"), WriteOptions(on_uncommitted="earliest", on_removed="restore", settle=0), unsubscribe)
    assert committed_offset(made, "bill", INV) == 5


def test_an_offset_that_expires_during_the_settle_is_restored_as_it_was_after_the_stop():
    """With ``on_removed=restore``, the target group gets the last offset that was read, not the one of the plan."""
    made = cluster()
    made.join("big", member("a", INV, FRESH, CAT))

    def stop() -> None:
        made.commit("big", INV, 9)
        made.leave("big", "a")
        made.join("big", member("a", CAT))

    options = WriteOptions(on_uncommitted="earliest", on_removed="restore", settle=3)
    migrate(made, spec("cat"), options, stop, lambda: made.delete("big", [INV]))
    assert committed_offset(made, "bill", INV) == 9


def test_a_run_that_ended_is_not_resumed():
    """After a finished migration, a second one records the target group's present offset as ``before``."""
    made = cluster()
    options = WriteOptions(on_uncommitted="leave", on_existing="overwrite", settle=0)
    first = migrate(made, spec(), options)
    made.commit("bill", INV, 9)
    made.commit("big", INV, 10)
    plan = make_plan(made, SnapshotTable.of_rows(prepare(made, spec(), options, FakeClock()).rows()), options)
    (moved,) = Receipt((first,)).moved_since({change.order: change.before for change in plan.changes})
    assert moved.order == ("bill", "inv", 0)
    second = migrate(made, spec(), options, earlier=first)
    assert [entry.before and entry.before.offset for entry in second.changes if entry.topic == "inv"] == [9]


def test_a_resumed_run_hands_over_the_present_source_offset():
    """A resumed run hands over the source group's present offset, and keeps the ``before`` offset of the first run."""
    made = fully_committed()
    first = migrate(made, spec(), LEAVE)
    made.commit("big", INV, 8)
    again = migrate(made, spec(), LEAVE, earlier=first)
    assert committed_offset(made, "bill", INV) == 8
    assert {entry.outcome for entry in again.changes} == {Outcome.CONFIRMED}
    assert {entry.before for entry in again.changes} == {None}
    carry_out(made, plan_rollback(made, Receipt((again,))))
    assert made.offsets("bill") == {}


def test_a_target_offset_that_changed_after_a_kill_is_refused():
    """If another client changes a target offset after an interrupted run, the resumed run is refused."""
    made = fully_committed()
    first = migrate(made, spec(), LEAVE)
    made.commit("big", INV, 8)
    made.commit("bill", INV, 6)
    with pytest.raises(Refused, match="bill inv-0 is at 6, not 8"):
        migrate(made, spec(), LEAVE, earlier=first)


def test_partitions_added_after_a_kill_start_at_the_log_start():
    """If a topic gets partitions after an interrupted run, the resumed run starts them at their log start."""
    made = fully_committed()
    refuse = WriteOptions(settle=0)
    first = migrate(made, spec(), refuse)
    made.add_partitions("inv", 3)
    made.produce("inv", 2, 4)
    again = migrate(made, spec(), refuse, earlier=first)
    added = TopicPartition("inv", 2)
    assert committed_offset(made, "bill", added) == 0
    assert (
        resumed_differently(Receipt((first,)), prepare(made, spec(), refuse, FakeClock(), Receipt((again,))).plan) == []
    )
    assert again.failed == ()


def test_another_topic_or_option_is_another_migration():
    """If a topic or an option of a run differs from the receipt, `resumed_differently` names the difference."""
    made = fully_committed()
    first = migrate(made, spec("cat"), LEAVE)

    def differences(*stay: str, options: WriteOptions = LEAVE) -> list[str]:
        return resumed_differently(Receipt((first,)), prepare(made, spec(*stay), options, FakeClock()).plan)

    assert differences("cat") == []
    assert differences() == ["topic cat from big to shop is new"]
    other = replace(LEAVE, on_existing="forward")
    assert differences("cat", options=other) == ["option on_existing was refuse, is forward"]
    assert differences("cat", options=replace(LEAVE, settle=1, guard=1, second_client="none")) == []


def test_an_added_partition_with_a_source_commit_is_the_same_migration():
    """If the source group commits in a partition that was added after a run, a re-run hands this offset over.

    It is not taken for a different migration. Until the re-run, delete-offsets is refused.
    """
    made = fully_committed()
    first = migrate(made, spec(), WriteOptions(settle=0))
    made.add_partitions("inv", 3)
    made.produce("inv", 2, 4)
    second = migrate(made, spec(), WriteOptions(settle=0), earlier=first)
    added = TopicPartition("inv", 2)
    made.commit("big", added, 3)
    (moved,) = look_at_watched(made, second).moved
    assert "inv-2 0 → 3 (3 records)" in moved
    assert delete_source_offsets(one_cluster(made), Receipt((second,))).verdict is Verdict.REFUSE
    shown = prepare(made, spec(), WriteOptions(settle=0), FakeClock(), Receipt((second,))).plan
    assert resumed_differently(Receipt((second,)), shown) == []
    migrate(made, spec(), WriteOptions(settle=0), earlier=second)
    assert committed_offset(made, "bill", added) == 3


def test_another_clients_commit_is_the_before_offset_of_the_next_run():
    """If another client commits in the target group after a run, the next run records this offset as ``before``."""
    made = fully_committed()
    made.commit("bill", INV, 3)
    options = WriteOptions(on_uncommitted="leave", on_existing="overwrite", settle=0)
    first = migrate(made, spec(), options)
    made.commit("bill", INV, 7)
    met = replace(first, changes=tuple(structs.replace(each, outcome=Outcome.REFUSED) for each in first.changes))
    second = migrate(made, spec(), options, earlier=met)
    assert [each.before and each.before.offset for each in second.changes if each.topic_partition == INV] == [7]


@pytest.mark.parametrize("on_removed", ["refuse", "restore"])
def test_a_source_commit_that_expires_after_a_kill_is_handed_over(on_removed):
    """If a source commit expires after an interrupted run, the next run hands over the offset in the receipt.

    It does not start the target group at the log start.
    """
    made = fully_committed()
    options = WriteOptions(on_uncommitted="earliest", on_removed=on_removed, settle=0)
    first = migrate(made, spec(), options)
    made.delete("big", [INV, FRESH])
    again = migrate(made, spec(), options, earlier=first)
    assert again.failed == ()
    assert committed_offset(made, "bill", INV) == 5
    assert (
        resumed_differently(Receipt((first,)), prepare(made, spec(), options, FakeClock(), Receipt((first,))).plan)
        == []
    )


def test_forward_keeps_the_offset_of_a_target_that_is_ahead():
    """With ``on_existing=forward``, a higher target offset is kept.

    The check for late commits then starts from the source group's offset at the hand-over.
    """
    made = fully_committed()
    made.commit("bill", INV, 9)
    receipt = migrate(made, spec(), WriteOptions(on_existing="forward", settle=0))
    assert committed_offset(made, "bill", INV) == 9
    assert look_at_watched(made, receipt).moved == ()
    made.commit("bill", INV, 10)
    made.commit("shop", CAT, 10)
    assert delete_source_offsets(one_cluster(made), Receipt((receipt,))).verdict is Verdict.PASS
    made.commit("big", INV, 7)
    (moved,) = look_at_watched(made, receipt).moved
    assert "inv-0 5 → 7 (2 records)" in moved
    assert delete_source_offsets(one_cluster(made), Receipt((receipt,))).verdict is Verdict.REFUSE


def test_a_hold_on_a_group_that_never_had_a_member_is_a_warning():
    """If a source group never had a member, the check of ``--hold`` warns. Without Read on the group, it refuses."""
    made = fully_committed()

    def check():
        return prepare(made, spec(), LEAVE, FakeClock(), hold=True).plan.checks[-1]

    assert (check().name, check().verdict) == ("hold", Verdict.WARN)
    made.join("big", member("a", INV))
    assert check().verdict is Verdict.PASS
    made.deny(Resource(ResourceType.GROUP, "big"), Operation.READ)
    assert check().verdict is Verdict.REFUSE


class OtherWriter(InMemoryCluster):
    """A cluster on which another client commits in inv-0 right after each write."""

    def alter(self, group, offsets):
        answers = super().alter(group, offsets)
        self.commit(group, INV, 7)
        return answers


def test_another_clients_commit_is_reported_and_not_overwritten():
    """If another client commits right after the write, the receipt reports this commit, and it is not overwritten."""
    made = OtherWriter()
    made.create_topic("inv", 1)
    made.produce("inv", 0, 10)
    made.commit("big", INV, 5)
    wanted = SplitSpec(source="big", targets=(SplitTarget(group="bill", topics=(TopicPattern("inv"),)),))
    receipt = migrate(made, wanted, LEAVE)
    (entry,) = receipt.failed
    assert (entry.outcome, entry.attempts) == (Outcome.REFUSED, 1)
    assert "which another client committed" in entry.error
    assert made.offsets("bill").get(INV) == CommittedOffset(offset=7, leader_epoch=0)


def test_messages_show_group_names_unchanged(capsys):
    """Brackets in a group's name are not taken for markup, and a newline in the name does not break the line."""
    console.talk("snapshot app[prod] a[/b] x\ny")
    assert capsys.readouterr().err == "snapshot app[prod] a[/b] x\\ny\n"


class Recording(Asked):
    """A cluster that records the names of the requests made to it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def before_request(self, name: str) -> None:
        if name not in ("committed", "describe_with_offsets", "at_once"):  # it asks the others in their place
            self.asked.append(name)

    def committed(self, wanted, *, wait=True):
        self.asked += ["all committed" if partitions is None else "committed" for partitions in wanted.values()]
        return super().committed(wanted, wait=wait)


def test_between_stop_and_write_nothing_is_read_twice():
    """While the source group runs, it is described, and the logs are read once. Then its offsets are read once.

    Log ends from before the stop are used again, unless a committed offset exceeds one of them.
    """
    made = cluster(Recording)
    assert isinstance(made, Recording)
    made.commit("big", FRESH, 1)
    made.join("big", member("old", INV, CAT))
    clock = FakeClock()
    shown = prepare(made, spec(), LEAVE, clock)
    made.asked.clear()

    def leave(reasons, looks, seconds) -> None:
        asked = [name for name in made.asked if name != "describe_topics"]
        made.asked.clear()
        if any(reasons.values()):
            # Of the source group, and of the target groups with the logs.
            assert asked == ["describe_groups", "describe_groups", "log_ranges"]
            made.produce("inv", 0, 4)
            made.produce("cat", 0, 4)
            made.commit("big", CAT, 12)
            made.leave("big", "old")
        else:
            assert asked == ["describe_groups"]

    final = cut_over(made, shown, clock, leave)
    with_checkpoint = ["describe_after_ends", "log_ranges", "describe_groups", "all committed"]
    # The logs twice, because the commit exceeds a log end offset from before.
    of_its_topics = ["describe_topics", "cluster_id", "log_ranges", "committed", "log_ranges"]
    of_the_targets = ["describe_groups", "all committed", "all committed"]
    assert made.asked == [*with_checkpoint, *of_its_topics, *of_the_targets, "describe_groups", "epoch_ends"]
    ends = {str(partition): bounds.end for partition, bounds in final.reading.bounds.items()}
    assert ends == {"inv-0": 10, "inv-1": 50, "cat-0": 14}
