"""The question before a write: when it is asked, and that what happens while it waits is seen."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

import pytest
import typer

from migrate_groups.cli import ways_back, writing
from migrate_groups.cli.writing import Journal, agree
from migrate_groups.cluster.in_memory import InMemoryCluster
from migrate_groups.cluster.ports import TopicPartition
from migrate_groups.errors import Refused
from migrate_groups.files import receipt_json
from migrate_groups.migration.prepare import make_plan
from migrate_groups.migration.take import take_snapshot
from migrate_groups.migration.write import apply_plan
from migrate_groups.offsets.regroup import name_groups
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Plan
from migrate_groups.plan.receipt import HAND_OVER
from tests.support.clock import FakeClock

PARTITION = TopicPartition("t", 0)
NOTHING = Plan(cluster_id="c", options=WriteOptions(), changes=(), checks=())


@pytest.fixture
def questions(monkeypatch) -> list[str]:
    """The questions that were asked; each is answered with no."""
    asked: list[str] = []
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text))
    return asked


def test_a_plan_without_anything_to_write_asks_nothing(tmp_path, questions):
    """There is nothing to agree to."""
    agree(NOTHING, Journal(tmp_path / "r.json", HAND_OVER), yes=False)
    assert questions == []


def test_a_provisional_plan_asks_although_nothing_is_to_be_written_yet(tmp_path, questions):
    """What it will be once the old group has stopped is not known: the answer is for that."""
    with pytest.raises(Refused, match="the answer was no; nothing was written"):
        agree(NOTHING, Journal(tmp_path / "r.json", HAND_OVER), yes=False, provisional=True)
    assert questions == ["Write 0 offsets?"]


@pytest.fixture
def handed_over(tmp_path, monkeypatch):
    """Group ``old`` at 5 has been handed over to ``new``; its receipt; and the commands are connected to that."""
    made = InMemoryCluster()
    made.create_topic("t", 1)
    made.produce("t", 0, 10)
    made.commit("old", PARTITION, 5)
    named = name_groups(take_snapshot(made, ["old"], FakeClock()), ["new"], fan_out=False, restore=False)
    plan = make_plan(made, named, WriteOptions(settle=0.0))
    receipt = apply_plan(made, made, plan, FakeClock(), lambda state: None)
    path = tmp_path / "receipt.json"
    path.write_bytes(receipt_json.to_bytes(receipt))

    @contextmanager
    def connected(*_):
        yield made, made

    monkeypatch.setattr(ways_back, "open_writer", connected)
    monkeypatch.setattr(ways_back, "open_reader", lambda *_: nullcontext(made))
    monkeypatch.setattr(writing.sys.stdin, "isatty", lambda: True)
    return made, path


def meanwhile(monkeypatch, deed) -> None:
    """Have something happen while the question waits for its answer, which is yes."""
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: (deed(), True)[1])


def test_a_commit_while_rollback_asks_is_seen(handed_over, monkeypatch):
    """The plan is made anew after the answer: the new group has started meanwhile, so nothing is rolled back."""
    made, path = handed_over
    meanwhile(monkeypatch, lambda: made.commit("new", PARTITION, 7))
    with pytest.raises(Refused, match="committed since"):
        ways_back.rollback(path, bootstrap_server="x", timeout="1s")
    assert made.committed("new", [PARTITION])[PARTITION].offset == 7


def test_a_commit_while_delete_offsets_asks_is_seen(handed_over, monkeypatch):
    """The old group is consumed again by the time of the answer: its offsets stay."""
    made, path = handed_over
    meanwhile(monkeypatch, lambda: made.commit("old", PARTITION, 7))
    with pytest.raises(Refused, match="moved in the old group since"):
        ways_back.delete_offsets(path, bootstrap_server="x", timeout="1s")
    assert made.committed("old", [PARTITION])[PARTITION].offset == 7


def test_a_way_back_without_a_change_meanwhile_is_gone(handed_over, monkeypatch):
    """The same without anybody's deed: what was created is deleted."""
    made, path = handed_over
    meanwhile(monkeypatch, lambda: None)
    ways_back.rollback(path, bootstrap_server="x", timeout="1s")
    assert made.committed("new", [PARTITION])[PARTITION] is None


def migrate_again(made, path) -> None:
    """Hand ``old`` over once more, with a receipt in the same place."""
    named = name_groups(take_snapshot(made, ["old"], FakeClock()), ["new"], fan_out=False, restore=False)
    plan = make_plan(made, named, WriteOptions())
    clock = FakeClock()
    clock.sleep(60)
    path.write_bytes(receipt_json.to_bytes(apply_plan(made, made, plan, clock, lambda state: None)))


def test_a_second_rollback_after_a_second_migration(handed_over):
    """The way back from the second run is open, although the first one was gone already, and dry runs agree."""
    made, path = handed_over
    ways_back.rollback(path, bootstrap_server="x", timeout="1s", yes=True)
    made.commit("old", PARTITION, 8)
    migrate_again(made, path)
    ways_back.rollback(path, bootstrap_server="x", timeout="1s", dry_run=True)
    ways_back.rollback(path, bootstrap_server="x", timeout="1s", yes=True)
    assert made.committed("new", [PARTITION])[PARTITION] is None


def test_a_rollback_is_not_rolled_back(handed_over):
    """That would set offsets without a look at the old group, which went on: a migration does it."""
    made, path = handed_over
    ways_back.rollback(path, bootstrap_server="x", timeout="1s", yes=True)
    with pytest.raises(Refused, match="is a rollback's receipt"):
        ways_back.rollback(path.with_name("receipt.rollback.json"), bootstrap_server="x", timeout="1s", yes=True)
    assert made.committed("new", [PARTITION])[PARTITION] is None


def test_delete_offsets_after_a_hand_back_is_refused(handed_over):
    """The old group owns its topics again: its offsets stay, also where it has not moved yet."""
    made, path = handed_over
    ways_back.hand_back(path, bootstrap_server="x", timeout="1s", wait="0s", yes=True)
    with pytest.raises(Refused, match="the old group has the topics again"):
        ways_back.delete_offsets(path, bootstrap_server="x", timeout="1s", yes=True)
    assert made.committed("old", [PARTITION])[PARTITION].offset == 5
