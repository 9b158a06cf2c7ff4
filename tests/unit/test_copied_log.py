"""Files of the audit: the copied log of ``__consumer_offsets``, and its log end offsets at a cut-over."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrate_groups.errors import InvalidInput, Refused
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.migration.events import Events
from migrate_groups.migration.offsets_topic.copied import copy_with_ends
from migrate_groups.migration.ports import LogClients
from migrate_groups.migration.reading.copy_log import copy_log
from migrate_groups.model.offsets_topic import LogPiece, Replica, StopCheckpoint, log_partition
from migrate_groups.model.partitions import LogRange
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from tests.support.clock import FakeClock
from tests.support.compacted_log import SimulatedOffsetsTopic, SimulatedPartition
from tests.support.in_memory import InMemoryCluster

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def row(partition: int, offset: int) -> tuple[object, ...]:
    return partition, offset, 1763610000123, "record", b"key", None, None


@pytest.mark.parametrize(
    ("group", "of_50"), [("a", 47), ("00123", 16), ("grüppe", 12), ("😀x", 39), ("polygenelubricants", 0)]
)
def test_the_offsets_topic_partition_of_a_group_equals_javas(group, of_50):
    """A group's partition of ``__consumer_offsets`` is computed as in Java, from a hash over UTF-16.

    The smallest int as a hash (the last case) gives partition 0.
    """
    assert log_partition(group, 50) == of_50


def test_a_copied_log_of_a_later_version_is_refused(tmp_path):
    """A copied log of a later format is refused, because it may have values that must not be ignored."""
    folder = tmp_path / "log"
    CopiedLog.load_with_starts(folder, "cluster", {1: 10}).with_records([row(1, 10)], {1: 11})
    path = folder / "000000.parquet"
    table = pq.read_table(path)
    metadata = {name: text.replace(b'"version":1', b'"version":2') for name, text in table.schema.metadata.items()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(InvalidInput) as raised:
        CopiedLog.load(folder, "cluster")
    assert str(raised.value) == (
        f"{path} has format version 2, but this version of migrate-groups reads 1: "
        "install the version that wrote the file, or name another folder with --log"
    )


def test_copied_log_is_resumed_after_its_last_file(tmp_path):
    """If a copied log of ``__consumer_offsets`` is opened again, it continues after its last file.

    It also accepts further partitions.
    """
    folder = tmp_path / "log"
    log = CopiedLog.load_with_starts(folder, "cluster", {1: 10})
    log = log.with_records([row(1, 10), row(1, 11)], {1: 12})
    log.with_records([row(1, 12)], {1: 20})
    again = CopiedLog.load_with_starts(folder, "cluster", {1: 10, 2: 5})
    assert (again.starts, again.ends, again.files) == ({1: 10, 2: 5}, {1: 20, 2: 5}, 2)
    again.with_records([], {2: 6})
    assert CopiedLog.load_with_starts(folder, "cluster", {1: 10, 2: 5}).ends == {1: 20, 2: 6}
    assert pq.read_table(folder)["log_offset"].to_pylist() == [10, 11, 12]


def test_a_kept_log_takes_new_partitions_from_any_offset(tmp_path):
    """A copied log of ``__consumer_offsets`` accepts new partitions from any offset.

    Partitions that it already contains keep their first offset.
    """
    assert CopiedLog.load(tmp_path, "cluster").starts == {}
    CopiedLog.load_with_starts(tmp_path, "cluster", {1: 10}).with_records([row(1, 10)], {1: 11})
    more = CopiedLog.load(tmp_path, "cluster").with_partitions({1: 3, 2: 4})
    assert (more.starts, more.ends, more.files) == ({1: 10, 2: 4}, {1: 11, 2: 4}, 1)


@pytest.mark.parametrize(
    ("cluster", "start", "complaint"),
    [("another", 10, "of cluster cluster: name"), ("cluster", 11, "another cut-over")],
)
def test_a_copied_log_of_another_cluster_or_stop_checkpoint_is_refused(tmp_path, cluster, start, complaint):
    """If a copied log of ``__consumer_offsets`` is of another cluster or starts at another offset, it is refused."""
    CopiedLog.load_with_starts(tmp_path, "cluster", {1: 10}).with_records([], {1: 10})
    with pytest.raises(InvalidInput, match=complaint):
        CopiedLog.load_with_starts(tmp_path, cluster, {1: start})


def test_a_file_of_another_cluster_among_the_files_of_a_copied_log_is_refused(tmp_path):
    """If any file of a copied log of ``__consumer_offsets`` is of another cluster, the log is refused.

    This holds even if its last file is of the right cluster.
    """
    other = CopiedLog.load_with_starts(tmp_path, "other", {1: 10}).with_records([row(1, 10)], {1: 11})
    replace(other, cluster_id="cluster").with_records([row(1, 11)], {1: 12})
    with pytest.raises(InvalidInput, match="holds the log of cluster other: name another folder"):
        CopiedLog.load(tmp_path, "cluster")


@pytest.mark.parametrize(("source", "copy"), [("a/0", "a/1"), ("a/0", "a/2"), ("b/1", "a/2"), ("a/1", "a/0")])
def test_files_of_two_copies_in_a_folder_are_refused(tmp_path, source, copy):
    """A file of another copy of the same log, or a file twice, is refused, because records would count twice."""
    for folder, end in (("a", 12), ("b", 13)):
        log = CopiedLog.load_with_starts(tmp_path / folder, "cluster", {1: 10}).with_records([row(1, 10)], {1: 11})
        log.with_partitions({2: 0}).with_records([row(1, each) for each in range(11, end)], {1: end, 2: 5})
    source, copy = (tmp_path / name.replace("/", "/00000") for name in (source, copy))
    copy.with_suffix(".parquet").write_bytes(source.with_suffix(".parquet").read_bytes())
    with pytest.raises(InvalidInput, match=r"00000\d.parquet does not continue the file before it: restore"):
        CopiedLog.load(tmp_path / "a", "cluster")
    assert CopiedLog.load(tmp_path / "b", "cluster").ends == {1: 13, 2: 5}


class _Emptied(InMemoryCluster):
    """A cluster whose offsets topic has no records left: each partition starts and ends at ``end``."""

    def __init__(self, end: int) -> None:
        super().__init__()
        self.end = end

    def log_ranges(self, partitions, ends=None, starts=None):
        return {partition: LogRange(start=self.end, end=self.end) for partition in partitions}

    def replicas(self, numbers):
        return {number: Replica(1, self.end, leads=True) for number in numbers}

    def read(self, positions, ends):
        assert positions == ends
        return iter(())


def test_records_deleted_before_they_were_copied_count_as_missing(tmp_path):
    """If records of ``__consumer_offsets`` were deleted before they were copied, the copied log notes them as missing.

    It still does so after it is opened again.
    """
    log = CopiedLog.load_with_starts(tmp_path, "cluster", {1: 10}).with_records([row(1, 10)], {1: 11})
    emptied = _Emptied(15)
    copied = copy_log(emptied, emptied, log, [1], lambda done, total: None)
    assert copied.ranges == [(1, 10, 15, 0)]
    kept = CopiedLog.load_with_starts(tmp_path, "cluster", {1: 10})
    assert (kept.ends, kept.files) == ({1: 15}, 2)
    assert copy_log(emptied, emptied, kept, [1], lambda done, total: None).files == 2


def simulated(*, compacts: bool) -> tuple[SimulatedPartition, Any]:
    """Return a partition with three commits of one key and two of another, which is read record by record.

    compacts: it is compacted after the first record was read.
    """
    log = SimulatedPartition(1, random.Random(0))
    for partition, offset in ((0, 1), (1, 1), (0, 2), (0, 3), (1, 2)):
        log.commit(("g", partition), offset)
    topic: Any = SimulatedOffsetsTopic([log], random.Random(0), compacts_meanwhile=False)

    def one_by_one(positions, ends):
        for number in range(positions[1], ends[1]):
            yield LogPiece([each for each in log.records if each.offset == number], {1: number + 1})
            if compacts and number == 0:
                log.records = [each for each in log.records if each.offset not in (0, 2)]

    topic.read = one_by_one
    return log, topic


@pytest.mark.parametrize(("compacts", "consistent"), [(False, {1: [(0, 5)]}), (True, {})])
def test_a_partition_that_was_compacted_while_it_was_copied_is_not_consistent(tmp_path, compacts, consistent):
    """If Kafka compacts a partition of ``__consumer_offsets`` while it is copied, the copy is not called consistent.

    The first commit of a key was copied, and its second one is missing, although a third one is there.
    """
    _, topic = simulated(compacts=compacts)
    log = CopiedLog.load(tmp_path, "cluster").with_partitions({1: 0})
    assert copy_log(topic, topic, log, [1], lambda done, total: None).consistent == consistent
    assert CopiedLog.load(tmp_path, "cluster").consistent == consistent


def test_a_copied_log_can_be_read_without_its_cluster(tmp_path):
    """A folder says what its last copy has, and when it was made; an empty folder, or none, is refused."""
    with pytest.raises(InvalidInput, match="has no complete copy of __consumer_offsets: run history"):
        CopiedLog.read(tmp_path / "none")
    _, topic = simulated(compacts=False)
    log = CopiedLog.load(tmp_path, "cluster").with_partitions({1: 0})
    copied = copy_log(topic, topic, log, [1], lambda done, total: None, NOON)
    found = CopiedLog.read(tmp_path)
    assert (found.ranges, found.copied_at, found.consistent) == ([(1, 0, 5, 0)], NOON, {1: [(0, 5)]})
    replace(copied, held_back={}).with_records([], {})  # as an interrupted copy leaves it
    with pytest.raises(InvalidInput, match="has no complete copy"):
        CopiedLog.read(tmp_path)


def test_a_copied_log_of_a_recreated_topic_is_refused(tmp_path):
    """A copied log of a ``__consumer_offsets`` that was deleted and created again since is refused."""
    CopiedLog.load(tmp_path, "cluster", "one").with_partitions({1: 0}).with_records([row(1, 0)], {1: 1})
    assert CopiedLog.load(tmp_path, "cluster", "one").topic_id == "one"
    with pytest.raises(InvalidInput, match="__consumer_offsets that was deleted since: name another folder"):
        CopiedLog.load(tmp_path, "cluster", "two")


def test_a_copy_without_holes_makes_the_consistent_range_longer(tmp_path):
    """What is copied without a hole adds to the range that was copied before; after a hole a new range begins."""
    log, topic = simulated(compacts=False)
    copied = CopiedLog.load(tmp_path, "cluster").with_partitions({1: 0})
    for steps, kept, expected in ((0, 0, [(0, 5)]), (1, 1, [(0, 6)]), (2, 1, [(0, 6), (6, 8)])):
        for _ in range(steps):
            log.commit(("g", 0), 9)
        log.records = [*log.records[: len(log.records) - steps], *log.records[len(log.records) - kept :]]
        copied = copy_log(topic, topic, copied, [1], lambda done, total: None)
        assert copied.consistent == {1: expected}


def test_foreign_and_damaged_files_in_a_copied_log_are_refused(tmp_path):
    """A copied log with a damaged file or a foreign Parquet file is refused, even if its last file is intact."""
    log = CopiedLog.load_with_starts(tmp_path, "cluster", {1: 10}).with_records([row(1, 10)], {1: 11})
    log.with_records([row(1, 11)], {1: 12})
    whole = (tmp_path / "000000.parquet").read_bytes()
    (tmp_path / "000000.parquet").write_bytes(whole[:-9])
    with pytest.raises(InvalidInput, match=r"000000\.parquet is damaged, or not a copied log"):
        CopiedLog.load(tmp_path, "cluster")
    (tmp_path / "000000.parquet").write_bytes(whole)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "000000-foreign.parquet")
    with pytest.raises(InvalidInput, match="foreign"):
        CopiedLog.load(tmp_path, "cluster")


def test_a_copied_log_without_producer_ids_is_refused(tmp_path):
    """A copied log without the column producer_id, which tells commits in transactions, is refused by that name."""
    CopiedLog.load(tmp_path, "cluster").with_records([row(1, 10)], {1: 11})
    path = tmp_path / "000000.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["producer_id"]), path)
    with pytest.raises(InvalidInput, match=r"000000\.parquet lacks column producer_id: name another folder with --log"):
        CopiedLog.load(tmp_path, "cluster")


def test_a_copied_log_that_lost_a_file_is_refused(tmp_path):
    """A copied log whose numbered files are not complete is refused: the hole is not taken for compaction."""
    log = CopiedLog.load_with_starts(tmp_path, "cluster", {1: 10}).with_records([row(1, 10)], {1: 11})
    log.with_records([row(1, 11)], {1: 12}).with_records([row(1, 12)], {1: 13})
    (tmp_path / "000001.parquet").unlink()
    with pytest.raises(InvalidInput, match=r"lacks 000001\.parquet: restore it, or name another folder"):
        CopiedLog.load(tmp_path, "cluster")


@pytest.mark.parametrize("state", ["[]", '{"starts": [], "ends": []}', "[" * 100_000 + "]" * 100_000])
def test_a_copied_log_with_damaged_metadata_is_refused(tmp_path, state):
    """A file whose metadata is not that of a copied log, or is nested too deep, is refused with one line."""
    CopiedLog.load(tmp_path, "cluster").with_records([row(1, 10)], {1: 11})
    path = tmp_path / "000000.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata({b"migrate-groups": state.encode()}), path)
    with pytest.raises(InvalidInput, match="is damaged, or not a copied log: name another folder with --log"):
        CopiedLog.load(tmp_path, "cluster")


def test_stop_checkpoints_of_resumed_runs_are_kept_in_order(tmp_path):
    """A resumed run adds its log end offsets of ``__consumer_offsets`` (its stop checkpoints) to those of earlier runs.

    A different run replaces them all, and a run without such offsets deletes them. If the file has only other runs'
    offsets, they are not used.
    """
    first, second = (
        StopCheckpoint(cluster_id="c", taken_at=NOON.replace(hour=at), ends={0: at, 1: None}) for at in (9, 11)
    )
    one, two = (Plan(cluster_id=name, options=WriteOptions(), changes=(), checks=()) for name in "ab")
    run = RunDir(tmp_path)
    assert run.checkpoints(one.content) == []
    run.keep_stop_checkpoints([first], one, resumed=None)
    run.keep_stop_checkpoints([second], two, resumed=one.content)
    assert run.checkpoints(two.content) == [first, second]
    # A run that was killed before it wrote anything is not in the receipt, so its checkpoint is left out.
    assert run.checkpoints(one.content) == [first]
    run.keep_stop_checkpoints([second], one, resumed=one.content)
    assert run.checkpoints(one.content) == [first, second]
    run.keep_stop_checkpoints([second], two, resumed=None)
    assert run.checkpoints(two.content) == [second]
    with pytest.raises(InvalidInput, match=r"stop_checkpoints\.parquet is not of the run that receipt\.json records"):
        run.checkpoints(one.content)
    run.keep_stop_checkpoints([first], one, resumed="a plan of no run in the file")
    assert run.checkpoints(one.content) == [first]
    run.keep_stop_checkpoints([], one, resumed=one.content)
    assert run.checkpoints(one.content) == []


def test_one_command_at_a_time_copies_to_a_folder(tmp_path):
    """While a command copies records to the folder of ``--log``, another one is refused with one line."""
    cluster, folder = _Emptied(15), tmp_path / "log"
    cluster.create_topic("__consumer_offsets", 2)
    clients = LogClients(cluster, cluster)
    with (
        CopiedLog.locked(folder),
        pytest.raises(Refused, match=r"another run uses .*log: wait until it ends; nothing was written"),
    ):
        copy_with_ends(clients, (), folder, FakeClock(), Events())
    assert not [*folder.glob("*.parquet")]
    assert copy_with_ends(clients, (), folder, FakeClock(), Events()).log.files == 1
