"""Moves to another cluster that overlap with other runs: what they have claimed on both clusters is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_groups.errors import PartlyApplied, Refused, UsageError
from migrate_groups.files.runs.receipt_file import open_receipt
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.migration.clusters import Clusters, Mirror, writers
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import migrate
from migrate_groups.migration.ports import Clients, Side
from migrate_groups.migration.ways_back.go_back import go_back, plan_way_back
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.renames import Rename
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.claims import decode
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.in_memory import InMemoryCluster, InMemoryRecords
from tests.support.move import HERE, OPTIONS, THERE, Move


@pytest.fixture
def move(tmp_path) -> Move:
    """Return a move between two clusters, whose mirror has copied everything."""
    return mirrored(tmp_path)


def mirrored(folder: Path) -> Move:
    move = Move(folder)
    move.commit(30, 10)
    move.copy(0, 50)
    return move


class Written(Events):
    """Callbacks of a run: `writing`, which is called during the write, calls ``do``; the others do nothing."""

    def __init__(self, do: Callable[[], None]) -> None:
        self.do = do

    def writing(self, told_by: str) -> None:
        self.do()


def hand_on(move: Move, cluster: InMemoryCluster, topic: str, target: str) -> Execution:
    """Hand the topic of group ``g`` over to another group of the same cluster, by another run."""
    spec = SplitSpec(source="g", targets=(SplitTarget(group=target, topics=(TopicPattern(topic),)),))
    wanted = move.wanted(OPTIONS, run=RunDir(move.folder / f"{topic}-{target}"), mirror=None)
    wanted = replace(wanted, file=replace(wanted.file, spec=spec))
    done = migrate(Clients(cluster, cluster), wanted, move.clock, Events())
    assert done is not None
    done.check()
    return done.execution


def both(source: InMemoryCluster, target: InMemoryCluster | None = None) -> Clusters[Clients]:
    here = Clients(source, source)
    return Clusters(here, here if target is None else Clients(target, target))


def go(move: Move, verb: Verb, *clusters: InMemoryCluster) -> None:
    """Carry out a way back. clusters: that of the old group, and that of the new groups if it is another one."""
    with open_receipt(move.folder / "run" / "receipt.json") as file:
        done = go_back(both(*clusters), verb, file, move.clock, Events())
    assert done is not None
    assert done.is_whole, done


def newest(cluster: InMemoryCluster, group: str, partition: TopicPartition) -> tuple[str, tuple[str, ...], str]:
    """Return the state, the groups and their cluster of the newest claim on a partition in a group's journal."""
    claims = decode(cluster.offsets(journal_group(group))[partition].metadata)
    assert claims is not None
    return claims[0].state.value, claims[0].groups, claims[0].cluster


def test_a_move_claims_on_both_clusters(move):
    """The journal of a target group says that it got the partitions, and from which cluster."""
    move.migrate()
    assert newest(move.source, "g", HERE) == ("handed over", ("g",), "target")
    assert newest(move.target, "g", THERE) == ("arrived", ("g",), "source")


@pytest.mark.parametrize("again", ["rollback", "migrate"])
def test_a_moved_group_that_has_handed_on_is_not_started_again(move, again):
    """After a move A → B, and B:g → B:x by another run, neither a rollback of the move nor the same move says START.

    Otherwise two groups would process the same records: the old group or the moved one, and x.
    """
    move.migrate()
    hand_on(move, move.target, "eu.orders", "x")
    with pytest.raises(Refused, match=r"eu.orders-0|orders-0, orders-1 handed over from 'g' to 'x' .* undo that run"):
        move.migrate() if again == "migrate" else go(move, Verb.ROLLBACK, move.target)
    assert move.there() == move.there("x") == {0: 30, 1: 10}


def test_a_group_hands_nothing_on_before_its_move_is_complete(move, monkeypatch):
    """If a move ends with exit code 4, the moved group hands nothing on until the move was run again."""
    written = move.target.alter

    def refuse(group, offsets):
        no = WriteAnswer(answer=Answer.REFUSED, error="refused")
        rest = {each: offset for each, offset in offsets.items() if group != "g" or each == THERE}
        return {**dict.fromkeys(offsets, no), **(written(group, rest) if rest else {})}

    with monkeypatch.context() as patched:
        patched.setattr(move.target, "alter", refuse)
        with pytest.raises(PartlyApplied):
            move.migrate()
    assert move.there() == {0: 30}
    with pytest.raises(Refused, match=r"eu.orders-0 being handed over from 'g' on cluster source to 'g'"):
        hand_on(move, move.target, "eu.orders", "x")
    move.migrate()
    hand_on(move, move.target, "eu.orders", "x")


