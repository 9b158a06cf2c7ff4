"""How a group's current committed offset relates to the change that this tool made of it."""

from __future__ import annotations

import pytest

from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Change, Outcome, Relation


def at(offset: int | None, metadata: str = "") -> CommittedOffset | None:
    return None if offset is None else CommittedOffset(offset=offset, metadata=metadata)


def change(before: int | None, after: int | None, outcome: Outcome, own: int | None = None) -> Change:
    """Return the change of a partition. own: the offset that an interrupted run wrote."""
    earlier = () if own is None else (at(own),)
    return Change(
        source_group="old",
        group="new",
        topic="t",
        partition=0,
        before=at(before),
        after=at(after),
        outcome=outcome,
        own=earlier,
    )


WRITTEN = change(9, 5, Outcome.CONFIRMED, own=3)


@pytest.mark.parametrize(
    ("made", "now", "relation"),
    [
        (WRITTEN, at(5), Relation.OURS),
        (WRITTEN, at(3), Relation.OURS),
        (WRITTEN, at(9), Relation.BEFORE),
        (WRITTEN, None, Relation.GONE),
        (WRITTEN, at(4), Relation.BEHIND),
        (WRITTEN, at(6), Relation.AHEAD),
        (WRITTEN, at(5, "of another client"), Relation.OTHER),
        (change(None, 5, Outcome.UNKNOWN), at(5), Relation.OURS),
        (change(None, 5, Outcome.NOT_ATTEMPTED), at(5), Relation.OURS),
        (change(None, 5, Outcome.REFUSED), at(5), Relation.OTHER),
        (change(None, 5, Outcome.REFUSED), None, Relation.BEFORE),
        (change(5, 5, Outcome.UNCHANGED), at(5), Relation.BEFORE),
        (change(9, None, Outcome.CONFIRMED), None, Relation.OURS),
        (change(9, None, Outcome.CONFIRMED), at(10), Relation.OTHER),
    ],
)
def test_a_current_offset_is_ours_or_from_before_or_of_another_client(made, now, relation):
    """An offset that this migration wrote, or may have written, is ours; the offset from before counts next.

    Any other offset is of another client: none, a lower or higher one than was set, or the same one committed anew.
    """
    assert made.relation(now) is relation


@pytest.mark.parametrize(
    ("now", "is_lowered"), [(None, True), (at(3), True), (at(4), True), (at(5), False), (at(9), False)]
)
def test_an_offset_is_lowered_whoever_wrote_it(now, is_lowered):
    """A missing or lower offset counts as lowered, even if an interrupted run of this migration wrote it."""
    assert WRITTEN.is_lowered(now) is is_lowered


@pytest.mark.parametrize("outcome", Outcome)
def test_the_offset_from_before_is_replaced_if_the_new_one_was_read_back(outcome):
    """Only a change that was written and read back has replaced the offset from before."""
    assert change(9, 5, outcome).replaced is (outcome in (Outcome.CONFIRMED, Outcome.CONFIRMED_BY_ONE))
