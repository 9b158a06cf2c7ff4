"""`migrate` to another cluster waits for the mirror while the group runs, and only then asks to stop the group."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from migrate_groups.cli import console
from migrate_groups.errors import Refused
from migrate_groups.files.runs import plan_json
from migrate_groups.migration.across.mirror_lag import MirrorLag, mirror_lag
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import plan_migration
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.change import Action
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.translation import Behind
from migrate_groups.show import markdown
from migrate_groups.show import plan_result as views
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryRecords
from tests.support.move import HERE, OPTIONS, THERE, Move

STOP = "stop its applications now"
OTHER = TopicPartition("orders", 1)


@pytest.fixture
def move(tmp_path) -> Move:
    """Return a move between two clusters, with a mirror that has copied nothing yet."""
    return Move(tmp_path)


class Application(Events):
    """A member of the group ``g``, which stops when it is told to. ``do`` is called before.

    lines: what was said, with the time.
    """

    def __init__(self, move: Move, do: Callable[[], None] = lambda: None) -> None:
        self.move, self.do = move, do
        self.lines: list[tuple[float, str]] = []
        orders = frozenset({"orders"})
        move.source.join("g", Member(member_id="app", client_id="app", host="/h", subscription=orders))
        self.stopped_at: float | None = None

    def doing(self, line: str) -> None:
        now = self.move.clock.monotonic()
        self.lines.append((now, line))
        if STOP in line:
            self.do()
            self.move.source.leave("g", "app")
            self.stopped_at = now


class Mirror:
    """A mirror that delivers each record ``delay`` seconds after it was produced, while it runs.

    A record is produced each second to partition 0, from 60 s before the test on, and the group commits it at once.
    """

    def __init__(self, move: Move, delay: float) -> None:
        self.move, self.delay, self.runs = move, delay, True
        self.copied = move.source.log_ranges([HERE])[HERE].end
        self.produced: list[float] = []
        move.clock = FakeClock(self.work)
        for _ in range(60):
            move.clock.sleep(1)
        self.began = move.clock.monotonic()

    def work(self) -> None:
        """Produce what is due, and copy what is due."""
        now = self.move.clock.monotonic()
        while len(self.produced) <= now:
            self.move.source.produce("orders", 0, 1, timestamp=1000 * (1 + len(self.produced)))
            self.produced.append(len(self.produced))
        if any(member for member in self.move.source.description("g").members):
            self.move.source.commit("g", HERE, self.move.source.log_ranges([HERE])[HERE].end)
        due = 50 + sum(at + self.delay <= now for at in self.produced) if self.runs else self.copied
        if due > self.copied:
            self.move.copy(self.copied, due, 0)
            self.copied = due


def test_the_group_runs_while_migrate_waits_for_the_mirror(move):
    """While the mirror has not delivered the records, the group is not asked to stop, and may commit.

    Once it has, the group is asked to stop, and gets the translation of the offset that it has committed then.
    """
    move.commit(30, 10)
    move.copy(0, 20)
    app = Application(move)

    def time_passes() -> None:
        if app.stopped_at is None:
            move.source.commit("g", HERE, min(45, 30 + int(move.clock.monotonic())))
        if move.clock.monotonic() == 20:
            move.copy(20, 50)

    move.clock = FakeClock(time_passes)
    move.migrate(events=app)
    first = next(line for _, line in app.lines)
    assert "waiting up to 1 min for the mirror; do not stop g yet: 2 partitions behind: orders-0 (30 " in first
    assert app.stopped_at is not None
    assert 20 < app.stopped_at < 25
    assert move.there() == {0: 45, 1: 10}


def test_a_mirror_that_never_comes_is_refused_while_the_group_runs(move):
    """If the mirror has not delivered the records at the end of ``--wait``, the move is refused.

    The error names the partitions, and by how many records they are behind. The group was never asked to stop.
    """
    move.commit(30, 10)
    move.copy(0, 20, 0)
    move.copy(0, 50, 1)
    app = Application(move)
    with pytest.raises(Refused, match=r"behind after 1 min: 1 partition behind: orders-0 \(30 records, 29 ms\)"):
        move.migrate(events=app)
    assert app.stopped_at is None
    assert move.clock.monotonic() == 60
    assert move.there() == {}
    assert not (move.folder / "run" / "receipt.json").exists()


def test_a_mirror_that_stops_during_the_wait_is_refused(move):
    """If the mirror is paused while the group runs, the group is not asked to stop, although its offset is known."""
    move.copy(0, 50)
    move.commit(30, 10)
    mirror = Mirror(move, 12)
    app = Application(move)
    sleep = move.clock.sleep

    def paused(seconds: float) -> None:
        mirror.runs = move.clock.monotonic() < mirror.began + 5
        sleep(seconds)

    move.clock.sleep = paused
    with pytest.raises(Refused, match=r"orders-0 \(67 records, 1 min"):
        move.migrate(events=app)
    assert app.stopped_at is None


@pytest.mark.parametrize(
    ("delay", "settle", "passes"), [(0, 0, True), (5, 0, True), (20, 0, False), (20, 30, True), (40, 30, False)]
)
def test_a_mirror_is_within_the_bound_or_not(move, delay, settle, passes):
    """A running group is asked to stop if the mirror is at most 10 s behind, or ``--settle`` if that is longer.

    The move then succeeds. Otherwise it is refused, and the group goes on.
    """
    move.copy(0, 50)
    move.commit(30, 10)
    Mirror(move, delay)
    app = Application(move)
    options = WriteOptions(settle=settle, guard=0)
    if passes:
        move.migrate(options, events=app, wait=120.0)
        stopped = move.source.offsets("g").get(HERE).offset
        assert move.there() == {0: stopped, 1: 10}
        assert app.stopped_at is not None
    else:
        with pytest.raises(Refused, match=f"always more than {max(settle, 10)} s behind, pass a longer --settle"):
            move.migrate(options, events=app, wait=120.0)
        assert app.stopped_at is None


def test_a_healthy_mirror_costs_no_line(move):
    """If the mirror has delivered everything, the group is asked to stop at once."""
    move.copy(0, 50)
    move.commit(50, 10)
    app = Application(move)
    move.migrate(events=app)
    assert app.stopped_at == 0
    assert STOP in app.lines[0][1]


def test_a_group_that_has_stopped_waits_only_for_its_own_offsets(move):
    """For a group without members the mirror need not have delivered what was produced later."""
    move.commit(30, 10)
    move.copy(0, 40)
    move.migrate()
    assert move.clock.monotonic() == 0
    assert move.there() == {0: 30, 1: 10}


def test_a_group_that_has_stopped_before_the_mirror_came(move):
    """If a group without members has offsets that are not mirrored yet, `migrate` waits before its first line."""
    move.commit(30, 10)
    move.copy(0, 20)
    app = Application(move)
    move.source.leave("g", "app")
    with pytest.raises(Refused, match=r"orders-0 \(30 records.*wait longer with --wait$"):
        move.migrate(events=app)
    assert [line for _, line in app.lines if STOP in line] == []


def test_without_wait_nothing_is_waited_for(move):
    """With ``--wait 0s`` a running group is refused at once, and so is a group whose offsets are not mirrored yet."""
    move.commit(30, 10)
    move.copy(0, 20)
    with pytest.raises(Refused, match="1 not mirrored yet"):
        move.migrate(wait=0.0)
    Application(move)
    with pytest.raises(Refused, match="not stopped"):
        move.migrate(wait=0.0)
    assert move.clock.monotonic() == 0


def test_a_translated_offset_that_is_lost_while_migrate_waits(move):
    """If another client writes to the copy while `migrate` waits for the mirror, the move is soon refused."""
    move.commit(30, 10)
    move.copy(0, 20)
    app = Application(move)
    move.clock = FakeClock(lambda: move.target.produce("eu.orders", 0, 2, timestamp=7))
    with pytest.raises(Refused, match="translated offsets: 1 different: orders-0 at 30 is different"):
        move.migrate(events=app)
    assert app.stopped_at is None
    assert move.clock.monotonic() < 5


def test_the_last_records_are_waited_for_after_the_stop(move):
    """If the group commits right before it stops, `migrate` waits for the mirror after the stop.

    If a check refuses meanwhile, the wait ends.
    """
    move.commit(30, 10)
    move.copy(0, 50)

    def last_commit() -> None:
        move.source.produce("orders", 0, 5, timestamp=60)
        move.commit(52, 10)
        move.clock = FakeClock()

    app = Application(move, last_commit)
    move.clock = FakeClock()
    sleep, began = move.clock.sleep, move.clock.monotonic()
    assert began == 0

    def copies(seconds: float) -> None:
        if move.target.log_ranges([THERE])[THERE].end < 55:
            move.copy(50, 55, 0)
        sleep(seconds)

    move.clock.sleep = copies
    move.migrate(events=app)
    assert any("1 partition not mirrored up to the committed offset: orders-0" in line for _, line in app.lines)
    assert move.there() == {0: 52, 1: 10}


def test_a_translated_offset_that_is_to_come_is_not_shown_as_an_offset(move, capsys):
    """Until the mirror has copied the record, a plan is pending, and has no offset for the target group.

    A plan that was approved at that time is still accepted once the record is copied.
    """
    move.commit(30, 10)
    move.copy(0, 20, 0)
    move.copy(0, 50, 1)
    move.target.commit("g", THERE, 12)
    options = WriteOptions(settle=0, guard=0, on_existing="forward", on_uncommitted="earliest")
    prepared = plan_migration(move.target, move.wanted(options), move.clock, Events())
    assert prepared is not None
    plan = prepared.plan
    assert [(each.action, each.after and each.after.offset) for each in plan.changes] == [
        (Action.NOT_MIRRORED, None),
        (Action.CREATE, 10),
    ]
    assert [row.offset for row in prepared.rows()] == [None, 10]
    checks = {check.name: (check.verdict, check.reason) for check in plan.checks}
    assert checks["translated offsets"][0] is Verdict.PENDING
    assert checks["mirror lag"] == (Verdict.PENDING, "1 partition behind: orders-0 (30 records, 29 ms)")
    assert "g eu.orders-0 is at 12, its translated offset is not known yet" in checks["existing offsets"][1]
    assert "| `eu.orders` | 0 | 12 | unknown | not mirrored yet | orders-0 at 30, mirror 30 records behind |" in (
        markdown.draw(views.plan(plan))
    )
    console.show(views.plan(plan))
    shown = " ".join(capsys.readouterr().out.split())
    assert "g eu.orders 0 12 unknown not mirrored yet orders-0 at 30, mirror 30 records behind" in shown
    saved = plan_json.to_bytes(plan, prepared.rows())
    document = msgspec.json.decode(saved)
    assert (document["changes"][0]["after"], document["changes"][0]["action"]) == (None, "not mirrored yet")
    assert document["rows"][0]["offset"] is None
    assert [each["behind_records"] for each in document["translations"]] == [30, 0]
    assert plan_json.read(saved, "plan.json").plan.content == plan.content
    move.copy(20, 50, 0)
    move.migrate(options, approved=("plan.json", plan))
    assert move.there() == {0: 30, 1: 10}


def test_a_plan_with_an_unknown_offset_is_never_written(move):
    """An execution can't be made from a plan in which a target offset is not known yet."""
    from migrate_groups.planning.execution import Execution

    move.commit(30, 10)
    move.copy(0, 20)
    with pytest.raises(ValueError, match="not known yet"):
        Execution.of(move.plan(), move.clock.now())


