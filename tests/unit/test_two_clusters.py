"""A group is moved between two in-memory clusters. The target cluster has a mirror's copies of the source's records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from migrate_groups.errors import InvalidInput, PartlyApplied, Refused, UsageError
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.receipt_file import open_receipt
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.migration.clusters import Mirror, one_cluster
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import migrate, plan_migration
from migrate_groups.migration.ports import Clients, Side
from migrate_groups.migration.ways_back.go_back import go_back
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.renames import Rename, names_of_copies
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.claims import Claim, ClaimState, decode, encode
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster, InMemoryRecords
from tests.support.move import HERE, OPTIONS, THERE, Move


@pytest.fixture
def move(tmp_path) -> Move:
    """Return a move between two clusters, with a mirror that has copied nothing yet."""
    return Move(tmp_path)


class Written(Events):
    """Callbacks of a run: `writing`, which is called during the write, calls ``do``; the others do nothing."""

    def __init__(self, do: Callable[[], None]) -> None:
        self.do = do

    def writing(self, told_by: str) -> None:
        self.do()


def test_every_target_group_starts_at_the_translated_offset(move):
    """Each target group gets the source group's metadata, and the offset of the corresponding record on the target.

    If the mirror copied the record twice, this is the offset of the later copy.
    """
    move.groups = ["a", "b"]
    move.source.commit("g", HERE, 30, "mine")
    move.commit(30, 10)
    move.source.commit("g", HERE, 30, "mine")
    move.copy(0, 40)
    move.copy(20, 50)
    move.migrate()
    assert move.there("a") == move.there("b") == {0: 50, 1: 10}
    assert move.target.offsets("a").get(THERE).metadata == "mine"
    assert move.source.description("a").exists is False


def test_the_source_group_may_have_moved_on_while_offsets_were_translated(move):
    """If the source group commits while its target offsets are searched for, the write is refused."""
    move.commit(30, 10)
    move.copy(0, 50)
    read, later = InMemoryRecords.read, iter(range(31, 50))

    class Late(InMemoryRecords):
        def read(self, spans, *, committed_only):
            move.commit(next(later), 10)
            return read(self, spans, committed_only=committed_only)

    move.mirror = move.mirror._replace(source=Side(move.source, Late(move.source), move.source))
    assert move.verdict("not moved")[0] is Verdict.PENDING  # the plan is made again after the stop
    with pytest.raises(Refused, match="not moved: 1 committed offset moved"):
        move.migrate()
    assert move.there() == {}


def test_a_source_group_that_goes_on_after_the_write_is_named(move):
    """If the source group commits during the write, an error names the partition and the number of records.

    A re-run hands over the later offset.
    """
    move.commit(30, 10)
    move.copy(0, 50)
    with pytest.raises(PartlyApplied, match=r"orders-0 30 → 33 \(3 records\)"):
        move.migrate(events=Written(lambda: move.commit(33, 10)))
    move.migrate()
    assert move.there() == {0: 33, 1: 10}


def test_a_mirror_that_begins_again_after_the_write_is_named(move):
    """If the mirror copies old records again during the write, an error names the partition.

    A re-run writes the offset of the later copy. If the mirror copies only new records, there is no error.
    """
    move.commit(30, 10)
    move.copy(0, 40)
    guarded = WriteOptions(settle=0, guard=1)
    done = move.migrate(guarded, events=Written(lambda: move.copy(40, 50)))
    assert done.remarks == ()
    move.groups, guarded = ["other"], replace(guarded, copy=True)
    run = RunDir(move.folder / "other")
    with pytest.raises(PartlyApplied, match=r"after it \(eu.orders-0\). If the new groups have not started, run"):
        move.migrate(guarded, events=Written(lambda: move.copy(20, 50, 0)), run=run)
    (remark,) = receipt_json.load(run.receipt).executions[-1].remarks
    assert "1 partition with records from before the translated offset after it (eu.orders-0)" in remark
    assert move.there("other") == {0: 30, 1: 10}
    move.migrate(guarded, run=run)
    assert move.there("other") == {0: move.target.log_ranges([THERE])[THERE].end - 20, 1: 10}


def test_partitions_without_a_commit(move):
    """If the source group has no committed offset in a partition, the write is refused.

    With ``--on-uncommitted leave`` the partition is left out.
    """
    move.commit(30)
    move.copy(0, 50)
    verdict, reason = move.verdict("complete")
    assert (verdict, "orders-1" in reason) == (Verdict.REFUSE, True)
    move.migrate(WriteOptions(settle=0, guard=0, on_uncommitted="leave"))
    assert move.there() == {0: 30}


def test_offsets_of_the_source_that_expire_after_the_write(move):
    """If a source offset expires after the write, a re-run takes the offset from the receipt, with a warning."""
    move.commit(30, 10)
    move.copy(0, 50)
    move.migrate()
    move.source.delete("g", [HERE])
    move.migrate()
    assert move.verdict("removed")[0] is Verdict.WARN
    assert move.there() == {0: 30, 1: 10}


def test_the_receipt_is_of_this_source_and_this_target(move):
    """The receipt of a move between clusters names both of them.

    A run within one cluster is refused in the same run directory.
    """
    move.groups = ["a"]
    move.commit(30, 10)
    move.copy(0, 50)
    move.migrate()
    (execution,) = receipt_json.load(move.folder / "run" / "receipt.json").executions
    assert execution.translation is not None
    assert (execution.cluster_id, execution.translation.cluster_id) == ("target", "source")
    with pytest.raises(UsageError, match="receipt of another migration"):
        migrate(Clients(move.source, move.source), move.wanted(OPTIONS, mirror=None), move.clock, Events())


def test_what_cannot_be_moved(move):
    """A move between clusters is refused with ``--hold``, and if both clusters are the same.

    It is also refused if the target topic is missing, ambiguous or has more partitions than the source topic.
    """
    move.commit(30, 10)
    with pytest.raises(UsageError, match="drop --hold"):
        plan_migration(move.target, move.wanted(OPTIONS, hold=True), move.clock, Events())
    with pytest.raises(InvalidInput, match="is the source group"):
        plan_migration(move.source, move.wanted(OPTIONS, mirror=None), move.clock, Events())
    assert move.verdict("translated offsets")[0] is Verdict.PENDING
    move.copy(0, 50)
    move.target.add_partitions("eu.orders", 3)
    assert move.verdict("partitions")[0] is Verdict.REFUSE
    move.target.create_topic("orders", 2)
    with pytest.raises(InvalidInput, match="--rename-topic"):
        move.plan()
    move.mirror = move.mirror._replace(renames=[Rename.parse("orders=us.orders", "--rename-topic")])
    verdict, reason = move.verdict("translated offsets")
    assert (verdict, "no such partition on the target" in reason) == (Verdict.REFUSE, True)
    move.mirror = move.mirror._replace(target=move.mirror.source)
    with pytest.raises(InvalidInput, match="both clusters are the same"):
        move.plan()


def test_offsets_that_the_mirror_has_written(move):
    """If the target group already has offsets, which the mirror may have written, the write is refused.

    With ``--on-existing overwrite`` they are replaced. A warning says that the mirror may write them again.
    """
    move.commit(30, 10)
    move.copy(0, 50)
    move.target.commit("g", THERE, 25)
    assert move.verdict("existing offsets")[0] is Verdict.REFUSE
    verdict, reason = move.verdict("group sync")
    assert (verdict, "sync.group.offsets.enabled" in reason) == (Verdict.WARN, True)
    move.target.commit("g", THERE, 31)
    verdict, reason = move.verdict("group sync", WriteOptions(settle=0, guard=0, on_existing="forward"))
    assert (verdict, "g eu.orders-0 is at 31, not 30" in reason) == (Verdict.REFUSE, True)
    move.migrate(WriteOptions(settle=0, guard=0, on_existing="overwrite"))
    assert move.there() == {0: 30, 1: 10}


def test_an_offset_among_identical_records_is_accepted_at_its_price(move):
    """If identical records leave several possible target offsets, the write is refused.

    With ``--accept-reread 1`` a target offset is accepted if at most 1 record may be read again.
    """
    for number in range(2):
        for _ in range(4):
            move.source.produce("orders", number, 1, timestamp=60)
        move.source.produce("orders", number, 1, timestamp=61)
    move.commit(52, 10)
    move.copy(0, 52, 0)
    move.copy(51, 55, 0)
    move.copy(0, 55, 1)
    verdict, reason = move.verdict("translated offsets")
    assert (verdict, "orders-0 at 52 is ambiguous" in reason) == (Verdict.REFUSE, True)
    assert "pass --accept-reread 1" in reason
    accepted = WriteOptions(settle=0, guard=0, accept_reread=1)
    assert move.verdict("translated offsets", accepted)[0] is Verdict.WARN
    move.migrate(accepted)
    assert move.there()[0] in (51, 52)


def test_a_refused_offset_comes_with_the_remedy_of_its_status(move):
    """A copy that begins too late is mirrored anew; one with records of other producers, once these have stopped.

    Either way, the topic can be left out, and start at a time.
    """
    move.commit(10, 10)
    move.copy(20, 50)
    verdict, reason = move.verdict("translated offsets")
    assert (verdict, "orders-0 at 10 is gone" in reason) == (Verdict.REFUSE, True)
    by_time = "; or leave its topic out, and start it on the target with rewind --to-datetime and apply"
    assert reason.endswith(f"; mirror the topic anew, from its first record{by_time}")
    move.target.produce("eu.orders", 1, 2, timestamp=7)
    _, reason = move.verdict("translated offsets")
    assert "orders-1 at 10 is different" in reason
    assert "; or stop what filters the mirror or writes to the copy, and mirror the topic anew; or leave" in reason


def test_an_offset_below_the_log_start_is_raised_by_option(move):
    """If the source's committed offset is below the log start offset, the write is refused.

    With ``--on-out-of-range earliest``, the target gets the log start offset. A re-run with this option is accepted.
    """
    move.commit(10, 10)
    move.copy(0, 50)
    move.source.delete_records("orders", 0, 20)
    assert move.verdict("in range")[0] is Verdict.REFUSE
    raised = WriteOptions(settle=0, guard=0, on_out_of_range="earliest")
    move.migrate(raised)
    assert move.there() == {0: 20, 1: 10}
    move.migrate(raised)


def test_a_partition_that_retention_has_emptied(move):
    """If retention has deleted all records of the source, nothing can be compared: the write is refused.

    With ``--trust-copy`` for the topic, the target group starts at the copy's log end offset, and a warning says so.
    """
    move.commit(50, 10)
    move.copy(0, 50)
    move.source.delete_records("orders", 0, 50)
    verdict, reason = move.verdict("translated offsets")
    assert (verdict, "pass --trust-copy orders" in reason) == (Verdict.REFUSE, True)
    with pytest.raises(Refused):
        move.migrate()
    assert move.there() == {}
    trusted = replace(OPTIONS, trust_copy=("orders",))
    assert move.plan(trusted).intent != move.plan().intent
    verdict, reason = move.verdict("translated offsets", trusted)
    said = "1 exact, 1 trusted: no record was compared in 1 partition of topic orders (--trust-copy)"
    assert (verdict, reason) == (Verdict.WARN, said)
    execution = move.migrate(trusted)
    assert move.there() == {0: 50, 1: 10}
    assert execution.translation is not None
    assert [(each.position.compared, each.position.reason) for each in execution.translation.partitions] == [
        (0, "no record was compared (--trust-copy)"),
        (50, ""),
    ]
    assert execution.options.trust_copy == ("orders",)


def test_the_check_says_how_many_records_were_compared(move):
    """The check of the translated offsets says how many records were compared; at least how many in a partition."""
    move.commit(50, 10)
    move.copy(0, 50, 0)
    move.copy(0, 30, 1)
    assert move.verdict("translated offsets") == (Verdict.PASS, "2 exact; 80 records compared, at least 30 a partition")


def test_a_copy_that_loses_its_leader_has_no_translated_offset(move, monkeypatch):
    """If a target partition has no leader, the write is refused; its log end is not used as the target offset."""
    move.commit(0, 0)
    move.copy(0, 50)
    monkeypatch.setattr(move.target, "offsets_at", lambda timestamps: {})
    verdict, reason = move.verdict("translated offsets")
    assert (verdict, "has no leader on the target" in reason) == (Verdict.REFUSE, True)


def test_an_old_offset_on_the_target_where_nothing_is_handed_over(move):
    """If the target group has an offset in a partition that is not handed over, the write is refused.

    The group would otherwise start at this old offset.
    """
    move.commit(30)
    move.copy(0, 50)
    move.target.commit("g", TopicPartition("eu.orders", 1), 7)
    verdict, reason = move.verdict("existing offsets", WriteOptions(settle=0, guard=0, on_uncommitted="leave"))
    assert (verdict, "and stays there" in reason) == (Verdict.REFUSE, True)


def test_the_way_back_needs_a_run_directory_of_its_own(move):
    """After a move, a move in the other direction is refused in the same run directory.

    The receipt there is of another migration.
    """
    move.commit(30, 10)
    move.copy(0, 50)
    move.migrate()
    move.source.create_topic("us.eu.orders", 2)
    renames = [Rename.parse("eu.orders=us.eu.orders", "--rename-topic")]
    back = Mirror(move.mirror.target._replace(writer=move.target), move.mirror.source, renames)
    wanted = move.wanted(OPTIONS, mirror=back)
    spec = SplitSpec(source="g", targets=(SplitTarget(group="g", topics=(TopicPattern("eu.orders"),)),))
    wanted = replace(wanted, file=replace(wanted.file, spec=spec))
    for number in range(2):
        copied = move.target.records(TopicPartition("eu.orders", number), range(50), committed_only=False)
        move.source.append_copies("us.eu.orders", number, copied)
    with pytest.raises(UsageError, match="receipt of another migration"):
        migrate(Clients(move.source, move.source), wanted, move.clock, Events())


def test_the_wait_for_the_mirror_ends_when_a_check_refuses(move):
    """If the source group commits while `migrate` waits for the mirror after the stop, the write is refused at once."""
    move.commit(30, 10)
    move.copy(0, 35)
    move.clock = FakeClock(lambda: move.commit(41, 10))
    began = move.clock.monotonic()

    class Late(Events):
        def agrees(self, plan, *, provisional):
            move.commit(40, 10)
            return True

    with pytest.raises(Refused, match="not moved"):
        move.migrate(events=Late())
    assert move.clock.monotonic() - began < 5


def test_a_translated_offset_that_is_lost_is_named_also_with_an_approved_plan(move):
    """If the record to start at is deleted on the target, the error names the source's partition and offset.

    It does so even if the plan also differs from the approved one.
    """
    move.commit(30, 10)
    move.copy(0, 50)
    plan = move.plan()
    move.target.delete_records("eu.orders", 0, 45)
    with pytest.raises(Refused, match="orders-0 at 30 is gone"):
        move.migrate(approved=("plan.json", plan))


def test_a_group_that_keeps_its_name_is_renamed_on_the_target_only():
    """``--rename`` changes a group's name only on the target cluster, so a move can be rehearsed with another group."""
    spec = SplitSpec(source="g", targets=(SplitTarget(group="g", topics=(TopicPattern("orders"),)),))
    renamed = spec.renamed([Rename.parse("g=rehearsal", "--rename")])
    assert (renamed.source, renamed.targets[0].group) == ("g", "rehearsal")


