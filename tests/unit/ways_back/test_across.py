"""Rollback, hand-back and delete-offsets after a move between two in-memory clusters, and what may follow each."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest

from migrate_groups.errors import MigrateGroupsError, PartlyApplied, Refused, UsageError
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.receipt_file import open_receipt
from migrate_groups.migration.clusters import Clusters
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import migrate
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.ways_back.go_back import go_back, plan_way_back
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.move import HERE, THERE, Move

ORDERS_TOPIC = frozenset({"orders"})
OTHER_THERE = TopicPartition("eu.orders", 1)


class Moved(Move):
    """A group that is moved from offsets 30 and 10 on the source cluster to the same offsets on the target cluster."""

    def hand_over(self, options: WriteOptions = WriteOptions(settle=0, guard=0)) -> None:  # noqa: B008  frozen
        """Commit offsets 30 and 10 on the source cluster, and move the group to the target cluster."""
        self.commit(30, 10)
        self.copy(0, 50)
        self.migrate(options)

    def start(self, *offsets: int) -> None:
        """Commit these offsets on the target cluster, as the application does."""
        for group in self.groups:
            for number, offset in enumerate(offsets):
                self.target.commit(group, TopicPartition("eu.orders", number), offset)

    def go(self, verb: Verb, on: InMemoryCluster, elsewhere: InMemoryCluster | None = None) -> Execution | None:
        """Carry out ``verb`` with ``on`` as the cluster of ``--bootstrap-server``.

        elsewhere: the cluster of ``--to-bootstrap-server``, if any.
        """
        with open_receipt(self.folder / "run" / "receipt.json", must_exist=True) as file:
            here = Clients(on, on)
            clusters = Clusters(here, here if elsewhere is None else Clients(elsewhere, elsewhere))
            return go_back(clusters, verb, file, self.clock, Events())

    def delete(self) -> Execution | None:
        """Delete the offsets of the source group."""
        return self.go(Verb.DELETE_OFFSETS, self.source, self.target)

    def plan_of_deletion(self) -> Plan:
        """Return the plan of the deletion of the source group's offsets."""
        with open_receipt(self.folder / "run" / "receipt.json", read_only=True) as file:
            clusters = Clusters(self.source, self.target)
            return plan_way_back(clusters, Verb.DELETE_OFFSETS, file, self.clock)

    def here(self) -> dict[int, int]:
        """Return the source group's committed offsets on the source cluster, by partition number."""
        found = self.source.offsets("g")
        return {partition.partition: offset.offset for partition, offset in found.items() if offset}

    def receipt(self) -> Receipt:
        """Return the receipt of the run."""
        return receipt_json.load(self.folder / "run" / "receipt.json")

    def states(self) -> set[State]:
        """Return the states of the partitions in the receipt of the run."""
        return {partition.state for partition in self.receipt().partition_states.values()}


@pytest.fixture
def moved(tmp_path) -> Moved:
    """Return a group that was moved and has then committed offset 35 on the target cluster."""
    made = Moved(tmp_path)
    made.hand_over()
    made.start(35, 10)
    return made


@pytest.mark.parametrize("groups", [["g"], ["a", "b"]])
def test_the_offsets_on_the_source_are_deleted_once(tmp_path, groups):
    """`delete-offsets` deletes only offsets that were handed over, and only on the source cluster.

    A second run of the command finds nothing to delete.
    """
    moved = Moved(tmp_path)
    moved.groups = groups
    moved.source.create_topic("kept", 1)
    moved.hand_over()
    moved.start(35, 10)
    moved.source.commit("g", TopicPartition("kept", 0), 0)
    done = moved.delete()
    assert done is not None
    assert [(entry.order, entry.outcome) for entry in done.changes] == [
        (("g", "orders", 0), "confirmed"),
        (("g", "orders", 1), "confirmed"),
    ]
    assert (done.cluster_id, done.topic_ids) == ("source", {})
    assert [*moved.source.offsets("g")] == [TopicPartition("kept", 0)]
    assert all(moved.there(group) == {0: 35, 1: 10} for group in groups)
    assert moved.states() == {State.CLEANED}
    assert moved.delete() is None


def test_only_the_return_follows_a_deletion(moved):
    """Once `delete-offsets` has run on the source cluster, a second move and a rollback are refused.

    A hand-back needs both clusters, and sets the offsets again at which the group stopped on the target cluster.
    """
    moved.delete()
    with pytest.raises(Refused, match=r"run apply --restore before\.parquet on its cluster"):
        moved.go(Verb.ROLLBACK, moved.target)
    with pytest.raises(Refused, match=r"run apply --restore before\.parquet on its cluster"):
        moved.migrate()
    with pytest.raises(UsageError, match="on another cluster, target: pass --to-bootstrap-server"):
        moved.go(Verb.HAND_BACK, moved.source)
    moved.hand_back()
    assert moved.here() == {0: 35, 1: 10}


