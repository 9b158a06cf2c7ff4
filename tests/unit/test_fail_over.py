"""Fail over to the cluster of a mirror's copies, from offsets that ``compare`` has kept, on two clusters in memory.

The source cluster is not asked: only the target cluster's client is passed.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import migrate_groups as mg
from migrate_groups.errors import InvalidInput, Refused
from migrate_groups.files import kept_offsets_json
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.compared import compared
from migrate_groups.files.runs.receipt_file import open_receipt
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.migration.across.compare import compare
from migrate_groups.migration.clusters import Clusters, one_cluster
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import watched
from migrate_groups.migration.hand_over.fail_over import fail_over, plan_fail_over
from migrate_groups.migration.hand_over.migrate import plan_migration
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.run_status import Answer, run_status
from migrate_groups.migration.ways_back.go_back import go_back
from migrate_groups.migration.write_result import WriteResult
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from tests.support.connected import Connected
from tests.support.in_memory import InMemoryCluster
from tests.support.move import OPTIONS, THERE, Move


class FailOver(Move):
    """A group that has committed 20 and 30 of 50 records. The mirror has copied 40, the first ten of them twice."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kept = folder / "kept.json"
        self.copy(0, 10)
        self.copy(0, 40)
        self.commit(20, 30)

    def compare(self) -> None:
        """Keep the translated offsets in a file."""
        kept_offsets_json.save(compare(self.mirror, ["g"], self.clock).kept, self.kept)

    def plan_lost(self, target: InMemoryCluster | None = None) -> Plan:
        """Return the plan of a dry run. target: another cluster than that of the copies."""
        wanted = self.wanted(OPTIONS, mirror=None)
        kept = kept_offsets_json.load(self.kept)
        found = plan_fail_over(target or self.target, wanted, kept, self.clock, Events())
        assert found is not None
        return found.plan

    def fail_over(self, **options: object) -> WriteResult | None:
        """Write the kept offsets, without the source cluster."""
        wanted = self.wanted(replace(OPTIONS, **options), mirror=None)  # type: ignore[arg-type]
        kept = kept_offsets_json.load(self.kept)
        return fail_over(Clients(self.target, self.target), wanted, kept, self.clock, Events())

    def reason(self, name: str, verdict: Verdict) -> str:
        """Return the reason of a check of the plan, which has this verdict."""
        return next(each.reason for each in self.plan_lost().checks if (each.name, each.verdict) == (name, verdict))


@pytest.fixture
def move(tmp_path) -> FailOver:
    return FailOver(tmp_path)


def test_a_group_starts_at_the_kept_offsets(move: FailOver):
    """The group starts where it was when the offsets were translated; the plan says how old they are, and what follows.

    At most the records from there on are read again: 20 in partition 0, and 10 in partition 1. The group on the lost
    cluster is not watched.
    """
    move.compare()
    move.commit(35, 40)
    move.clock.sleep(90)
    assert "2 offsets, translated 1 min 30 s ago: no record of the copies is skipped, at most 30 are read again" in (
        move.reason("translated offsets", Verdict.WARN)
    )
    assert "cluster source is not asked whether g has stopped" in move.reason("stopped", Verdict.NOT_KNOWN)
    done = move.fail_over()
    assert done is not None
    done.check()
    assert move.there() == {0: 30, 1: 40}
    assert watched(done.execution) == {}
    found = receipt_json.load(done.path).executions[0].translation
    assert found is not None
    assert found.compared_at is not None
    assert move.clock.now() - found.compared_at >= timedelta(seconds=90)
    for name in ("before.parquet", "split.parquet"):
        assert {each.taken_at for each in tables.load(done.path.with_name(name)).rows()} == {found.compared_at}


