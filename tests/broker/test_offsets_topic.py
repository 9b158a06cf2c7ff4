"""The log of a real offsets topic (``__consumer_offsets``), copied without a consumer group."""

from __future__ import annotations

from contextlib import closing

import pyarrow.parquet as pq
import pytest
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaAdminClient

from migrate_groups.errors import Undetermined
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.reading.copy_log import copy_log
from migrate_groups.migration.reading.stop_checkpoint import take_stop_checkpoint
from migrate_groups.model.offsets_topic import LogRecord, log_partition
from migrate_groups.model.partitions import TopicPartition
from tests.support.clock import FakeClock
from tests.support.versions import NEEDS_TRANSACTIONS


class Copying:
    """A group, and a local copy of the group's partition of the offsets topic.

    checkpoint: the log end offsets of the offsets topic when this object was made; the copy begins there.
    """

    def __init__(self, world, folder, reader, topic) -> None:
        self.world, self.folder, self.reader, self.topic = world, folder, reader, topic
        self.partition, self.group = TopicPartition(world.create_topic(), 0), world.name("group")
        checkpoint = take_stop_checkpoint(reader, FakeClock())
        assert checkpoint is not None
        self.checkpoint = checkpoint
        self.number = log_partition(self.group, len(self.checkpoint.ends))

    def commit_in_transaction(self, offset: int):
        producer = self.world.transactional_producer()
        producer.begin_transaction()
        metadata = self.world.consumer(self.group).consumer_group_metadata()
        producer.send_offsets_to_transaction([ConfluentPartition(*self.partition, offset)], metadata, 30)
        return producer

    def copy(self):
        """Copy new records of the offsets topic.

        Return the group's records as (kind, last byte of the committed offset), and the result of `copy_log`.
        """
        start = self.checkpoint.ends[self.number]
        assert start is not None
        log = CopiedLog.load_with_starts(self.folder, self.checkpoint.cluster_id, {self.number: start})
        records, read = list[LogRecord](), self.topic.read

        def listening(*arguments):
            for piece in read(*arguments):
                records.extend(each for each in piece.records if self.group.encode() in each.key)
                yield piece

        self.topic.read = listening
        try:
            copied = copy_log(self.reader, self.topic, log, [self.number], lambda done, total: None)
        finally:
            self.topic.read = read
        return [(each.kind, each.value and each.value[9]) for each in records], copied


@pytest.fixture
def copying(world, tmp_path, bootstrap_servers):
    """A group, and a local copy of its partition of the offsets topic."""
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=2)
    with closing(KafkaPythonReader(config)) as reader, closing(KafkaOffsetsTopic(config)) as topic:
        yield Copying(world, tmp_path, reader, topic)


@NEEDS_TRANSACTIONS
def test_commits_transactions_and_deletions_are_copied(copying, bootstrap_servers):
    """The group's records in the offsets topic are copied in order: commits, commits in transactions, and deletions.

    Commits of aborted transactions are marked. A later run copies only new records.
    """
    copying.world.commit(copying.group, copying.partition, 3)
    copying.commit_in_transaction(4).commit_transaction(30)
    copying.commit_in_transaction(5).abort_transaction(30)
    records, copied = copying.copy()
    assert records == [("record", 3), ("record", 4), ("aborted", 5)]
    assert copied.held_back == {copying.number: 0}
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as admin:
        admin.delete_group_offsets(copying.group, [copying.partition])
    assert copying.copy()[0] == [("record", None)]
    assert copying.copy()[0] == []


@NEEDS_TRANSACTIONS
def test_records_of_a_transaction_are_copied_with_its_producer_id(copying):
    """A commit in a transaction has the producer id of the transaction's marker; a plain commit has none."""
    copying.world.commit(copying.group, copying.partition, 3)
    copying.commit_in_transaction(4).commit_transaction(30)
    copying.copy()
    rows = pq.read_table(copying.folder).sort_by("log_offset").to_pylist()
    plain, transactional = (row for row in rows if row["key"] and copying.group.encode() in row["key"])
    ended = [row["producer_id"] for row in rows if row["kind"] == "control" and row["log_offset"] > plain["log_offset"]]
    assert plain["producer_id"] is None
    assert transactional["producer_id"] == ended[-1]


@NEEDS_TRANSACTIONS
def test_the_copy_waits_for_an_open_transaction(copying):
    """If a transaction is open at the timeout, the records from its first one on are counted, and not copied.

    Once the transaction has ended, the next run copies them.
    """
    producer = copying.commit_in_transaction(6)
    copying.world.commit(copying.group, copying.partition, 7)
    records, copied = copying.copy()
    assert (records, copied.held_back) == ([], {copying.number: 2})
    producer.commit_transaction(30)
    records, copied = copying.copy()
    assert (records, copied.held_back) == ([("record", 6), ("record", 7)], {copying.number: 0})


def test_the_copy_creates_no_group(copying, bootstrap_servers):
    """Copying the offsets topic creates no consumer group."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as admin:
        before = {group["group_id"] for group in admin.list_groups()}
        copying.copy()
        assert {group["group_id"] for group in admin.list_groups()} == before


def test_log_that_ends_before_the_stop_checkpoint_is_undetermined(copying):
    """If the offsets topic ends before the offset at which the copy must begin, `Undetermined` is raised.

    The topic was then recreated or truncated.
    """
    log = CopiedLog.load_with_starts(copying.folder, copying.checkpoint.cluster_id, {copying.number: 10**9})
    with pytest.raises(Undetermined, match="created again or truncated"):
        copy_log(copying.reader, copying.topic, log, [copying.number], lambda done, total: None)