def test_two_topics_with_one_copy(move):
    """If two source topics would have the same target topic, the move is refused.

    The target topic would contain the records of both.
    """
    move.source.create_topic("eu.orders", 2)
    move.commit(30, 10)
    move.copy(0, 50)
    assert names_of_copies(["orders"], ["eu.orders"]) == {"orders": "eu.orders"}
    with pytest.raises(InvalidInput, match=r"have one copy, 'eu\.orders'"):
        names_of_copies(["orders", "eu.orders"], ["eu.orders"])


def test_a_moved_group_hands_nothing_over_to_another_group(move):
    """After a move, no other run hands the group's partitions over: neither on its own cluster nor to another one.

    The same run may, also after a rollback on the target cluster, which does not reach the claims.
    """
    move.commit(30, 10)
    move.copy(0, 50)
    move.migrate()
    move.migrate()
    claims = decode(move.source.offsets(journal_group("g"))[HERE].metadata)
    assert claims is not None
    assert [(each.state, each.groups, each.cluster) for each in claims] == [(ClaimState.HANDED_OVER, ("g",), "target")]
    said = (
        r"journal: orders-0, orders-1 handed over from 'g' to 'g' on cluster target on .*: go on from 'g' there; or, "
    )
    here = replace(move.wanted(OPTIONS, run=RunDir(move.folder / "here")), mirror=None)
    spec = SplitSpec(source="g", targets=(SplitTarget(group="x", topics=(TopicPattern("orders"),)),))
    with pytest.raises(Refused, match=said):
        migrate(
            Clients(move.source, move.source),
            replace(here, file=replace(here.file, spec=spec)),
            move.clock,
            Events(),
        )
    move.groups = ["x"]
    with pytest.raises(Refused, match=said):
        move.migrate(run=RunDir(move.folder / "there"))
    move.groups = ["g"]
    with open_receipt(move.folder / "run" / "receipt.json") as file:
        go_back(one_cluster(Clients(move.target, move.target)), Verb.ROLLBACK, file, move.clock, Events())
    move.migrate()
    assert move.there() == {0: 30, 1: 10}