def test_a_group_that_is_ahead_of_the_mirror(move: FailOver):
    """Where the mirror lacks records up to the committed offset, the group starts after the records that it has read.

    It reads records again that the mirror delivers later.
    """
    move.commit(45, 30)
    move.compare()
    move.copy(40, 48, 0)
    reason = move.reason("translated offsets", Verdict.WARN)
    assert "at most 18 are read again; 1 partition not mirrored up to the committed offset then" in reason
    move.fail_over()
    assert move.there() == {0: 50, 1: 40}


def test_a_mirror_that_begins_again_skips_nothing(move: FailOver):
    """While the mirror delivers records again, the group starts at the first unread record, as first delivered."""
    move.copy(5, 12, 0)
    move.compare()
    move.fail_over()
    assert move.there()[0] == 30


def test_records_that_the_mirror_delivers_again_are_counted(move: FailOver):
    """Records that were delivered again after the comparison are read again, and counted."""
    move.compare()
    move.copy(0, 20)
    assert "at most 70 are read again" in move.reason("translated offsets", Verdict.WARN)


def test_the_run_can_be_shown_and_rolled_back_without_the_lost_cluster(move: FailOver):
    """With only the target cluster, `status` shows what may be done, and `rollback` deletes the offsets."""
    move.compare()
    done = move.fail_over()
    assert done is not None
    with open_receipt(done.path) as file:
        found = run_status(one_cluster(move.target), file, move.clock, {verb: str(verb) for verb in Verb})
        answers = {verb: found.of(verb).answer for verb in Verb}
        assert (answers[Verb.HAND_OVER], answers[Verb.ROLLBACK]) == (Answer.ALLOWED, Answer.ALLOWED)
        assert (answers[Verb.HAND_BACK], answers[Verb.DELETE_OFFSETS]) == (Answer.REFUSED, Answer.REFUSED)
        go_back(one_cluster(Clients(move.target, move.target)), Verb.ROLLBACK, file, move.clock, Events())
    assert move.there() == {}


def test_the_python_api_fails_over(move: FailOver, monkeypatch):
    """`Cluster.fail_over` writes what `Cluster.plan_fail_over` returns. Once the group has started, it returns None."""
    monkeypatch.setattr("migrate_groups.api.reading.open_reader", lambda _: nullcontext(move.target))
    monkeypatch.setattr(
        "migrate_groups.api.reading.open_writer", lambda _: nullcontext(Clients(move.target, move.target))
    )
    cluster = mg.connect("h:1", clock=move.clock)
    split, run = mg.Split(source="g", targets={"g": ["orders"]}), move.folder / "run"
    move.compare()
    planned = cluster.plan_fail_over(split, move.kept, run_dir=run, options=OPTIONS)
    assert planned is not None
    done = cluster.fail_over(split, move.kept, run_dir=run, options=OPTIONS)
    assert done is not None
    assert [each.after for each in done.execution.changes] == [each.after for each in planned.plan.changes]
    assert move.there() == {0: 30, 1: 40}
    move.target.commit("g", THERE, 35)
    assert cluster.fail_over(split, move.kept, run_dir=run, options=OPTIONS) is None


def test_status_says_how_to_run_the_command_again(move: FailOver, monkeypatch):
    """`status` of such a run shows `migrate` with ``--from``, without which it would be another migration."""
    move.compare()
    cli = Connected(move.folder, monkeypatch, move.target)
    (cli.folder / "move.toml").write_text(
        'source = "g"\n[[target]]\ngroup = "g"\ntopics = ["orders"]\n[options]\nsettle = "0s"\nguard = "0s"\n'
    )
    cli("migrate", "move.toml", "--from", "kept.json", "--yes")
    assert "migrate-groups migrate move.toml --from KEPT" in cli("status", "move.toml.run").stdout


def test_the_same_command_again(move: FailOver):
    """Before the group has started, the same command writes nothing new; afterwards it says that it has started."""
    move.compare()
    move.fail_over()
    again = move.fail_over()
    assert again is not None
    again.check()
    assert move.there() == {0: 30, 1: 40}
    move.target.commit("g", THERE, 35)
    assert move.fail_over() is None
    assert move.there()[0] == 35


