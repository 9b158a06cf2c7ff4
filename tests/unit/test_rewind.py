"""The offsets of a rewind on the in-memory cluster: each kind of target, the ends of the log, and refusals."""

from __future__ import annotations

import pytest
from msgspec import structs

from migrate_groups.errors import InvalidInput, Refused
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.rewind import rewind, rows_of_topics
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, TopicPartition
from migrate_groups.snapshots.rewind_decision import Note, decide, rewound
from migrate_groups.snapshots.rewind_to import RewindTo, ShiftBy, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.snapshot import SnapshotTable, concatenate
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import NOON, row

BOUNDS = LogRange(start=10, end=20)


@pytest.mark.parametrize(
    ("target", "offset", "note"),
    [
        (ToEarliest(), 10, None),
        (ToLatest(), 20, None),
        (ToCurrent(), 15, None),
        (ShiftBy(-3), 12, None),
        (ShiftBy(0), 15, None),
        (ShiftBy(5), 20, None),
        (ShiftBy(6), 20, Note.CLAMPED),
        (ShiftBy(-6), 10, Note.CLAMPED),
        (ToOffset(10), 10, None),
        (ToOffset(20), 20, None),
        (ToOffset(9), 10, Note.CLAMPED),
        (ToOffset(2**62), 20, Note.CLAMPED),
    ],
)
def test_targets_without_a_timestamp_stay_within_the_log(target: RewindTo, offset, note):
    """A rewind to a target without a timestamp gives an offset within the log.

    If the requested offset is outside the log, it is moved into the log, with a note.
    """
    decision = decide(row(offset=15), BOUNDS, target)
    assert (decision.offset, decision.note) == (offset, note)
    assert decision.to_replay == 20 - offset


@pytest.mark.parametrize("target", [ToCurrent(), ShiftBy(-1)])
def test_a_partition_without_a_committed_offset_gets_none(target):
    """With `ToCurrent` or `ShiftBy`, a partition without a committed offset gets no offset, but a note."""
    decision = decide(row(offset=None), BOUNDS, target)
    assert (decision.offset, decision.note, decision.to_replay) == (None, Note.NO_COMMIT, 0)


def at_time(found: OffsetAndTimestamp | None, bounds: LogRange = BOUNDS, **options):
    return decide(row(), bounds, ToTime(1000), found, **options)


def test_a_rewind_by_time_goes_to_the_record_that_was_found():
    """A rewind to a time gives the offset of the record found by time, whatever the group had committed."""
    assert at_time(OffsetAndTimestamp(offset=13, timestamp=1000)).offset == 13
    assert at_time(OffsetAndTimestamp(offset=13, timestamp=1000)).note is None


@pytest.mark.parametrize(("past_end", "offset", "note"), [("end", 20, Note.PAST_END), ("skip", None, Note.SKIPPED)])
def test_a_time_after_the_last_record_goes_to_the_log_end_or_is_skipped(past_end, offset, note):
    """If no record is at or after the time, ``--past-end end`` gives the log end, and ``skip`` gives no offset."""
    decision = at_time(None, past_end=past_end)
    assert (decision.offset, decision.note) == (offset, note)


@pytest.mark.parametrize("past_end", ["end", "skip", "fail"])
def test_an_empty_partition_goes_to_its_log_end(past_end):
    """A rewind to a time sets an empty partition to its log end, whatever ``--past-end`` says.

    So later records are read, whatever auto.offset.reset says.
    """
    decision = at_time(None, LogRange(start=7, end=7), past_end=past_end)
    assert (decision.offset, decision.note) == (7, Note.EMPTY)