def test_how_far_a_mirror_is_behind(move):
    """The lag counts the records that are to be delivered, also of logs with aborted records or without records."""

    def lag() -> MirrorLag:
        return mirror_lag(move.mirror, {HERE: THERE})[HERE]

    assert lag() == (50, 0, Behind(50, 49))
    move.copy(0, 20, 0)
    assert lag() == (50, 20, Behind(30, 29))
    move.copy(20, 50, 0)
    assert lag() == (50, 50, Behind(0, 0))
    move.source.transact("orders", 0, 3, timestamp=60, commit=False)  # a mirror that reads committed records stays here
    assert lag() == (54, 54, Behind(0, 0))
    move.copy(50, 54, 0)  # and one that does not
    assert lag() == (54, 54, Behind(0, 0))
    move.copy(10, 12, 0)  # it begins again
    assert lag() == (54, 12, Behind(38, 37))
    move.source.delete_records("orders", 0, 54)
    assert lag() == (54, 54, Behind(0, 0))
    move.source.produce("orders", 0, 2, timestamp=70)
    assert lag()[2] == Behind(2, 59)  # the last copied record has expired on the source: its timestamp counts
    move.target.delete_records("eu.orders", 0, move.target.log_ranges([THERE])[THERE].end)
    assert lag() == (56, None, None)
    move.source.lose_leader("orders", 0)
    assert mirror_lag(move.mirror, {HERE: THERE}) == {}


