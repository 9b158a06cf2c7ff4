"""Watching how a group replays records, on the in-memory cluster: progress, rate, and when watching ends."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import ClassVar

import pytest
from msgspec import structs

from migrate_groups.api.cluster import Cluster
from migrate_groups.api.snapshot import Snapshot
from migrate_groups.cli.progress import progress_line, progress_rows
from migrate_groups.errors import GroupNotFound, InvalidInput, NotAuthorized, Refused
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.migration.events import Events
from migrate_groups.migration.watch import Goals, WatchProgress, goals, watch
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import row

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
SPANS = {FIRST: range(2, 10), SECOND: range(5, 10)}


def cluster(kind: type[InMemoryCluster] = InMemoryCluster) -> InMemoryCluster:
    """Return a cluster where group ``replay`` has committed the first offset of each span in `SPANS`.

    Each partition has ten records.
    """
    made = kind()
    made.create_topic("t", 2)
    for partition, span in SPANS.items():
        made.produce("t", partition.partition, 10)
        made.commit("replay", partition, span.start)
    return made


def reading(spans: Mapping[TopicPartition, range]) -> Goals:
    return Goals(rows=(), spans=spans, unset=())


def follow(made: InMemoryCluster, *events, spans=SPANS, timeout: float = 100.0) -> list[WatchProgress]:
    """Watch group ``replay`` while ``events`` are called, one each second. Return the progress that was reported."""
    todo, seen = list(events), list[WatchProgress]()
    clock = FakeClock(lambda: todo.pop(0)() if todo else None)
    watch(made, "replay", reading(spans), clock, seen.append, timeout=timeout)
    return seen


def test_watching_ends_when_every_partition_has_reached_its_end():
    """Watching ends when every partition has reached the end of its span, without waiting for later records.

    Records left, rate and time left are calculated from the committed offsets.
    """
    made = cluster()
    made.join("replay", Member(member_id="m", client_id="c", host="/h", subscription=frozenset({"t"})))

    def finish_the_first() -> None:
        made.commit("replay", FIRST, 10)
        made.produce("t", 0, 5)

    seen = follow(
        made,
        lambda: made.commit("replay", FIRST, 6),
        finish_the_first,
        lambda: made.commit("replay", SECOND, 10),
    )
    assert [progress.total.left for progress in seen] == [13, 9, 5, 0]
    assert [progress.total.reached for progress in seen] == [0, 0, 1, 2]
    assert [progress.reached for progress in seen] == [False, False, False, True]
    assert [progress.seconds for progress in seen] == [0, 1, 2, 3]
    assert (seen[1].total.rate, seen[2].total.rate) == (4, 4)
    assert seen[1].total.seconds_left == 9 / 4
    assert {progress.members for progress in seen} == {1}
    lines = [progress_line(progress.topics[0]) for progress in seen]
    assert lines[1:] == ["t: 9 of 13 left, 4/s, 2 s to go", "t: 5 of 13 left, 4/s, 1 s to go", "t: 13 done"]


def test_the_rate_is_the_mean_of_the_last_30_seconds():
    """The rate shown is the mean of the last 30 seconds, or of the whole watch if that is shorter."""
    made = cluster()
    idle = [lambda: None] * 31
    arrival = [lambda: made.commit("replay", FIRST, 10), lambda: made.commit("replay", SECOND, 10)]
    seen = follow(made, lambda: made.commit("replay", FIRST, 8), *idle, *arrival)
    assert [seen[second].total.rate for second in (0, 1, 2, 30, 31)] == [None, 6, 3, 6 / 30, 0]


def test_without_progress_no_time_left_is_shown():
    """If the group makes no progress, no time left is shown, and watching ends with an error at the time-out."""
    seen: list[WatchProgress] = []
    with pytest.raises(Refused, match="not finished after 3 s: 13 records left in 2 partitions"):
        watch(cluster(), "replay", reading(SPANS), FakeClock(), seen.append, timeout=3)
    assert {progress.total.seconds_left for progress in seen} == {None}
    assert [progress.seconds for progress in seen] == [0, 1, 2, 3]
    assert [progress_line(progress.topics[0]) for progress in seen[:2]] == [
        "t: 13 of 13 left",
        "t: 13 of 13 left, no progress",
    ]


def test_the_time_out_counts_partitions_that_are_not_at_their_end():
    """Progress is read for the last time exactly at the time-out.

    The error counts only partitions that have not reached their end.
    """
    made, seen = cluster(), list[WatchProgress]()
    clock = FakeClock(lambda: made.commit("replay", FIRST, 10))
    clock.slept = 1_000.0  # because a clock may begin at any value
    with pytest.raises(Refused, match=r"2\.5 s: 5 records left in 1 partition; no member consumes topic t; run again"):
        watch(made, "replay", reading(SPANS), clock, seen.append, timeout=2.5)
    assert [progress.seconds for progress in seen] == [0, 1, 2, 2.5]


def test_control_and_aborted_records_at_the_end_are_not_waited_for():
    """If only control or aborted records are left in a partition, the partition has reached its end.

    Some consumers do not commit past such records.
    """
    made = cluster()
    made.transact("t", 0, 2, commit=False)
    spans = {FIRST: range(2, 13)}
    assert follow(made, lambda: made.commit("replay", FIRST, 10), spans=spans)[-1].reached
    made.transact("t", 0, 1)
    with pytest.raises(Refused, match="4 records left in 1 partition"):
        follow(made, lambda: made.commit("replay", FIRST, 11), spans={FIRST: range(2, 15)}, timeout=30)


def test_records_at_an_offset_that_stands_still_are_read_every_ten_seconds():
    """While a committed offset does not change, the records from that offset on are read every ten seconds.

    While the offset changes, no records are read.
    """

    class Counting(InMemoryCluster):
        looked_at: ClassVar[list[list[TopicPartition]]] = []

        def first_records(self, spans):
            if spans:
                self.looked_at.append(sorted(spans))
            return super().first_records(spans)

    made = cluster(Counting)
    assert isinstance(made, Counting)
    moving = [lambda offset=offset: made.commit("replay", FIRST, offset) for offset in range(3, 10)]
    with pytest.raises(Refused, match="not finished after 25 s: 6 records left in 2 partitions"):
        follow(made, *moving, timeout=25)
    of_first = [number for number, each in enumerate(made.looked_at) if FIRST in each]
    assert len(of_first) == 2
    assert made.looked_at.count([SECOND]) == 3


def test_records_that_retention_deleted_are_not_waited_for():
    """Records below the log start offset are not counted as left.

    If a partition has no other records, it has reached its end.
    """
    made = cluster()
    made.delete_records("t", 0, 10)
    made.delete_records("t", 1, 7)
    assert follow(made, lambda: made.commit("replay", SECOND, 10))[0].total.left == 3


def test_without_read_on_the_topic_only_offsets_are_compared():
    """Without Read on the topic, a watch compares only offsets and does not read records, and a remark says so."""

    class WithoutRead(InMemoryCluster):
        def first_records(self, spans):
            if spans:
                raise NotAuthorized("not authorized: TopicAuthorizationFailed")
            return {}

    made = cluster(WithoutRead)

    def finish() -> None:
        made.commit("replay", FIRST, 10)
        made.commit("replay", SECOND, 10)

    seen = follow(made, lambda: None, finish)
    assert seen[-1].reached
    assert seen[-1].remark.startswith("the log is not checked for remaining records")


def test_a_leaderless_partition_is_waited_for_and_a_deleted_topic_is_an_error():
    """A watch waits for a partition without a leader, and counts its records as left.

    If a topic is deleted, the watch ends with an error.
    """
    made = cluster()
    made.commit("replay", FIRST, 0)
    made.lose_leader("t", 0)
    whole = {FIRST: range(10)}

    def finish() -> None:
        made.commit("replay", FIRST, 10)
        made.commit("replay", SECOND, 10)

    assert follow(made, lambda: made.commit("replay", FIRST, 10), spans=whole)[0].total.left == 10
    assert follow(made, finish)[-1].reached
    made = cluster()
    with pytest.raises(Refused, match="topic t deleted during the watch"):
        follow(made, lambda: made.delete_topic("t"))


def test_a_mistyped_or_deleted_group_is_not_found():
    """`watch` raises `GroupNotFound` if the group's name is mistyped, or if the group is deleted during the watch."""
    made = cluster()
    with pytest.raises(GroupNotFound, match="'repaly' does not exist"):
        watch(made, "repaly", reading(SPANS), FakeClock(), lambda progress: None)
    with pytest.raises(GroupNotFound, match="'replay' does not exist"):
        follow(made, lambda: made.delete_group("replay"))