def test_a_time_before_the_log_start_has_a_note_about_deleted_records():
    """If records after the requested time were deleted, a note says how much time they cover at most."""
    decision = at_time(OffsetAndTimestamp(offset=10, timestamp=5_401_000))
    assert (decision.offset, decision.note) == (10, Note.GONE)
    assert "up to 1 h 30 min of records deleted" in decision.detail
    assert "with a record of 1970-01-01T01:30:01Z" in decision.detail
    assert at_time(OffsetAndTimestamp(offset=10, timestamp=1000)).note is None
    assert at_time(OffsetAndTimestamp(offset=0, timestamp=5000), LogRange(start=0, end=20)).note is None


def test_a_record_beyond_the_log_end_that_was_read_is_not_skipped():
    """If the record found by time is above the log end that was read before the search, this log end is used."""
    assert at_time(OffsetAndTimestamp(offset=23, timestamp=1000)).offset == 20


def test_a_rewound_row_has_no_group_source_or_state():
    """A rewound row contains no group, source group, group state or group type.

    It keeps leader epoch and metadata only if the offset is unchanged.
    """
    before = row(offset=15, leader_epoch=3, metadata="m", source_group="old")
    moved, same = (rewound(decide(before, BOUNDS, target), target) for target in (ShiftBy(1), ToCurrent()))
    assert (moved.group, moved.source_group, moved.group_state, moved.group_type) == (None, None, None, None)
    assert (moved.offset, moved.leader_epoch, moved.metadata) == (16, None, "")
    assert (same.offset, same.leader_epoch, same.metadata) == (15, 3, "m")
    assert (moved.log_start_offset, moved.log_end_offset) == (10, 20)


T = 1_700_000_000_000


def cluster() -> InMemoryCluster:
    """Return an in-memory cluster whose group ``live`` has committed in all three partitions of ``orders``.

    Two partitions have a record each second, and one is empty.
    """
    made = InMemoryCluster()
    made.create_topic("orders", 3)
    for seconds in range(10):
        made.produce("orders", 0, 1, timestamp=T + 1000 * seconds)
        made.produce("orders", 1, 1, timestamp=T - 60_000 + 1000 * seconds)
    for partition, offset in enumerate((8, 9, 0)):
        made.commit("live", TopicPartition("orders", partition), offset, metadata="m")
    return made


def offsets(snapshot: SnapshotTable) -> list[int | None]:
    return [each.offset for each in snapshot.rows()]


def test_rewinding_a_group_or_its_topics_gives_the_same_offsets():
    """A rewind to a time gives the same offsets for a group's partitions as for its topics given by name."""
    made = cluster()
    taken = take_snapshot(made, ["live"], FakeClock())
    by_topic = rows_of_topics(made, [TopicPattern("ord*")], FakeClock())
    results = [rewind(made, rows, ToTime(T + 3500), FakeClock()) for rows in (taken, by_topic)]
    assert results[0].snapshot == results[1].snapshot
    assert offsets(results[0].snapshot) == [4, 10, 0]
    assert [decision.note for decision in results[0].decisions] == [None, Note.PAST_END, Note.EMPTY]
    assert {each.taken_at for each in results[0].snapshot.rows()} == {NOON}
    assert {each.cluster_id for each in by_topic.rows()} == {made.cluster_id()}
    assert {each.log_end_offset for each in results[0].snapshot.rows()} == {10, 0}


def test_topic_patterns_omit_internal_topics():
    """The topic pattern ``*`` leaves out Kafka's internal topics. A pattern that matches no topic is refused."""
    made = cluster()
    made.create_topic("__consumer_offsets", 1)
    assert rows_of_topics(made, [TopicPattern("*")], FakeClock()).topics() == ["orders"]
    with pytest.raises(InvalidInput, match="no topic matches nope"):
        rows_of_topics(made, [TopicPattern("nope")], FakeClock())