def test_a_mirror_that_is_far_behind_is_measured_without_reading_everything(move):
    """If the copied record is far from the log end, its timestamp shows an upper bound of the lag."""
    move.copy(0, 50)
    move.source.produce("orders", 0, 30_000, timestamp=80)
    read = InMemoryRecords.read
    sizes: list[int] = []

    class Counted(InMemoryRecords):
        def read(self, spans, *, committed_only):
            sizes.extend(map(len, spans.values()))
            return read(self, spans, committed_only=committed_only)

    move.mirror = move.mirror._replace(source=move.mirror.source._replace(records=Counted(move.source)))
    assert mirror_lag(move.mirror, {HERE: THERE})[HERE] == (30_050, 49, Behind(30_001, 31))
    assert max(sizes) == 1_600
    assert mirror_lag(move.mirror, {HERE: THERE}, {HERE: 50})[HERE] == (30_050, 50, Behind(30_000, 0))


def test_a_mirror_that_has_copied_nothing_lacks_every_record(move):
    """If the copy never had a record, the lag is the whole log of the source, however long. Its age is not known."""
    move.source.produce("orders", 0, 30_000, timestamp=80)
    assert mirror_lag(move.mirror, {HERE: THERE})[HERE] == (30_050, 0, Behind(30_050, None))