@pytest.mark.parametrize(("topics", "shown"), [(1, 1), (2, 3), (20, 21), (21, 1)])
def test_more_than_20_topics_are_shown_as_their_sum(topics, shown):
    """Progress is shown for each of up to 20 topics, and for their sum if there are several.

    For more than 20 topics only the sum is shown.
    """
    made = InMemoryCluster()
    for number in range(topics):
        made.create_topic(f"t{number}", 1)
        made.produce(f"t{number}", 0, 5)
        made.commit("replay", TopicPartition(f"t{number}", 0), 5)
    spans = {TopicPartition(f"t{number}", 0): range(5) for number in range(topics)}
    (seen,) = follow(made, spans=spans)
    rows = progress_rows(seen)
    assert len(rows) == shown
    assert progress_line(rows[-1]) == ("t0: 5 done" if topics == 1 else f"all topics: {5 * topics} done")


def test_goals_are_rows_of_the_group_or_rows_without_a_group():
    """`goals` takes the snapshot's rows of the watched group.

    If the snapshot has none, it takes the rows without a group, which `rewind` makes.
    """
    of_group = row(group="replay", offset=3, log_end_offset=9)
    of_nobody = row(group=None, offset=4, log_end_offset=9)
    unset = row(group=None, partition=1, offset=None, log_end_offset=9)
    assert goals(SnapshotTable.of_rows([of_group, of_nobody]), "replay").spans == {FIRST: range(3, 9)}
    found = goals(SnapshotTable.of_rows([of_nobody, unset]), "replay")
    assert (found.spans, found.unset) == ({FIRST: range(4, 9)}, (SECOND,))
    with pytest.raises(InvalidInput, match="no offsets for group 'other'; it has group replay"):
        goals(SnapshotTable.of_rows([of_group]), "other")
    with pytest.raises(InvalidInput, match="no partition of group 'replay' has an offset"):
        goals(SnapshotTable.of_rows([unset]), "replay")
    with pytest.raises(InvalidInput, match="no log end offset for t-0"):
        goals(SnapshotTable.of_rows([structs.replace(of_group, log_end_offset=None)]), "replay")