def refuse_writes(monkeypatch: pytest.MonkeyPatch, cluster: InMemoryCluster) -> None:
    """Make the brokers of a cluster refuse every offset."""
    no = WriteAnswer(answer=Answer.REFUSED, error="refused")
    monkeypatch.setattr(
        cluster, "alter_offsets", lambda offsets: {group: dict.fromkeys(of, no) for group, of in offsets.items()}
    )


def test_a_move_that_can_not_claim_writes_nothing(move, monkeypatch):
    """If the source cluster refuses the claims of a move, nothing is written on the target cluster."""
    move.commit(30, 10)
    move.copy(0, 50)
    refuse_writes(monkeypatch, move.source)
    with pytest.raises(PartlyApplied, match="2 partitions not confirmed"):
        move.migrate()
    assert move.there() == {}


def test_a_move_of_which_nothing_was_written_claims_nothing(move, monkeypatch):
    """If brokers of the target cluster refuse the whole write of a move, its claims are released."""
    move.commit(30, 10)
    move.copy(0, 50)
    refuse_writes(monkeypatch, move.target)
    with pytest.raises(PartlyApplied):
        move.migrate()
    claims = decode(move.source.offsets(journal_group("g"))[HERE].metadata)
    assert claims is not None
    assert claims[0].state is ClaimState.RETURNED


def test_a_group_that_has_handed_over_to_another_group_is_not_moved(move):
    """If a run has handed a partition over on the source group's cluster, a move of the group is refused."""
    move.commit(30, 10)
    move.copy(0, 50)
    claim = Claim("run1", ClaimState.HANDED_OVER, ("x",), FakeClock().now())
    move.source.commit(journal_group("g"), HERE, 30, encode((claim,)))
    with pytest.raises(
        Refused, match=r"journal: orders-0, orders-1 handed over from 'g' to 'x' on .* by run run1: go on from"
    ):
        move.migrate()
    move.migrate(replace(OPTIONS, copy=True))
    assert move.there() == {0: 30, 1: 10}
