"""The log's ends at a cut-over in memory: those from before the stop that count no more."""

from __future__ import annotations

import pytest

from migrate_groups.cluster.in_memory import InMemoryCluster
from migrate_groups.cluster.ports import LogBounds, Member, TopicPartition
from migrate_groups.errors import Refused
from migrate_groups.migration.cutover import CutOver, Prepared, cut_over, prepare
from migrate_groups.offsets.selection import TopicPattern
from migrate_groups.offsets.split import SplitSpec, SplitTarget
from migrate_groups.plan.options import WriteOptions
from tests.support.clock import FakeClock

PARTITION = TopicPartition("inv", 0)
SPEC = SplitSpec(source="big", targets=(SplitTarget(group="bill", topics=(TopicPattern("inv"),)),))


def cluster() -> InMemoryCluster:
    """A topic of one partition with 20 records, to which the one member of group ``big`` is subscribed."""
    made = InMemoryCluster()
    made.create_topic("inv", 1)
    made.produce("inv", 0, 20)
    made.join("big", Member(member_id="a", client_id="a", host="/h", subscription=frozenset({"inv"})))
    return made


def migrate(made: InMemoryCluster, options: WriteOptions, *deeds) -> Prepared:
    """Cut over while ``deeds`` happen one after the other, one at each look; the last makes the member leave."""
    left = [*deeds, lambda: made.leave("big", "a")]
    clock = FakeClock(lambda: left.pop(0)() if left else None)
    shown = prepare(made, SPEC, options, clock)
    return cut_over(made, SPEC, shown, clock, CutOver(wait=60, progress=lambda reasons, looks, seconds: None))


NOW = WriteOptions(settle=0)


def test_an_offset_that_an_unclean_election_has_left_beyond_the_end_is_refused():
    """The new leader never had the last ten records: what was committed within the log by then is beyond its end."""
    made = cluster()
    made.commit("big", PARTITION, 20)
    with pytest.raises(Refused, match="inv-0 at 20: the log ends at 10"):
        migrate(made, NOW, lambda: made.elect("inv", 0, 10))


def test_an_election_that_loses_nothing_needed_is_no_obstacle():
    """The end is that of now, and the offset is within it."""
    made = cluster()
    made.commit("big", PARTITION, 8)
    final = migrate(made, NOW, lambda: made.elect("inv", 0, 10))
    assert final.reading.bounds == {PARTITION: LogBounds(start=0, end=10)}
    assert [change.after and change.after.offset for change in final.plan.changes] == [8]
