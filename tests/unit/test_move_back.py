"""Move a group back to the cluster from which it was moved, from the record of its run, on two clusters in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from migrate_groups.errors import Refused, UsageError
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.receipt_file import open_receipt
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.migration.clusters import Clusters, Mirror
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import migrate, plan_migration
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.run_status import Answer, run_status
from migrate_groups.migration.ways_back.move_back import move_back
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.run_states import Verb
from tests.support.connected import right_after
from tests.support.cut_overs import member
from tests.support.move import OPTIONS, THERE, Move


@pytest.fixture
def move(tmp_path) -> Move:
    """A group that was moved at offsets 20 and 30, and has since committed 25 and 30 in the copies.

    The copies have 40 of 50 records; before them stand ten that the mirror has delivered twice.
    """
    move = Move(tmp_path)
    move.copy(0, 10)
    move.copy(0, 40)
    move.commit(20, 30)
    move.migrate()
    assert move.there() == {0: 30, 1: 40}
    move.target.commit("g", THERE, 35)
    return move


def _other_topics(move: Move) -> tuple[Verdict, str]:
    prepared = plan_migration(move.source, move.back(), move.clock, Events())
    assert prepared is not None
    return next((each.verdict, each.reason) for each in prepared.plan.checks if each.name == "other topics")


def test_records_that_only_the_other_cluster_has_are_counted(move: Move):
    """The plan warns of topics of the group that do not go back with it, and counts the unread records there."""
    assert _other_topics(move) == (Verdict.PASS, "g has committed nothing on other topics there")
    move.target.create_topic("orders", 1)
    move.target.produce("orders", 0, 7)
    move.target.commit("g", TopicPartition("orders", 0), 4)
    assert _other_topics(move) == (
        Verdict.WARN,
        "g keeps its offsets of topic orders there, with 3 unread records: let it read them before it stops",
    )


def _refusals(move: Move) -> list[str]:
    prepared = plan_migration(move.source, move.back(), move.clock, Events())
    assert prepared is not None
    return [each.reason for each in prepared.plan.checks if each.verdict is Verdict.REFUSE]


def test_status_of_a_move_whose_group_has_moved_back(move: Move):
    """After the return no command on the move is allowed: `status` names the run directory of the return."""
    with open_receipt(move.folder / "run" / "receipt.json", read_only=True) as file:
        commands = {verb: str(verb) for verb in Verb}
        before = run_status(Clusters(move.source, move.target), file, move.clock, commands)
        assert before.of(Verb.HAND_BACK).answer is Answer.ALLOWED
        move.hand_back()
        found = run_status(Clusters(move.source, move.target), file, move.clock, commands)
    assert {found.of(verb).answer for verb in Verb} == {Answer.REFUSED}
    assert f"moved back since: see the status of {move.folder / 'run' / 'hand-back'}, with both" in found.next


def test_a_group_goes_back_to_the_original_topics(move: Move):
    """The group's offsets in the copies are translated to the original topics, although records were copied twice.

    Records that the mirror has not delivered do not matter. What else the group consumes on the other cluster stays.
    """
    other = TopicPartition("other", 0)
    move.target.create_topic(other.topic, 1)
    move.target.commit("g", other, 0)
    before = move.target.offsets("g")
    prepared = plan_migration(move.source, move.back(), move.clock, Events())
    assert prepared is not None
    # What was processed on both clusters is counted only after a fail-over.
    assert "read again" not in {each.name for each in prepared.plan.checks}
    move.hand_back()
    assert move.here() == {0: 25, 1: 30}
    assert move.target.offsets("g") == before
    assert move.back().run.receipt.exists()


def test_unread_records_of_other_producers_are_counted_and_refused(move: Move):
    """Records that others produced to a copy are in no topic of the other cluster: unread ones refuse the way back.

    Once the group has read them, it goes back, without a wait for the mirror.
    """
    others = move.target.records(THERE, range(49, 50), committed_only=True)
    move.target.append_copies(
        THERE.topic, 0, replace(others, timestamps=[60], prints=[b"other"], offsets=[50], keys=others.keys)
    )
    (reason,) = _refusals(move)
    assert "eu.orders-0 at 35 is different (1 record from the committed offset on not on the target" in reason
    move.target.commit("g", THERE, 51)
    move.hand_back()
    assert move.here()[0] == 40


@pytest.mark.parametrize("cluster", ["source", "target"])
def test_records_that_the_mirror_delivers_meanwhile_do_not_refuse(move: Move, monkeypatch, cluster: str):
    """While the logs are read, producers and the mirror go on: a record in the copy is not taken for one of others."""

    def goes_on() -> None:
        end = move.source.log(TopicPartition("orders", 0)).end
        for number in range(2):
            move.source.produce("orders", number, 1, timestamp=end)
        move.copy(end, end + 1)

    move.copy(40, 50)
    for name in ("last_stable_offsets", "log_ranges"):
        right_after(monkeypatch, getattr(move, cluster), name, goes_on)
    assert _refusals(move) == []
    move.hand_back()
    assert move.here() == {0: 25, 1: 30}


def test_a_group_that_has_not_stopped_is_refused(move: Move):
    """While the group has a member on the copies, nothing is written to the old cluster."""
    move.target.join("g", member("m", THERE))
    with pytest.raises(Refused, match="not stopped: g is Stable with 1 member"):
        migrate(Clients(move.source, move.source), replace(move.back(), wait=0.0), move.clock, Events())
    assert move.here() == {0: 20, 1: 30}


def test_the_claims_say_who_has_the_topics(move: Move):
    """After the way back, the same move again is refused; also by the claims, if the run of the return is lost."""
    move.hand_back()
    with pytest.raises(Refused, match="moved back since"):
        move.migrate()
    move.back().run.receipt.unlink()
    with pytest.raises(Refused, match=r"journal: .* handed over from 'g' on cluster"):
        move.migrate()


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda back: Mirror(back.target, back.source), Refused, "cluster: the old group is on cluster"),
        (lambda back: back._replace(source=back.target), Refused, "cluster"),
    ],
)
def test_other_clusters_are_refused(move: Move, change: Callable[[Mirror], Mirror], error: type[Exception], says: str):
    """Clusters that are swapped, or not those of the run, are refused before anything is read of the groups."""
    with pytest.raises(error, match=says):
        move.back(change(move.swapped))


def test_several_groups_are_moved_back_one_by_one(tmp_path):
    """A run that has moved one group to several can't be handed back at once, and says how to do it."""
    move = Move(tmp_path)
    move.groups = ["g", "h"]
    move.copy(0, 50)
    move.commit(20, 30)
    move.migrate()
    with pytest.raises(Refused, match="has moved 'g' to g, h, which can't go back together"):
        move.back()


def test_a_run_on_one_cluster_has_no_other_cluster(tmp_path):
    """A run whose groups are on one cluster is a wrong command line with two clusters."""
    move = Move(tmp_path)
    move.source.create_topic("eu.orders", 2)
    move.commit(20, 30)
    run = RunDir(tmp_path / "run")
    wanted = replace(move.wanted(OPTIONS), mirror=None)
    spec = replace(wanted.file.spec, targets=tuple(replace(each, group="new") for each in wanted.file.spec.targets))
    done = migrate(
        Clients(move.source, move.source), replace(wanted, file=replace(wanted.file, spec=spec)), move.clock, Events()
    )
    assert done is not None
    with pytest.raises(UsageError, match="all groups of this run are on one cluster"):
        move_back(receipt_json.load(run.receipt), run.folder, move.swapped)