def test_refusals_of_strict_and_past_end_fail():
    """``--past-end fail`` refuses a time after the last record.

    ``--strict`` refuses an offset that had to be moved into the log, records that were deleted, and a missing committed
    offset.
    """
    made = cluster()
    rows = take_snapshot(made, ["live"], FakeClock())
    with pytest.raises(Refused, match=r"1 partition without a record at or after the time: orders-1 \(past end"):
        rewind(made, rows, ToTime(T), FakeClock(), past_end="fail")
    with pytest.raises(Refused, match=r"as requested: orders-0 \(clamped: 12 requested, but the log ends at 10\)"):
        rewind(made, rows.keep({"partition": [0, 1]}), ShiftBy(4), FakeClock(), strict=True)
    made.delete_records("orders", 0, 5)
    assert offsets(rewind(made, rows, ToTime(T), FakeClock()).snapshot)[0] == 5
    with pytest.raises(Refused, match=r"orders-0 \(gone: up to 5 s of records deleted"):
        rewind(made, rows, ToTime(T), FakeClock(), strict=True)
    made.create_topic("other", 1)
    with pytest.raises(Refused, match=r"other-0 \(no commit"):
        rewind(made, rows_of_topics(made, [TopicPattern("other")], FakeClock()), ToCurrent(), FakeClock(), strict=True)


def test_a_partition_without_a_leader_is_refused_by_name():
    """If a partition has no leader, the rewind is refused, and the error names the partition.

    If the snapshot does not contain this partition, the other partitions are rewound, and it is listed as left out.
    """
    made = cluster()
    made.lose_leader("orders", 1)
    rows = take_snapshot(made, ["live"], FakeClock())
    for target in (ToTime(T), ToEarliest(), ToOffset(3), ToCurrent()):
        with pytest.raises(Refused, match="1 partition without a leader: orders-1"):
            rewind(made, rows, target, FakeClock())
    result = rewind(made, rows.keep({"partition": [0, 2]}), ToTime(T), FakeClock())
    assert result.left_out == [TopicPartition("orders", 1)]


def test_files_of_other_clusters_and_topics_are_refused():
    """A rewind refuses offsets of another cluster, of a deleted or recreated topic, and of an unknown partition."""
    made = cluster()
    rows = take_snapshot(made, ["live"], FakeClock())
    for change, complaint in (
        ({"cluster_id": "elsewhere"}, "from cluster elsewhere, this is in-memory"),
        ({"topic": "gone"}, "topic gone not found"),
        ({"topic_id": "earlier"}, "deleted and created again"),
        ({"partition": 7}, "orders-7"),
    ):
        changed = SnapshotTable.of_rows([structs.replace(next(rows.rows()), **change)])
        with pytest.raises(Refused, match=complaint):
            rewind(made, changed, ToEarliest(), FakeClock())


def test_a_record_that_arrives_between_two_requests_is_not_skipped():
    """If the search by time finds no record, a rewind does not skip a record produced right after the search."""

    class Busy(InMemoryCluster):
        def offsets_at(self, timestamps):
            found = super().offsets_at(timestamps)
            self.produce("t", 0, 1, timestamp=max(timestamps.values()))
            return found

    made = Busy()
    made.create_topic("t", 1)
    made.produce("t", 0, 3, timestamp=T)
    rows = rows_of_topics(made, [TopicPattern("t")], FakeClock())
    assert offsets(rewind(made, rows, ToTime(T + 1), FakeClock()).snapshot) == [3]


def test_a_file_with_several_groups_or_times_is_refused():
    """A rewind refuses a file with several groups or times, because a partition can be set to one offset only."""
    made = cluster()
    made.commit("other", TopicPartition("orders", 0), 1)
    with pytest.raises(InvalidInput, match=r"several groups have the same partitions: live, other.*--group"):
        rewind(made, take_snapshot(made, ["live", "other"], FakeClock()), ToCurrent(), FakeClock())
    later = FakeClock()
    later.sleep(60)
    history = concatenate([take_snapshot(made, ["live"], FakeClock()), take_snapshot(made, ["live"], later)])
    with pytest.raises(InvalidInput, match="several moments"):
        rewind(made, history, ToCurrent(), FakeClock())
