"""Before a write, the command waits for whatever remains of the time ``--settle``, counted from the snapshot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from migrate_groups.migration.make_plan import still_to_settle
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.clock import FakeClock
from tests.support.rows import NOON, row
from tests.support.stopped import FIRST, stopped


@pytest.mark.parametrize(
    ("taken_at", "seconds"),
    [
        (NOON - timedelta(minutes=1), 0),
        (NOON - timedelta(seconds=4), 6),
        (NOON, 10),
        (NOON + timedelta(hours=2), 10),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), 10),
    ],
)
def test_the_age_of_the_snapshot_is_subtracted_from_settle(taken_at, seconds):
    """Before a write, the command waits for ``--settle`` minus the age of the snapshot.

    If the time of the snapshot is in the future, the command waits for the full ``--settle``.
    """
    made, clock = stopped({FIRST: 5}, "big"), FakeClock()
    clock.slept = (taken_at - NOON).total_seconds()
    taken = take_snapshot(made, ["big"], clock)
    clock.slept = 0.0
    rows = name_groups(taken, ["new"], fan_out=False, restore=False)
    assert still_to_settle(rows, 10.0, clock.now()) == seconds


@pytest.mark.parametrize(("source_group", "seconds"), [("big", 10), (None, 0)])
def test_rows_that_do_not_say_when_they_were_taken_take_the_full_settle(source_group, seconds):
    """If offsets do not say when they were read, the command waits for the full ``--settle`` before the write.

    For offsets without a source group it does not wait.
    """
    rows = SnapshotTable.of_rows([row(group="new", source_group=source_group, taken_at=None)])
    assert still_to_settle(rows, 10.0, NOON) == seconds