@pytest.mark.parametrize("names_both", [True, False])
def test_a_rollback_releases_the_claims_of_a_move(move, names_both):
    """A rollback of a move releases its claims on both clusters, or only on the one that it is given.

    In the second case it says so, and another run is refused there until the claims are forgotten.
    """
    move.migrate()
    clusters = [move.source, move.target] if names_both else [move.target]
    with open_receipt(move.folder / "run" / "receipt.json", read_only=True) as file:
        plan = plan_way_back(writers(both(*clusters)), Verb.ROLLBACK, file, move.clock)
    (check,) = (each for each in plan.checks if each.name == "journal")
    go(move, Verb.ROLLBACK, *clusters)
    assert move.there() == {}
    assert newest(move.target, "g", THERE) == ("handed over", ("g",), "source")
    if names_both:
        assert check.verdict is Verdict.PASS
        assert newest(move.source, "g", HERE) == ("returned", ("g",), "target")
        hand_on(move, move.source, "orders", "x")
        return
    assert check.verdict is Verdict.NOT_KNOWN
    assert "cluster source is not named, so the claims there stay: pass it as --bootstrap-server" in check.reason
    with pytest.raises(Refused, match="go on from 'g' there"):
        hand_on(move, move.source, "orders", "x")


def test_a_rollback_is_not_given_other_clusters(move):
    """A rollback of a move is refused on other clusters, and one of a run on one cluster takes no second cluster."""
    move.migrate()
    with pytest.raises(Refused, match="the old group is on cluster source, --bootstrap-server is other"):
        go(move, Verb.ROLLBACK, InMemoryCluster("other"), move.target)
    hand_on(move, move.target, "eu.orders", "x")
    receipt = move.folder / "eu.orders-x" / "receipt.json"
    said = "all groups of this run are on one cluster"
    with open_receipt(receipt) as file, pytest.raises(UsageError, match=said):
        go_back(both(move.source, move.target), Verb.ROLLBACK, file, move.clock, Events())


def test_delete_offsets_leaves_a_group_its_offsets_that_has_been_moved_back(move):
    """After a move and a move back, the old group owns the topic: `delete-offsets` of the first move is refused."""
    move.migrate()
    back = Mirror(
        Side(move.target, InMemoryRecords(move.target), move.target),
        Side(move.source, InMemoryRecords(move.source)),
        [Rename.parse("eu.orders=orders", "--rename-topic")],
    )
    spec = SplitSpec(source="g", targets=(SplitTarget(group="g", topics=(TopicPattern("eu.orders"),)),))
    wanted = move.wanted(replace(OPTIONS, on_existing="overwrite"), run=RunDir(move.folder / "back"), mirror=back)
    done = migrate(
        Clients(move.source, move.source), replace(wanted, file=replace(wanted.file, spec=spec)), move.clock, Events()
    )
    assert done is not None
    done.check()
    assert newest(move.source, "g", HERE) == ("arrived", ("g",), "target")
    with pytest.raises(Refused, match=r"orders-0, orders-1 handed over from 'g' on cluster target to 'g'"):
        go(move, Verb.DELETE_OFFSETS, move.source, move.target)
    assert move.source.offsets("g")[HERE].offset == 30
    hand_on(move, move.source, "orders", "x")


def test_claims_that_a_mirror_has_copied_do_not_count(move):
    """If the group sync of a mirror copies the claims of a move to the other cluster, no command is refused there."""
    move.migrate()
    for number in range(2):
        claims = move.source.offsets(journal_group("g"))[TopicPartition("orders", number)].metadata
        move.target.commit(journal_group("g"), TopicPartition("eu.orders", number), 30, claims)
    move.migrate()
    hand_on(move, move.target, "eu.orders", "x")


def test_two_moves_into_one_group_at_once(tmp_path):
    """While a move writes to a group, a move from another cluster to the same group is refused, and later as well."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    move, other = Move(tmp_path / "one"), Move(tmp_path / "two")
    other.source = InMemoryCluster("second")
    other.source.create_topic("orders", 2)
    for number in range(2):
        for timestamp in range(50):
            other.source.produce("orders", number, 1, timestamp=timestamp)
    other.target = move.target
    other.mirror = move.mirror._replace(
        source=Side(other.source, InMemoryRecords(other.source), other.source), target=move.mirror.target
    )
    move.commit(30, 10)
    move.copy(0, 50)
    other.commit(20, 10)

    def at_once() -> None:
        with pytest.raises(Refused, match=r"another run is at work on group 'g'|being handed over from 'g' on cluster"):
            other.migrate()

    move.migrate(events=Written(at_once))
    with pytest.raises(Refused, match=r"existing offsets: .*g eu.orders-0 is at 30"):
        other.migrate()
    assert move.there() == {0: 30, 1: 10}