def test_an_empty_snapshot_is_not_taken_for_the_current_log_ends(monkeypatch):
    """`Cluster.watch` refuses an empty snapshot. Without a snapshot it watches until the current log end offsets."""
    made = cluster()
    for partition in SPANS:
        made.commit("replay", partition, 10)
    monkeypatch.setattr("migrate_groups.api.reading.open_reader", lambda _: nullcontext(made))
    with Cluster(ClientConfig(bootstrap_servers="h:1", timeout=1), Events(), FakeClock()) as connected:
        with pytest.raises(InvalidInput, match="the snapshot has no offsets for group 'replay'; it has no rows"):
            connected.watch("replay", until=Snapshot.of_rows([]))
        assert connected.watch("replay").reached


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"cluster_id": "elsewhere"},
            "from cluster elsewhere, this is in-memory: check --bootstrap-server, or watch wit",
        ),
        (
            {"topic_id": "earlier"},
            "topic t deleted and created again since the snapshot: take a new snapshot, or watch w",
        ),
    ],
)
def test_a_file_of_another_cluster_or_topic_is_refused(monkeypatch, change, complaint):
    """`Cluster.watch` refuses a snapshot of another cluster, or of a topic that was created again in the meantime.

    A snapshot that names neither the cluster nor the topic id is accepted.
    """
    made = cluster()
    made.commit("replay", FIRST, 10)
    monkeypatch.setattr("migrate_groups.api.reading.open_reader", lambda _: nullcontext(made))
    known = {"cluster_id": "in-memory", "topic_id": made.describe_topics(["t"])["t"].topic_id}
    with Cluster(ClientConfig(bootstrap_servers="h:1", timeout=1), Events(), FakeClock()) as connected:
        for ids in (known, dict.fromkeys(known)):
            assert connected.watch("replay", until=Snapshot.of_rows([row(group="replay", **ids)])).reached
        with pytest.raises(Refused, match=complaint):
            connected.watch("replay", until=Snapshot.of_rows([row(group="replay", **(known | change))]))
