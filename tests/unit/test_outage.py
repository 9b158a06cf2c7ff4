"""The outage of a hand-over is measured: until when the old group ran, START, and when each new group began."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.errors import ClusterUnavailable
from migrate_groups.files.runs import receipt_json
from migrate_groups.migration.guard import guard
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.outage import FirstSign, Outage
from migrate_groups.planning.receipt import Receipt
from migrate_groups.show import plan_result as views
from tests.support.clock import FakeClock
from tests.support.connected import MIGRATE, PARTITION, Connected
from tests.support.drawn import on_a_terminal
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import NOON
from tests.support.stopped import hand_over, stopped

MEASURED = Outage(ran_until=NOON - timedelta(seconds=13), start_at=NOON - timedelta(seconds=2), first_signs=())


def member(name: str = "m", *partitions: TopicPartition) -> Member:
    return Member(
        member_id=name, client_id=name, host="/h", assignment=frozenset(partitions), subscription=frozenset({"t"})
    )


@pytest.fixture
def cluster() -> InMemoryCluster:
    return stopped({PARTITION: 4})


def watched(cluster: InMemoryCluster, *events: Callable[[], object], outage: Outage = MEASURED) -> Execution:
    """Hand ``old`` over to ``new`` and watch it for 5 s; each second, the next of ``events`` is called.

    The old group ran until 13 s before the guard, and START was 2 s before it, unless ``outage`` says otherwise.
    """
    left = list(events)
    clock = FakeClock(lambda: left.pop(0)() if left else None)
    return guard(cluster.clients, replace(hand_over(cluster), outage=outage), 5.0, clock)


def line(execution: Execution) -> str:
    """Return the line about the outage of the result of a write; empty if there is none."""
    shown = on_a_terminal(views.execution(execution)).splitlines()
    return next((each for each in shown if "outage" in each), "")


def nothing() -> None:
    pass


def test_a_new_group_begins_with_its_first_member_that_has_a_partition(cluster):
    """A member without a partition is no sign; the first reading in which one has a partition is."""
    execution = watched(
        cluster,
        lambda: cluster.join("new", member()),
        nothing,
        lambda: cluster.join("new", member("m", PARTITION)),
        lambda: cluster.commit("new", PARTITION, 9),
    )
    assert execution.outage.first_signs == (FirstSign(group="new", at=NOON + timedelta(seconds=3), sign="member"),)
    assert line(execution) == (
        "outage: START 11.0 s after the last reading in which old still ran; first member or commit after that "
        "reading: new 16.0 s (member)"
    )


def test_a_commit_is_the_sign_of_a_consumer_that_is_no_member(cluster):
    """The first commit counts if a consumer assigns itself partitions; the result says that it includes an interval."""
    execution = watched(cluster, nothing, lambda: cluster.commit("new", PARTITION, 9))
    assert execution.outage.first_signs == (FirstSign(group="new", at=NOON + timedelta(seconds=2), sign="commit"),)
    assert line(execution).endswith("after that reading: new 15.0 s (commit); a commit includes a commit interval")


def test_a_new_group_that_does_not_begin_during_the_guard_is_named(cluster):
    """A group without a member or commit has no time in the receipt, and the result says so."""
    execution = watched(cluster)
    assert execution.outage.first_signs == (FirstSign(group="new", at=None, sign=None),)
    assert line(execution).endswith("still ran; no member or commit during the watch: new")


def test_a_new_group_that_can_not_be_read_has_no_sign(cluster, monkeypatch):
    """An error about the new group does not end the guard, and is no sign that the group consumes."""
    error = ClusterUnavailable("no coordinator")
    for method in ("describe_groups", "committed"):
        monkeypatch.setattr(cluster, method, without_new(getattr(cluster, method), error))
    written = replace(hand_over(stopped({PARTITION: 4})), outage=MEASURED)
    cluster.join("new", member("m", PARTITION))
    execution = guard(cluster.clients, written, 5.0, FakeClock())
    assert execution.guard_readings == 5
    assert execution.outage.first_signs == (FirstSign(group="new", at=None, sign=None),)


def without_new(method: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """Return a method of a cluster that answers with an error for the group ``new``."""

    def read(wanted, **options):
        return {**method(wanted, **options), **({"new": error} if "new" in wanted else {})}

    return read


def test_a_group_that_has_begun_is_not_read_again(cluster, monkeypatch):
    """After the first sign, the guard asks only for the old group."""
    asked: list[str] = []
    describe = cluster.describe_groups

    def noted(groups):
        asked.extend(groups)
        return describe(groups)

    monkeypatch.setattr(cluster, "describe_groups", noted)
    watched(cluster, lambda: cluster.join("new", member("m", PARTITION)))
    # The second time is the comparison with the written offsets, after the guard.
    assert asked.count("new") <= 2
    assert asked.count("old") >= 5


def test_without_a_stop_that_was_seen_the_outage_is_not_known(cluster):
    """If the tool did not see the old group running, the time of the new group counts from START."""
    execution = watched(
        cluster, lambda: cluster.join("new", member("m", PARTITION)), outage=structs.replace(MEASURED, ran_until=None)
    )
    assert line(execution) == (
        "outage not known: old was not seen running; first member or commit after START: new 3.0 s (member)"
    )


def test_of_many_new_groups_the_slowest_are_named(cluster):
    """The result names the five groups that began last, and how many began before them."""
    signs = tuple(FirstSign(group=f"g{n}", at=NOON + timedelta(seconds=n), sign="member") for n in range(7))
    execution = replace(hand_over(cluster), outage=structs.replace(MEASURED, first_signs=signs))
    assert line(execution).endswith(
        ": g6 19.0 s (member), g5 18.0 s (member), g4 17.0 s (member), g3 16.0 s (member), g2 15.0 s (member) and 2 "
        "more sooner"
    )


def test_a_copy_and_an_unfinished_write_have_no_outage(cluster):
    """Nothing is said if the old group goes on, or if the new groups may not start."""
    copied = watched(cluster)
    assert line(replace(copied, options=replace(copied.options, copy=True))) == ""
    assert line(watched(stopped({PARTITION: 4}), outage=structs.replace(MEASURED, start_at=None))) == ""


def test_the_receipt_keeps_the_outage(cluster):
    """A receipt has the same times after it was saved and loaded."""
    execution = watched(cluster, lambda: cluster.join("new", member("m", PARTITION)))
    (loaded,) = receipt_json.read(receipt_json.to_bytes(Receipt((execution,))), "receipt.json").executions
    assert loaded.outage == execution.outage


class Running:
    """A ``migrate`` with a clock that does not wait, while the old group has a member for the first 3 s."""

    def __init__(self, cli: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock(self._asleep)
        self.cluster, self._leaves = cli.cluster, True
        cli.cluster.join("old", member("m", PARTITION))
        for name in ("now", "monotonic", "sleep"):
            monkeypatch.setattr(SystemClock, name, lambda _, *given, name=name: getattr(self.clock, name)(*given))

    def _asleep(self) -> None:
        if self._leaves and self.clock.slept >= 3:
            self._leaves = False
            self.cluster.leave("old", "m")


def outage(cli: Connected) -> dict[str, Any]:
    return json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())["executions"][-1]["outage"]


def test_migrate_measures_from_the_last_reading_with_a_member_to_start(cli, monkeypatch):
    """The receipt has the last reading with a member, START after the settle time, and that no new group began."""
    Running(cli, monkeypatch)
    spec = cli.folder / "split.toml"
    spec.write_text(spec.read_text().replace('"0s"', '"10s"').replace('"1ms"', '"2s"'))
    result = cli(*MIGRATE)
    assert result.returncode == 0
    found = outage(cli)
    assert found["ran_until"].startswith("2026-11-20T12:00:03")
    assert found["start_at"].startswith("2026-11-20T12:00:13")
    assert found["first_signs"] == [{"group": "new", "at": None, "sign": None}]
    assert "START 10.1 s after the last reading in which old still ran" in result.stdout


def test_a_rebalance_of_the_members_that_stay_is_part_of_the_outage(cli, monkeypatch):
    """While only members rebalance that had none of the moved topics, no member consumes these topics any more."""
    running = Running(cli, monkeypatch)
    spec = cli.folder / "split.toml"
    spec.write_text(spec.read_text().replace("[options]", '[stay]\ntopics = ["kept"]\n[options]'))
    cli.cluster.create_topic("kept", 1)
    cli.cluster.commit("old", TopicPartition("kept", 0), 0)
    stays = member("stays", TopicPartition("kept", 0))
    cli.cluster.join("old", replace(stays, subscription=frozenset({"kept"})))
    describe = cli.cluster.description

    def description(group: str) -> GroupDescription:
        found = describe(group)
        rejoins = group == "old" and len(found.members) == 1 and running.clock.slept < 5
        return replace(found, state="PreparingRebalance") if rejoins else found

    monkeypatch.setattr(cli.cluster, "description", description)
    cli(*MIGRATE)
    assert outage(cli)["ran_until"].startswith("2026-11-20T12:00:03")
    assert outage(cli)["start_at"].startswith("2026-11-20T12:00:05")


def test_a_resumed_run_keeps_the_time_of_the_stop(cli, monkeypatch):
    """If the same command runs again and the old group has not run since, the outage counts from the first stop."""
    Running(cli, monkeypatch)
    cli(*MIGRATE)
    before = outage(cli)
    assert before["ran_until"] is not None
    cli(*MIGRATE)
    assert outage(cli)["ran_until"] == before["ran_until"]
    assert outage(cli)["start_at"] > before["start_at"]
