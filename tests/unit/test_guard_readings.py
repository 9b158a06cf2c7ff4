"""The receipt says how often the old group was read after the write, and which clients read the offsets back."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.carry_out import watch_afterwards
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import guard, look_at_watched
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.write import write
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.show import plan_result as views
from tests.support.clock import FakeClock
from tests.support.drawn import on_a_terminal
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import plan_of
from tests.support.stopped import stopped

PARTITION = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> InMemoryCluster:
    """A cluster where group ``old`` has committed offset 4 in a partition of ten records."""
    return stopped({PARTITION: 4})


class Unavailable(InMemoryCluster):
    """A second client that can't read."""

    def committed(self, wanted, *, wait=True):
        raise ClusterUnavailable("no second client")


def written(cluster: InMemoryCluster, states: list[Execution] | None = None, second=None, **options) -> Execution:
    """Return the record of a hand-over from ``old`` to ``new``."""
    plan = plan_of(cluster, "old", "new", **{"second_client": "auto" if second else "none"} | options)
    clients = Clients(cluster, second or Unavailable())
    return write(clients, Execution.of(plan, FakeClock().now()), (states if states is not None else []).append)


def shown(execution: Execution) -> str:
    """Return the result of a write as the terminal shows it."""
    return on_a_terminal(views.execution(execution))


def test_a_receipt_counts_the_readings_of_the_guard(cluster):
    """A guard of 5 s reads the old group five times, 1 s apart, and the receipt and the result say so."""
    execution = guard(cluster.clients, written(cluster), 5.0, FakeClock())
    assert (execution.guard_readings, execution.longest_gap) == (5, 1.0)
    assert "watched after the write: old (read 5 times, at most 1 s apart)" in shown(execution)
    (loaded,) = receipt_json.read(receipt_json.to_bytes(Receipt((execution,))), "receipt.json").executions
    assert (loaded.guard_readings, loaded.longest_gap) == (5, 1.0)


def test_all_groups_of_the_guard_are_read_together(cluster, monkeypatch):
    """One reading of twenty groups describes them together, then reads their offsets together.

    A group that can't be described, and one that committed, are reported; neither hides the other.
    """
    undone = written(cluster)
    (change,) = undone.changes
    groups = [f"app-{number}" for number in range(20)]
    for group in groups:
        cluster.commit(group, PARTITION, 4)
    cluster.commit("app-7", PARTITION, 9)
    back = tuple(
        msgspec.structs.replace(change, source_group=None, group=group, after=change.before or change.after)
        for group in groups
    )
    asked: list[tuple[str, list[str]]] = []
    describe, committed = cluster.describe_groups, cluster.committed

    def describing(groups):
        asked.append(("describe", [*groups]))
        return {**describe(groups), "app-3": ClusterUnavailable("its coordinator is silent")}

    def reading(wanted, *, wait=True):
        asked.append(("offsets", [*wanted]))
        return committed(wanted, wait=wait)

    monkeypatch.setattr(cluster, "describe_groups", describing)
    monkeypatch.setattr(cluster, "committed", reading)
    seen = look_at_watched(cluster, replace(undone, verb=Verb.ROLLBACK, changes=back))
    assert asked == [("describe", groups), ("offsets", [group for group in groups if group != "app-3"])]
    assert [line.split(":")[0] for line in seen.not_watched] == ["group 'app-3' could not be watched after the write"]
    assert [line.split(" (")[0] for line in seen.moved] == [
        "group 'app-7' has committed on 1 partition since its offsets were read: t-0 4 → 9"
    ]


def test_a_slow_broker_shows_as_a_longer_gap(cluster, monkeypatch):
    """If a broker takes 7 s to describe the new group and 7 s for the old one, the longest gap includes all of them."""
    clock = FakeClock()
    execution, describe = written(cluster), cluster.description

    def slowly(group: str) -> GroupDescription:
        clock.sleep(7)
        return describe(group)

    monkeypatch.setattr(cluster, "description", slowly)
    execution = guard(cluster.clients, execution, 5.0, clock)
    assert (execution.guard_readings, execution.longest_gap) == (1, 15.0)


def test_without_a_guard_the_result_says_that_nothing_was_watched(cluster):
    """With ``--guard 0s`` the receipt has no readings, and a remark says that later consumption is not known."""
    file = ReceiptFile(None)
    execution = watch_afterwards(cluster.clients, written(cluster, guard=0.0), file, FakeClock(), Events())
    assert (execution.guard_readings, execution.longest_gap) == (0, None)
    assert execution.remarks == (
        "not watched after the write (guard 0s), so it is not known whether a consumer comes back: old",
    )
    assert execution.remarks[0] in shown(execution)


@pytest.mark.parametrize("mode", ["none", "auto"])
def test_an_offset_that_one_client_read_back_is_not_called_confirmed(cluster, mode):
    """If only kafka-python reads back, the outcome is `confirmed by one client`; the offset counts as in place."""
    execution = written(cluster, second_client=mode)
    assert [str(each.outcome) for each in execution.changes] == ["confirmed by one client"]
    assert (execution.failed, execution.is_whole) == ((), True)
    assert "1 partition: 1 confirmed by one client" in shown(execution)


def test_no_receipt_says_confirmed_before_the_second_client_has_read(cluster):
    """Only the last state of the receipt says `confirmed`; a process that is killed before leaves another word."""
    states: list[Execution] = []
    written(cluster, states, second=cluster)
    assert [str(state.changes[0].outcome) for state in states] == [
        "not attempted",
        "unknown",
        "unknown",
        "confirmed",
    ]
