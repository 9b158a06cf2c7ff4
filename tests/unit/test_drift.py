"""Which changes in the cluster make a reviewed plan stale, and which do not."""

from __future__ import annotations

import pytest

from migrate_groups.migration.reading.survey import survey
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.decide import decide, wanted_rows, with_an_offset
from migrate_groups.planning.drift import drift
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import row

FIRST = TopicPartition("t", 0)


class Approved:
    """A plan to hand over ``offset`` of a partition with ten records. The target group has committed ``before``."""

    def __init__(self, offset: int, before: int | None = None) -> None:
        self.cluster = InMemoryCluster()
        self.cluster.create_topic("t", 1)
        self.cluster.produce("t", 0, 10)
        self.cluster.commit("old", FIRST, offset)
        if before is not None:
            self.cluster.alter("new", {FIRST: CommittedOffset(offset=before)})
        self.wanted = wanted_rows([row(group="new", source_group="old", offset=offset, leader_epoch=None)])
        self.plan, _ = self.made()

    def made(self):
        facts, options = survey(self.cluster, self.wanted), WriteOptions(on_existing="overwrite")
        changes = with_an_offset(decide(self.wanted, facts, options))
        return Plan(cluster_id=facts.cluster_id, options=options, changes=changes, checks=()), facts

    def reasons(self) -> list[str]:
        """Return the reasons why the plan is stale now: an empty list if it is not."""
        now, facts = self.made()
        return [reason for why in drift(self.plan, now, self.wanted, facts).values() for reason in why]


@pytest.mark.parametrize(
    ("start", "reasons"), [(4, []), (5, ["4 is below the log start offset 5: 1 record deleted"])], ids=["at", "below"]
)
def test_a_log_start_offset_above_the_planned_offset_makes_a_plan_stale(start, reasons):
    """If the log start offset rises above the planned offset, the plan becomes stale.

    If both are equal, it does not.
    """
    approved = Approved(4)
    approved.cluster.delete_records("t", 0, start)
    assert approved.reasons() == reasons


@pytest.mark.parametrize(("end", "reasons"), [(8, []), (7, ["8 is beyond the log end offset 7"])], ids=["at", "beyond"])
def test_a_log_end_offset_below_the_planned_offset_makes_a_plan_stale(end, reasons):
    """If an unclean election cuts the log below the planned offset, the plan becomes stale.

    If the log then ends at this offset, it does not.
    """
    approved = Approved(8)
    approved.cluster.elect("t", 0, end)
    assert approved.reasons() == reasons


def test_an_offset_that_is_in_place_already_is_never_out_of_range():
    """If the target group has the planned offset already, a higher log start does not make the plan stale."""
    approved = Approved(4, before=4)
    approved.cluster.delete_records("t", 0, 6)
    assert approved.reasons() == []


@pytest.mark.parametrize(("before", "was"), [(None, "no offset"), (3, "3")])
def test_a_target_that_moved_is_named_with_both_offsets(before, was):
    """If the target group's offset has changed, the plan is stale; the reason shows the old and the new offset."""
    approved = Approved(4, before=before)
    approved.cluster.alter("new", {FIRST: CommittedOffset(offset=6)})
    assert approved.reasons() == [f"target group: {was} → 6"]


def test_a_source_that_moved_is_named_beside_other_reasons():
    """If records were deleted and the source group has committed, both reasons why the plan is stale are named."""
    approved = Approved(4)
    assert approved.reasons() == []
    approved.cluster.commit("old", FIRST, 7)
    approved.cluster.delete_records("t", 0, 5)
    assert approved.reasons() == ["4 is below the log start offset 5: 1 record deleted", "source group old: 4 → 7"]