def test_identical_records_at_the_end(move):
    """If the last records of a partition are identical, the mirror counts as up to date, and the offset is exact."""
    for _ in range(2):
        move.source.produce("orders", 0, 1, timestamp=60)
    move.commit(50, 10)
    move.copy(0, 52, 0)
    move.copy(0, 50, 1)
    app = Application(move)
    move.migrate(events=app)
    assert app.stopped_at == 0
    assert move.there() == {0: 50, 1: 10}


def test_a_translated_offset_that_no_later_record_shows(move):
    """If only a later record can show the offset, `migrate` waits for it before the stop, and the error says so."""
    for _ in range(2):
        move.source.produce("orders", 0, 1, timestamp=60)
    move.commit(52, 10)
    move.copy(0, 52, 0)
    move.copy(0, 50, 1)
    app = Application(move)
    with pytest.raises(Refused, match=r"orders-0 \(the mirror has not delivered .*\)"):
        move.migrate(OPTIONS, events=app)
    assert app.stopped_at is None


def test_a_partition_that_loses_its_leader_while_migrate_waits(move):
    """If a partition has no leader for a while, `migrate` goes on waiting, and does not ask to stop the group."""
    move.commit(30, 10)
    move.copy(0, 20, 0)
    move.copy(0, 50, 1)
    app = Application(move)

    def time_passes() -> None:
        now = move.clock.monotonic()
        if now == 1:
            move.source.lose_leader("orders", 0)
        if now == 40:
            move.source.elect("orders", 0, 50)
            move.copy(20, 50, 0)

    move.clock = FakeClock(time_passes)
    move.migrate(events=app)
    assert app.stopped_at == 40.5
    assert "1 partition behind: orders-0 (not known)" in app.lines[0][1]
    assert move.there() == {0: 30, 1: 10}
