"""Two commands that write with copies of one run directory, at the same time: no offset is lost from all groups."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import count

import pytest

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.events import Events
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.ways_back.delete_source_offsets import delete_source_offsets
from migrate_groups.migration.ways_back.go_back import go_back
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import CommittedOffsets, TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from tests.support.clock import FakeClock
from tests.support.in_memory import Asked
from tests.support.planning import handed_over
from tests.support.stopped import carry_out
from tests.support.turns import Turns

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OPTIONS = WriteOptions(settle=0, guard=0, on_uncommitted="leave")
REQUESTS = {
    *("describe_groups", "committed", "log_ranges"),
    *("describe_topics", "permissions", "alter_offsets", "delete_offsets", "held"),
}


def at_random(seed: int) -> Iterator[bool]:
    """Yield for each request whether the other command goes on after it."""
    draw = random.Random(seed)
    often = draw.choice((0.5, 0.1))
    return (draw.random() < often for _ in count())


class Shared(Asked):
    """A cluster that calls ``before`` right before each request. The group ``old`` has handed over to ``new``.

    has_journals: whether commands may claim partitions. Without it, only what they read of the groups protects these.
    """

    def __init__(self, *, has_journals: bool = False) -> None:
        super().__init__()
        if not has_journals:
            for group in ("old", "new"):
                self.deny(Resource(ResourceType.GROUP, journal_group(group)), Operation.READ)
        self.before: Callable[[str], object] = lambda _: None
        self.turns: Turns | None = None
        self.create_topic("t", 2)
        self.produce("t", 0, 10)
        self.produce("t", 1, 10)
        self.commit("old", P0, 5)
        self.commit("old", P1, 6)
        plan = make_plan(self, handed_over(self, "old", "new"), OPTIONS)
        self.receipt = Receipt((carry_out(self, plan),))

    def before_request(self, name: str) -> None:
        if name in REQUESTS:
            self.before(name)
            if self.turns:
                self.turns.take()

    def command(self, verb: Verb) -> tuple[ReceiptFile, Callable[[], None]]:
        """Return the record of a copied run directory, and a function that runs a command with it."""
        file = ReceiptFile(None, self.receipt)

        def record(execution: Execution) -> None:
            file.receipt = file.receipt.with_execution(execution)

        file.record = record  # type: ignore[method-assign]

        def run() -> None:
            with suppress(MigrateGroupsError):
                go_back(one_cluster(Clients(self, self)), verb, file, FakeClock(), Events())

        return file, run

    def both(self) -> dict[str, list[int | None]]:
        return {
            group: [found.offset if found else None for found in map(self.offsets(group).get, (P0, P1))]
            for group in ("old", "new")
        }


def succeeded(file: ReceiptFile) -> bool:
    return len(file.receipt.executions) == 2 and file.receipt.executions[-1].is_whole


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(5000), marks=pytest.mark.long)], ids=len)
def test_rollback_and_delete_offsets_at_once(seeds):
    """If `rollback` and `delete-offsets` run at once with copies of a run directory, one group keeps its offsets.

    The group that keeps them is the one that a command which succeeded names. If both succeed, `rollback` has found the
    offsets deleted, and has set them again.
    """
    ends = set()
    for seed in seeds:
        made, turns = Shared(), Turns(at_random(seed))
        (undone, roll_back), (cleaned, delete) = made.command(Verb.ROLLBACK), made.command(Verb.DELETE_OFFSETS)
        made.turns = turns
        turns.run(delete, roll_back)
        made.turns = None
        offsets = made.both()
        assert [5, 6] in offsets.values(), seed
        if succeeded(undone):
            assert offsets == {"old": [5, 6], "new": [None, None]}, seed
        elif succeeded(cleaned):
            assert offsets == {"old": [None, None], "new": [5, 6]}, seed
        ends.add((succeeded(undone), succeeded(cleaned)))
    assert len(ends) > 2


def test_with_journals_two_commands_at_once_act_one_after_the_other():
    """If `rollback` and `delete-offsets` may claim partitions and run at once, the groups are as after one of them.

    The second command is refused, or finds what the first one has done: `rollback` sets deleted offsets again.
    """
    ends = set()
    for seed in range(60):
        made, turns = Shared(has_journals=True), Turns(at_random(seed))
        (undone, roll_back), (cleaned, delete) = made.command(Verb.ROLLBACK), made.command(Verb.DELETE_OFFSETS)
        made.turns = turns
        turns.run(roll_back, delete)
        made.turns = None
        done = succeeded(undone), succeeded(cleaned)
        assert (
            made.both()
            == {
                (True, False): {"old": [5, 6], "new": [None, None]},
                (False, True): {"old": [None, None], "new": [5, 6]},
                (True, True): {"old": [5, 6], "new": [None, None]},
            }[done]
        ), seed
        ends.add(done)
    assert len(ends) == 3


class Killed(BaseException):
    """Ends a command as a kill does: nothing is recorded afterwards."""


class Kill:
    """Kills a command in one thread, right before one of its requests."""

    def __init__(self, at: int) -> None:
        self._left, self._thread = at, threading.current_thread()

    def before(self, _: str) -> None:
        if threading.current_thread() is self._thread:
            self._left -= 1
            if self._left == 0:
                raise Killed


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(3000), marks=pytest.mark.long)], ids=len)
def test_kills_while_both_run_at_once(seeds):
    """If one of two such commands is killed at any request, re-runs of both leave each partition an offset.

    Otherwise `delete-offsets` was killed before it could set its offsets back. Its re-run says how to set them.
    """
    kills = 0
    for seed in seeds:
        made, turns, draw = Shared(), Turns(at_random(seed)), random.Random(seed)
        commands = {verb: made.command(verb) for verb in draw.sample((Verb.ROLLBACK, Verb.DELETE_OFFSETS), 2)}
        (_, first), (_, second) = commands.values()
        made.turns = turns
        at = draw.randrange(1, 40)

        def killed(made: Shared = made, at: int = at, run: Callable[[], None] = first) -> None:
            nonlocal kills
            made.before = Kill(at).before
            try:
                run()
            except Killed:
                kills += 1

        turns.run(killed, second)
        made.turns, made.before = None, lambda _: None
        for again in draw.sample([first, second] * 2, 4):
            again()
        if [5, 6] not in made.both().values():
            file, _ = commands[Verb.DELETE_OFFSETS]
            assert {entry.outcome for entry in file.receipt.executions[-1].changes} == {Outcome.UNKNOWN}, seed
            plan = delete_source_offsets(one_cluster(made), file.receipt)
            assert "apply --restore" in next(each.reason for each in plan.checks if each.name == "taken over"), seed
    assert kills > len(seeds) / 4


DELETES = {Verb.ROLLBACK: ("new", "old"), Verb.DELETE_OFFSETS: ("old", "new")}


def lost_at_the_deletion(made: Shared, group: str, then: Callable[[str], object] = lambda _: None) -> None:
    """Delete a group's offset of partition 1 right before the first deletion, and call ``then`` at later requests."""

    def before(request: str) -> None:
        if request == "delete_offsets":
            made.before = then
            made.delete(group, [P1])

    made.before = before