def test_the_group_returns_when_the_cluster_does(move: FailOver):
    """The lost cluster returns: the group is handed back to the original topics, after all that it has read."""
    move.compare()
    move.commit(25, 30)
    move.fail_over()
    move.target.commit("g", THERE, 45)
    move.hand_back()
    assert move.here() == {0: 35, 1: 30}


def plan_of_return(move: FailOver) -> Plan:
    prepared = plan_migration(move.source, move.back(), move.clock, Events())
    assert prepared is not None
    return prepared.plan


def test_the_plan_of_the_return_counts_what_was_processed_on_both_clusters(move: FailOver):
    """Before it was lost, the group went on from 20 to 48, and from 30 to 32. It read up to 35 and 36 on the other one.

    These are 17 records; where the group was further on than it has read there, it stays, and skips none.
    """
    move.compare()
    move.commit(48, 32)
    move.fail_over()
    move.target.commit("g", THERE, 45)
    move.target.commit("g", TopicPartition("eu.orders", 1), 46)
    assert next((each.verdict, each.reason) for each in plan_of_return(move).checks if each.name == "read again") == (
        Verdict.WARN,
        "committed here after the offsets were kept: at most 17 records, read again on the other cluster, as were any "
        "that the group had processed here and not committed, or that the mirror delivered twice; "
        "at most 13 records not read there, and not read again: orders-0 stays at 48, not 35",
    )
    move.hand_back()
    assert move.here() == {0: 48, 1: 36}


def test_where_the_mirror_was_behind_what_it_delivers_later_is_counted(move: FailOver):
    """The mirror had 40 of 45 processed records. It delivers the rest after the loss, where they are read again."""
    move.commit(45, 30)
    move.compare()
    move.fail_over()
    move.copy(40, 50)
    move.target.commit("g", THERE, 60)
    reason = next(each.reason for each in plan_of_return(move).checks if each.name == "read again")
    assert reason.startswith("committed here after the offsets were kept: at most 5 records, read again")


def test_an_offset_that_group_sync_has_lowered_is_named(move: FailOver):
    """If the group's offset on the other cluster is lower than it was given, the plan of the return says so."""
    move.compare()
    move.fail_over()
    move.target.commit("g", THERE, 25)
    [reason] = [each.reason for each in plan_of_return(move).checks if each.name == "read again"]
    assert (
        "there lowered since, by a rewind or the mirror's group sync (switch it off): orders-0 at 15, not 20" in reason
    )


@pytest.mark.parametrize("grows", [False, True])
def test_a_log_that_was_cut_at_the_loss_refuses_the_return(move: FailOver, *, grows: bool):
    """If an election has cut the log below the group's offset, this offset would skip records: the return is refused.

    The error names the offset at which the group goes on.
    """
    move.compare()
    move.commit(48, 30)
    move.fail_over()
    move.target.commit("g", THERE, 45)
    move.source.elect("orders", 0, 44)
    if grows:
        move.source.produce("orders", 0, 20, timestamp=60)
    with pytest.raises(Refused, match=r"read again: 1 log lost records .*: set orders-0 from 48 to 44 \("):
        move.hand_back()
    move.commit(44)
    move.hand_back()
    assert move.here() == {0: 44, 1: 30}


def test_a_partition_that_was_not_kept_and_not_read_stays(move: FailOver):
    """The group had committed nothing in partition 1, then 5 right before the loss: there it goes on at 5."""
    move.source.delete("g", [TopicPartition("orders", 1)])
    move.compare()
    move.commit(20, 5)
    move.fail_over()
    move.target.commit("g", THERE, 45)
    move.hand_back()
    assert move.here() == {0: 35, 1: 5}


