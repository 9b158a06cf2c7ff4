"""Cut-overs on the in-memory cluster: when a log end offset that was read before the stop may still be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate_groups.errors import Refused
from migrate_groups.migration.hand_over.prepared import Prepared
from migrate_groups.migration.reading.survey import survey
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.planning.decide import wanted_rows
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import cut_over, prepare
from tests.support.rows import row

PARTITION = TopicPartition("inv", 0)
SPEC = SplitSpec(source="big", targets=(SplitTarget(group="bill", topics=(TopicPattern("inv"),)),))


def cluster() -> InMemoryCluster:
    """Return a cluster where group ``big`` has one member, and committed offset 0 on inv-1.

    It has no committed offset on inv-0, which has 20 records.
    """
    made = InMemoryCluster()
    made.create_topic("inv", 2)
    made.commit("big", TopicPartition("inv", 1), 0)
    made.produce("inv", 0, 20)
    made.join("big", Member(member_id="a", client_id="a", host="/h", subscription=frozenset({"inv"})))
    return made


def migrate(made: InMemoryCluster, options: WriteOptions, *events) -> Prepared:
    """Cut over, and return the final plan. Each time the clock sleeps, the next of ``events`` is called.

    After the last event, the member leaves.
    """
    left = [*events, lambda: made.leave("big", "a")]
    clock = FakeClock(lambda: left.pop(0)() if left else None)
    shown = prepare(made, SPEC, options, clock)
    return cut_over(made, shown, clock)


def start(final: Prepared) -> int | None:
    """Return the planned offset of the target group on inv-0."""
    (change,) = (change for change in final.plan.changes if change.topic_partition == PARTITION)
    return None if change.after is None else change.after.offset


NOW = WriteOptions(settle=0)


def test_an_offset_beyond_the_log_end_after_an_unclean_election_is_refused():
    """If an unclean election leaves a committed offset beyond the new leader's log end, the hand-over is refused."""
    made = cluster()
    made.commit("big", PARTITION, 20)
    with pytest.raises(Refused, match="inv-0 at 20: the log end offset is 10"):
        migrate(made, NOW, lambda: made.elect("inv", 0, 10))


def test_an_offset_within_the_log_after_an_election_is_handed_over():
    """After an unclean election, the new leader's log end is used, and an offset below it is handed over."""
    made = cluster()
    made.commit("big", PARTITION, 8)
    final = migrate(made, NOW, lambda: made.elect("inv", 0, 10))
    assert final.reading.bounds[PARTITION] == LogRange(start=0, end=10)
    assert start(final) == 8


@pytest.mark.parametrize(("records", "end"), [(30, 10), (10, 19)])
def test_an_offset_above_the_end_of_a_log_that_has_grown_again_is_refused(records, end):
    """If an election cut the log below an offset, the offset is refused even after the log has grown beyond it."""
    made = cluster()
    made.commit("big", PARTITION, 20)
    made.elect("inv", 0, end)
    made.produce("inv", 0, records)
    with pytest.raises(Refused, match=f"in range: .* inv-0 at 20: from {end} on there are other records"):
        migrate(made, NOW)


def test_an_offset_with_only_a_transaction_marker_of_another_leader_below_it_is_handed_over():
    """An offset above its leader epoch's end offset is handed over if all records in between are control records."""
    made = cluster()
    made.elect("inv", 0, 20)
    made.transact("inv", 0, 0)
    made.commit("big", PARTITION, 21)  # of leader epoch 0, as the last record that the group has read
    assert start(migrate(made, NOW)) == 21


def test_each_offset_of_a_partition_is_held_against_the_election():
    """If an unclean election replaced records below the offset of one group, only this group's offset is reported.

    Another group's lower offset in the same partition is not.
    """
    made = cluster()
    made.commit("big", PARTITION, 20)
    made.commit("other", PARTITION, 11)
    made.elect("inv", 0, 10)
    made.transact("inv", 0, 0)
    made.produce("inv", 0, 30)
    rows = [
        row(group=f"new-{group}", source_group=group, topic="inv", partition=0, offset=offset, leader_epoch=0)
        for group, offset in (("big", 20), ("other", 11))
    ]
    assert [committed.offset for _, committed in survey(made, wanted_rows(rows)).cut] == [20]
    assert [committed.offset for _, committed in survey(made, wanted_rows(rows[::-1])).cut] == [20]


END = WriteOptions(on_uncommitted="latest", settle=0)


def test_the_log_end_is_read_again_while_the_group_has_a_member():
    """With ``on_uncommitted=latest``, the log end is read again as long as the source group has a member.

    The group consumes the records produced in the meantime.
    """
    made = cluster()
    assert start(migrate(made, END, lambda: made.produce("inv", 0, 7), lambda: None, lambda: None)) == 27


def test_the_log_end_is_not_read_again_while_the_group_rebalances(monkeypatch):
    """With ``on_uncommitted=latest``, log ends are not read again while the source group rebalances.

    A subscribed KIP-848 member may then have no partition yet.
    """
    made = cluster()
    describe, states = made.description, {"big": "Stable"}
    monkeypatch.setattr(
        made, "description", lambda group: replace(found := describe(group), state=states.get(group, found.state))
    )

    def rebalance() -> None:
        states["big"] = "Reconciling"
        made.produce("inv", 0, 7)

    def leave() -> None:
        states.clear()
        made.leave("big", "a")

    assert start(migrate(made, END, lambda: None, rebalance, lambda: None, leave)) == 20


def test_a_log_end_above_an_open_transaction_is_refused():
    """With ``on_uncommitted=latest``, the hand-over is refused if a transaction stays open below the log end.

    Otherwise no group would get the transaction's records.
    """
    made = cluster()
    with (
        made.transaction("inv", 0, 5),
        pytest.raises(
            Refused,
            match="with a member on the topic and no open transaction: inv-0; pass --on-uncommitted earliest or leave",
        ),
    ):
        migrate(made, END, lambda: None, lambda: None)


def test_a_log_end_counts_once_the_transaction_below_it_has_ended():
    """With ``on_uncommitted=latest``, a log end is used once the transaction below it has ended.

    A member of the source group must still be there when the group is next described.
    """
    made = cluster()
    transaction = made.transaction("inv", 0, 5)
    transaction.__enter__()
    assert start(migrate(made, END, lambda: transaction.__exit__(None, None, None), lambda: None)) == 26


def test_a_log_end_from_before_a_transaction_counts():
    """With ``on_uncommitted=latest``, a log end read before a transaction began is used while the transaction is open.

    So the target group gets the whole transaction.
    """
    made = cluster()
    transaction = made.transaction("inv", 0, 5)
    assert start(migrate(made, END, lambda: None, transaction.__enter__, lambda: None)) == 20


def test_last_stable_offsets_are_read_only_for_uncommitted_latest(monkeypatch):
    """Without ``on_uncommitted=latest``, the last stable offsets are not requested during the wait for the stop."""
    made = cluster()
    monkeypatch.setattr(made, "last_stable_offsets", None)  # so that a request for them raises
    assert start(migrate(made, WriteOptions(on_uncommitted="earliest", settle=0), lambda: None, lambda: None)) == 0