def test_both_clusters_are_named_and_checked(moved):
    """`delete-offsets` is refused if the target group's cluster is not given or is the wrong one.

    It is also refused if the source and target cluster are swapped.
    """
    with pytest.raises(UsageError, match=r"on another cluster, target: pass --to-bootstrap-server"):
        moved.go(Verb.DELETE_OFFSETS, moved.source)
    with pytest.raises(Refused) as refused:
        moved.go(Verb.DELETE_OFFSETS, moved.target, moved.source)
    assert "the old group is on cluster source, --bootstrap-server is target" in str(refused.value)
    assert "the new groups are on cluster target, --to-bootstrap-server is source" in str(refused.value)
    with pytest.raises(Refused) as refused:
        moved.go(Verb.DELETE_OFFSETS, moved.source, moved.source.other_client())
    assert str(refused.value) == (
        "cluster: the new groups are on cluster target, --to-bootstrap-server is source; nothing was written"
    )
    assert moved.here() == {0: 30, 1: 10}


def test_another_cluster_is_refused_for_a_run_on_one(moved, tmp_path):
    """After a run whose groups are all on one cluster, `delete-offsets` is refused if a second cluster is given."""
    for partition in (0, 1):
        moved.source.commit("h", TopicPartition("orders", partition), 5)
    spec = SplitSpec(source="h", targets=(SplitTarget(group="new", topics=(TopicPattern("orders"),)),))
    wanted = replace(moved.wanted(WriteOptions(settle=0, guard=0)), mirror=None)
    wanted = replace(wanted, file=replace(wanted.file, spec=spec), run=type(wanted.run)(tmp_path / "other"))
    migrate(Clients(moved.source, moved.source), wanted, moved.clock, Events())
    with open_receipt(tmp_path / "other" / "receipt.json", read_only=True) as file, pytest.raises(UsageError) as error:
        plan_way_back(Clusters(moved.source, moved.target), Verb.DELETE_OFFSETS, file, moved.clock)
    assert "all groups of this run are on one cluster" in str(error.value)


def test_a_new_group_that_lacks_an_offset_keeps_those_of_the_source(moved):
    """If the target group has no offset, or a lower one than was handed over, `delete-offsets` is refused.

    Otherwise the right offset, which only the source group has, would be lost.
    """
    moved.target.commit("g", THERE, 29)
    with pytest.raises(Refused, match=r"taken over: g eu\.orders-0: no committed offset, or a lower one"):
        moved.delete()
    moved.target.delete("g", [THERE, OTHER_THERE])
    with pytest.raises(Refused, match=r"g eu\.orders-0, g eu\.orders-1: no committed offset"):
        moved.delete()
    assert moved.here() == {0: 30, 1: 10}


def test_a_new_group_that_was_not_seen_to_run_is_a_warning(tmp_path):
    """If the target group's offsets are still those that were written, `delete-offsets` gives a warning.

    The warning says that the group was not seen to run.
    """
    moved = Moved(tmp_path)
    moved.hand_over()
    (check,) = [each for each in moved.plan_of_deletion().checks if each.name == "taken over"]
    assert (check.verdict, "not seen to run" in check.reason) == (Verdict.WARN, True)
    moved.start(31, 10)
    assert {check.verdict for check in moved.plan_of_deletion().checks} == {Verdict.PASS}


def test_a_source_group_that_came_back_refuses(moved):
    """`delete-offsets` is refused if the source group has a member on the moved topics.

    It is also refused if the source group has committed after the move.
    """
    member = Member(member_id="m", client_id="m", host="/h", assignment=frozenset({HERE}), subscription=ORDERS_TOPIC)
    moved.source.join("g", member)
    with pytest.raises(Refused, match=r"stopped: g has 1 member|stopped: g .*m at"):
        moved.delete()
    moved.source.leave("g", "m")
    moved.commit(31, 10)
    with pytest.raises(Refused, match="not moved: orders-0: the source group has committed since the hand-over"):
        moved.delete()
    assert moved.here() == {0: 31, 1: 10}


def test_a_source_group_that_comes_back_after_the_deletion_is_named(tmp_path):
    """If the source group commits after `delete-offsets` has deleted its offsets, the commit is reported."""
    moved = Moved(tmp_path)
    moved.hand_over(WriteOptions(settle=0, guard=5))
    moved.start(35, 10)
    moved.clock = FakeClock(lambda: moved.commit(31))
    done = moved.delete()
    assert done is not None
    assert [each for each in done.moved if "orders-0 no offset → 31" in each]


def test_a_deletion_that_was_interrupted_is_resumed(moved, monkeypatch):
    """If `delete-offsets` is interrupted, running the command again deletes the remaining offsets.

    Until then a move and a rollback are refused, and the error says to run `delete-offsets` first.
    """
    real = moved.source.delete

    def one_and_die(group, partitions):
        real(group, [HERE])
        raise KeyboardInterrupt

    monkeypatch.setattr(moved.source, "delete", one_and_die)
    with pytest.raises(KeyboardInterrupt):
        moved.delete()
    monkeypatch.undo()
    assert (moved.here(), moved.states()) == ({1: 10}, {State.CLEANING})
    with pytest.raises(Refused, match="run delete-offsets again first"):
        moved.migrate()
    with pytest.raises(Refused, match="run delete-offsets again first"):
        moved.go(Verb.ROLLBACK, moved.target)
    moved.delete()
    assert (moved.here(), moved.states()) == ({}, {State.CLEANED})
    assert len(receipt_json.load(moved.folder / "run" / "receipt.json").executions) == 2