def test_a_second_fail_over_is_another_run(move: FailOver):
    """After the return, the same run directory is refused, and the error says what to do: another one works.

    `reconcile` does not judge the run any more.
    """
    move.compare()
    move.fail_over()
    move.target.commit("g", THERE, 45)
    move.hand_back()
    with pytest.raises(Refused, match=r"no hand-over to judge: the group has moved back since: reconcile .*hand-back"):
        compared([str(move.run.folder)], [], has_spec=False)
    move.commit(40, 42)
    move.copy(40, 50)
    move.compare()
    with pytest.raises(Refused, match=r"moved back since, by the run in .*hand-back: .* another run directory"):
        move.fail_over(on_existing="overwrite")
    move.run = RunDir(move.folder / "again")
    move.fail_over(on_existing="overwrite")
    assert move.there() == {0: 50, 1: 52}
    move.target.commit("g", THERE, 55)
    move.hand_back()
    assert move.here() == {0: 45, 1: 42}


def test_status_once_the_cluster_has_returned(move: FailOver):
    """With both clusters, `status` shows that the group has started; only `hand-back` is allowed."""
    move.compare()
    move.fail_over()
    move.target.commit("g", THERE, 45)
    with open_receipt(move.run.receipt, read_only=True) as file:
        clusters = Clusters(move.source, move.target)
        found = run_status(clusters, file, move.clock, {verb: str(verb) for verb in Verb})
    answers = {verb: found.of(verb).answer for verb in Verb}
    assert "handed over already, and started since: group g" in found.of(Verb.HAND_OVER).reason
    assert (answers[Verb.HAND_OVER], answers[Verb.HAND_BACK]) == (Answer.DONE, Answer.ALLOWED)
    assert found.next.endswith(f"must stay stopped: once its cluster has returned, {Verb.HAND_BACK}")
    assert answers[Verb.ROLLBACK] == Answer.REFUSED


def test_what_refuses(move: FailOver):
    """Another cluster, a topic that was created again, and other offsets of the group are refused."""
    move.compare()
    other = InMemoryCluster("other")
    assert [(each.name, each.verdict) for each in move.plan_lost(other).checks] == [("cluster", Verdict.REFUSE)]
    move.target.commit("g", THERE, 7)
    with pytest.raises(Refused, match=r"existing offsets: .* eu.orders-0 is at 7, not 30"):
        move.fail_over()
    assert move.there() == {0: 7}
    move.target.delete_topic("eu.orders")
    move.target.create_topic("eu.orders", 2)
    with pytest.raises(Refused, match="topics: "):
        move.fail_over(on_existing="overwrite")


def test_what_changes_before_the_answer_is_refused_at_the_write(move: FailOver):
    """The checks are made again after the user has agreed: a commit of the target group since is not overwritten."""
    move.compare()

    class Commits(Events):
        def agrees(self, plan: Plan, *, provisional: bool) -> bool:
            move.target.commit("g", THERE, 7)
            return True

    wanted, kept = move.wanted(OPTIONS, mirror=None), kept_offsets_json.load(move.kept)
    with pytest.raises(Refused, match=r"existing offsets: .* eu.orders-0 is at 7, not 30"):
        fail_over(Clients(move.target, move.target), wanted, kept, move.clock, Commits())
    assert move.there() == {0: 7}


def test_an_offset_that_is_not_known_is_refused(move: FailOver):
    """A partition whose offset could not be translated refuses, and so does a group that the file does not have."""
    move.target.lose_leader("eu.orders", 1)
    move.compare()
    with pytest.raises(Refused, match=r"orders-1 at 30 is undetermined .*; leave its topic out, and start it"):
        move.fail_over()
    kept = kept_offsets_json.load(move.kept)
    with pytest.raises(InvalidInput, match="no translated offsets of group 'h', only of g"):
        kept.of("h")


def test_partitions_without_a_committed_offset_are_named(move: FailOver):
    """A partition for which the group had committed nothing is in no file: the plan names it."""
    move.source.delete("g", [next(each for each in move.source.offsets("g") if each.partition == 1)])
    move.compare()
    reason = move.reason("translated offsets", Verdict.WARN)
    assert "1 partition without a committed offset then, where auto.offset.reset decides: eu.orders-1" in reason
