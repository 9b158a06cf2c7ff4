"""The log of a real offsets topic (``__consumer_offsets``), copied without a consumer group."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaAdminClient

from migrate_groups.errors import Undetermined
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.reading.landing import land
from migrate_groups.migration.reading.stop_checkpoint import take_stop_checkpoint
from migrate_groups.model.offsets_topic import LogRecord, log_partition
from migrate_groups.model.partitions import TopicPartition
from tests.support.clock import FakeClock
from tests.support.versions import NEEDS_TRANSACTIONS


class Landing:
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

    def land(self):
        """Copy new records of the offsets topic.

        Return the group's records as (kind, last byte of the committed offset), and the result of `land`.
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
            landed = land(self.reader, self.topic, log, [self.number], lambda done, total: None)
        finally:
            self.topic.read = read
        return [(each.kind, each.value and each.value[9]) for each in records], landed


@pytest.fixture
def landing(world, tmp_path, bootstrap_servers):
    """A group, and a local copy of its partition of the offsets topic."""
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=2)
    with closing(KafkaPythonReader(config)) as reader, closing(KafkaOffsetsTopic(config)) as topic:
        yield Landing(world, tmp_path, reader, topic)


@NEEDS_TRANSACTIONS
def test_commits_transactions_and_deletions_are_landed(landing, bootstrap_servers):
    """The group's records in the offsets topic are copied in order: commits, commits in transactions, and deletions.

    Commits of aborted transactions are marked. A later run copies only new records.
    """
    landing.world.commit(landing.group, landing.partition, 3)
    landing.commit_in_transaction(4).commit_transaction(30)
    landing.commit_in_transaction(5).abort_transaction(30)
    records, landed = landing.land()
    assert records == [("record", 3), ("record", 4), ("aborted", 5)]
    assert landed.held_back == {landing.number: 0}
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as admin:
        admin.delete_group_offsets(landing.group, [landing.partition])
    assert landing.land()[0] == [("record", None)]
    assert landing.land()[0] == []


@NEEDS_TRANSACTIONS
def test_landing_waits_for_an_open_transaction(landing):
    """If a transaction is open at the timeout, the records from its first one on are counted, and not copied.

    Once the transaction has ended, the next run copies them.
    """
    producer = landing.commit_in_transaction(6)
    landing.world.commit(landing.group, landing.partition, 7)
    records, landed = landing.land()
    assert (records, landed.held_back) == ([], {landing.number: 2})
    producer.commit_transaction(30)
    records, landed = landing.land()
    assert (records, landed.held_back) == ([("record", 6), ("record", 7)], {landing.number: 0})


def test_landing_creates_no_group(landing, bootstrap_servers):
    """Copying the offsets topic creates no consumer group."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as admin:
        before = {group["group_id"] for group in admin.list_groups()}
        landing.land()
        assert {group["group_id"] for group in admin.list_groups()} == before


def test_log_that_ends_before_the_stop_checkpoint_is_undetermined(landing):
    """If the offsets topic ends before the offset at which the copy must begin, `Undetermined` is raised.

    The topic was then recreated or truncated.
    """
    log = CopiedLog.load_with_starts(landing.folder, landing.checkpoint.cluster_id, {landing.number: 10**9})
    with pytest.raises(Undetermined, match="created again or truncated"):
        land(landing.reader, landing.topic, log, [landing.number], lambda done, total: None)