def test_topics_that_were_deleted_on_the_source_have_no_offsets_left(moved):
    """If the moved topic was deleted on the source, its offsets are gone, and `delete-offsets` completes the run."""
    moved.source.delete_topic("orders")
    moved.delete()
    assert (moved.here(), moved.states()) == ({}, {State.CLEANED})


def test_permissions_on_both_clusters(moved):
    """`delete-offsets` needs Delete on the source group, and Describe on the target group on the target cluster."""
    group = Resource(ResourceType.GROUP, "g")
    moved.target.deny(group, Operation.READ, Operation.DELETE)
    moved.plan_of_deletion()
    moved.source.deny(group, Operation.DELETE)
    with pytest.raises(Refused, match=r"permission: User:ANONYMOUS lacks Delete on Group 'g'"):
        moved.delete()
    moved.target.deny(group, Operation.DESCRIBE)
    with pytest.raises(MigrateGroupsError, match="lacks Describe on Group 'g'"):
        moved.plan_of_deletion()


def test_a_deletion_sees_a_commit_that_waits_for_a_replica(moved):
    """The source group's commit after the move waits for a replica: `delete-offsets` sees it, and deletes nothing."""
    moved.source.hang_follower()
    moved.commit(33)
    with pytest.raises(Refused, match="not moved: orders-0: the source group has committed"):
        moved.delete()
    assert moved.here() == {0: 33, 1: 10}


def test_a_rollback_watches_the_new_groups(tmp_path):
    """If a target group commits after a rollback, the commit is reported.

    What the group still reads is processed on the source cluster, too.
    """
    moved = Moved(tmp_path)
    moved.hand_over(WriteOptions(settle=0, guard=5))
    moved.clock = FakeClock(lambda: moved.target.commit("g", THERE, 31) if moved.states() == {State.UNDONE} else None)
    done = moved.go(Verb.ROLLBACK, moved.target)
    assert done is not None
    assert [each for each in done.moved if "eu.orders-0 no offset → 31" in each]


def test_a_rollback_says_that_the_source_group_is_not_read(tmp_path):
    """After a move between clusters, a rollback connects only to the target cluster.

    What the source group did is `not known`, and the user should check that group's offsets.
    """
    moved = Moved(tmp_path)
    moved.hand_over()
    (check,) = (each for each in plan_rollback(moved.target, moved.receipt()).checks if each.name == "source group")
    assert check.verdict == "not known"
    assert check.reason == "group g on cluster source is not read: check its offsets with describe"


def test_a_rollback_on_the_wrong_cluster_names_the_right_one(moved):
    """A rollback on the source cluster is refused. The error names the target cluster, on which it must run."""
    with pytest.raises(Refused, match="this is the old group's cluster, source: pass the new groups' cluster, target"):
        moved.go(Verb.ROLLBACK, moved.source)


STEPS = ("migrate", "rollback", "hand-back", "delete-offsets", "start", "come back")


@pytest.mark.parametrize(
    "orders",
    [
        random.Random(1).sample([*product(STEPS, repeat=4)], 20),
        pytest.param([*product(STEPS, repeat=3)], marks=pytest.mark.long),
    ],
)
def test_no_order_of_commands_loses_an_offset(tmp_path, orders):
    """In whatever order commands run and applications start, the highest committed offset stays on one of the clusters.

    Offsets that an application has committed on the target cluster stay.
    """
    for number, order in enumerate(orders):
        moved = Moved(tmp_path / str(number))
        moved.folder.mkdir()
        moved.hand_over()
        highest, started = {0: 30, 1: 10}, False
        for step in order:
            with suppress(Refused, PartlyApplied):
                _step(moved, step)
            here, there = moved.here(), moved.there()
            started |= step == "start" and there.get(0) == 40
            highest = {each: max(at, here.get(each, 0), there.get(each, 0)) for each, at in highest.items()}
            held = {each: max(here.get(each, 0), there.get(each, 0)) for each in highest}
            assert held == highest, (order, step)
            assert not started or there == {0: 40, 1: 20}, (order, step)


def _step(moved: Moved, step: str) -> None:
    match step:
        case "migrate":
            clients = Clients(moved.target, moved.target)
            migrate(clients, moved.wanted(WriteOptions(settle=0, guard=0)), moved.clock, Events())
        case "rollback":
            moved.go(Verb.ROLLBACK, moved.target)
        case "hand-back":
            moved.hand_back()
        case "delete-offsets":
            moved.delete()
        case "start" if moved.there():
            moved.start(40, 20)
        case "come back" if moved.here():
            moved.commit(33, 13)