@pytest.mark.parametrize("verb", DELETES)
def test_a_deleted_offset_is_set_back_if_the_other_group_lost_its_offset(verb):
    """If the other group loses an offset while a command deletes offsets, the command sets its own back.

    The partition counts as refused, the other partition as confirmed. A re-run after that completes the command.
    """
    made = Shared()
    group, other = DELETES[verb]
    file, run = made.command(verb)
    lost_at_the_deletion(made, other)
    run()
    assert made.both() == {group: [None, 6], other: [5, None]}
    first, second = file.receipt.executions[-1].changes
    assert (first.outcome, second.outcome) == (Outcome.CONFIRMED, Outcome.REFUSED)
    assert second.error == f"deleted, and set back to 6, because {other} has no committed offset any more"
    made.commit(other, P1, 6)
    run()
    assert made.both() == {group: [None, None], other: [5, 6]}
    assert succeeded(file)


@pytest.mark.parametrize("verb", DELETES)
def test_a_deleted_offset_that_can_not_be_set_back(monkeypatch, verb):
    """If a deleted offset can't be set back, the receipt says so, and has the offset."""
    made = Shared()
    _, other = DELETES[verb]
    file, run = made.command(verb)

    def refuse(_: str) -> None:
        made.before = lambda _: None
        refused = WriteAnswer(answer=Answer.REFUSED, error="it has members")
        monkeypatch.setattr(
            made,
            "alter_offsets",
            lambda wanted: {group: dict.fromkeys(offsets, refused) for group, offsets in wanted.items()},
        )

    lost_at_the_deletion(made, other, refuse)
    run()
    entry = file.receipt.executions[-1].changes[1]
    assert (entry.outcome, entry.before and entry.before.offset) == (Outcome.UNKNOWN, 6)
    assert "it has members" in entry.error


@pytest.mark.parametrize("verb", DELETES)
def test_the_other_group_can_not_be_read(monkeypatch, verb):
    """If the other group can't be read after a deletion, the outcome is not known; a re-run reads it again."""
    made = Shared()
    _, other = DELETES[verb]
    file, run = made.command(verb)
    fetched = made.fetched

    def fail(group: str, partitions: Collection[TopicPartition] | None, *, wait: bool) -> CommittedOffsets:
        if group == other:
            raise MigrateGroupsError("no answer")
        return fetched(group, partitions, wait=wait)

    made.before = lambda request: monkeypatch.setattr(made, "fetched", fail) if request == "delete_offsets" else None
    run()
    assert {entry.outcome for entry in file.receipt.executions[-1].changes} == {Outcome.UNKNOWN}
    made.before = lambda _: None
    monkeypatch.undo()
    run()
    assert succeeded(file)
