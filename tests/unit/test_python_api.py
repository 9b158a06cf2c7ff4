"""Wrong arguments of the Python API, on a cluster in memory. Each is refused with one line that names the argument."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import migrate_groups as mg
from migrate_groups.migration.ports import Clients
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.times import milliseconds_of
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import NOON

NOW = milliseconds_of(NOON)
OPTIONS = mg.WriteOptions(settle=0, guard=0.001)


@pytest.fixture
def made() -> InMemoryCluster:
    """A cluster whose group ``old`` has committed offsets in two partitions, with a record each second until now."""
    cluster = InMemoryCluster()
    cluster.create_topic("t", 2)
    for partition in (0, 1):
        for seconds in range(10, 0, -1):
            cluster.produce("t", partition, 1, timestamp=NOW - 1000 * seconds)
        cluster.commit("old", TopicPartition("t", partition), 5)
    return cluster


@pytest.fixture
def cluster(made, monkeypatch) -> mg.Cluster:
    """The cluster in memory, as `migrate_groups.connect` returns a cluster."""
    monkeypatch.setattr("migrate_groups.api.reading.open_reader", lambda _: nullcontext(made))
    monkeypatch.setattr("migrate_groups.api.reading.open_writer", lambda _: nullcontext(Clients(made, made)))
    return mg.connect("h:1", clock=FakeClock())


def split(**changes: Any) -> mg.Split:
    return mg.Split(**{"source": "old", "targets": {"new": ["t"]}, **changes})


@pytest.mark.parametrize(
    ("moment", "complaint"),
    [
        (1_795_175_000, r"ToTime is 1795175000, which is 1970-01-21T\S+ in milliseconds: .* pass 1795175000000"),
        (NOW + 1, "ToTime is .*, which is in the future: it is now 2026-11-20T12:00:00Z"),
        (-1, "ToTime is -1, which is before 1970"),
    ],
)
def test_a_time_has_the_checks_of_the_command(cluster, moment, complaint):
    """A time in seconds, in the future or before 1970 is refused, as the command `rewind` refuses it."""
    taken = cluster.snapshot("old")
    with pytest.raises(mg.UsageError, match=complaint):
        taken.rewind(cluster, mg.ToTime(moment))
    with pytest.raises(mg.UsageError, match=complaint):
        cluster.rewind(taken, mg.ToTime(moment))
    assert [row.offset for row in taken.rewind(cluster, mg.ToTime(NOW - 3000))] == [7, 7]
    assert [row.offset for row in taken.rewind(cluster, mg.ToTime(NOW))] == [10, 10]


@pytest.mark.parametrize("kind", [mg.ToTime, mg.ToOffset, mg.ShiftBy])
@pytest.mark.parametrize("number", [5.5, 5.0, True, "5", None, datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)])
def test_a_rewind_takes_only_whole_numbers(kind, number):
    """A number with a fraction is not cut, and a value of another type is refused."""
    with pytest.raises(mg.UsageError, match=rf"^{kind.__name__} is .*; expected a whole number"):
        kind(number)


def test_a_negative_offset_is_refused():
    """`ToOffset` refuses a negative offset, as ``--to-offset`` does. `ShiftBy` goes back with a negative number."""
    with pytest.raises(mg.UsageError, match="ToOffset is -1; expected a whole number, 0 or more"):
        mg.ToOffset(-1)
    assert mg.ShiftBy(-1).offsets == -1


def test_a_target_of_another_type_is_refused(cluster):
    """A target that is not made, or is no target of a rewind, is refused."""
    for wrong in (mg.ToEarliest, "earliest", 5):
        with pytest.raises(mg.UsageError, match=r"target is .*; expected one such as ToEarliest\(\) or ToOffset\(42\)"):
            cluster.snapshot("old").rewind(cluster, wrong)


def test_an_unknown_past_end_is_refused(cluster):
    """A value of ``past_end`` other than end, skip and fail is refused, whatever the target of the rewind."""
    wrong: Any = "bogus"
    for target in (mg.ToTime(NOW), mg.ToEarliest()):
        with pytest.raises(mg.UsageError, match="past_end is 'bogus'; expected one of end, skip, fail"):
            cluster.snapshot("old").rewind(cluster, target, past_end=wrong)
