"""A log end is not read again while the partition has the same leader and leader epoch."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import kafka.errors as kafka_errors
import pytest
from kafka.protocol.metadata import MetadataRequest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.log import Logs
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, TopicPartition

PARTITION = TopicPartition("t", 0)


class Cluster:
    """A fake cluster of one partition, led by ``leader`` in ``epoch``.

    It answers as brokers do, and records requests.
    """

    def __init__(self, epoch: int = 0) -> None:
        self.leader, self.epoch, self.end = 1, epoch, 20
        self.asked: list[str] = []
        self.logs = Logs(cast("KafkaConnection", self))
        self.learn()

    def learn(self) -> None:
        """Pass the metadata to ``logs``, as happens when topics are described."""
        self.logs.learn(self._metadata().topics)

    def run(self, request, *, doing: str):
        """Run the request as `KafkaConnection.run` does: retry it on a retriable error."""
        while True:
            try:
                return asyncio.run(request(self))
            except kafka_errors.RetriableError as error:
                self.asked.append(error.message)

    def at_most(self, _: object, version: int) -> int:
        return version

    def send(self, request, node_id: int | None = None) -> asyncio.Future[object]:
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(self._answer(request, node_id))
        return answer

    def _answer(self, request, node_id: int | None):
        if isinstance(request, MetadataRequest):
            self.asked.append("metadata")
            return self._metadata()
        (topic,) = request.topics
        (asked,) = topic.partitions
        self.asked.append("start" if asked.timestamp == -2 else "end")
        answer = SimpleNamespace(partition_index=0, error_code=0, timestamp=-1, offset=0)
        if node_id != self.leader:
            answer.error_code = kafka_errors.NotLeaderForPartitionError.errno
        elif -1 != asked.current_leader_epoch < self.epoch:
            answer.error_code = kafka_errors.FencedLeaderEpochError.errno
        elif asked.current_leader_epoch > self.epoch:
            answer.error_code = kafka_errors.UnknownLeaderEpochError.errno
            self.epoch += 1  # the broker learns of its own election after a while
        elif asked.timestamp == -1:
            answer.offset = self.end
        elif asked.timestamp >= 0:
            answer.offset, answer.timestamp = 3, 1_000
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[answer])])

    def _metadata(self):
        partition = SimpleNamespace(partition_index=0, leader_id=self.leader, leader_epoch=self.epoch)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[partition])])

    def bounds(self, **known: int) -> LogRange:
        """Return the partition's log start and log end. Afterwards ``asked`` has only the requests of this call."""
        self.asked.clear()
        given = {name: {PARTITION: offset} for name, offset in known.items()}
        return self.logs.log_ranges([PARTITION], **given)[PARTITION]


@pytest.mark.parametrize("epoch", [-1, 0, 7])
def test_a_known_log_end_is_reused_under_the_same_leader(epoch):
    """If the leader and its epoch are the same, the known log end is used, even if records were added in the meantime.

    Only the log start is requested.
    """
    cluster = Cluster(epoch)
    assert cluster.bounds() == LogRange(start=0, end=20)
    cluster.end = 30
    cluster.learn()
    assert cluster.bounds(ends=20) == LogRange(start=0, end=20)
    assert cluster.asked == ["start"]


def test_a_log_end_that_this_reader_has_not_read_is_requested():
    """If the caller passes a log end above all that the leader has reported to this reader, it is requested again."""
    cluster = Cluster()
    assert cluster.bounds(ends=15) == LogRange(start=0, end=20)
    assert cluster.bounds(ends=25) == LogRange(start=0, end=20)
    assert cluster.bounds(ends=15) == LogRange(start=0, end=15)


def test_a_record_from_before_the_requested_time_is_an_error():
    """If a broker answers a timestamp with an earlier record, the offset is not used: brokers of Kafka never do so."""
    logs = Cluster().logs
    assert logs.offsets_at({PARTITION: 1_000}) == {PARTITION: OffsetAndTimestamp(offset=3, timestamp=1_000)}
    with pytest.raises(ClusterUnavailable, match="a record from before the time that was asked for: t-0;"):
        logs.offsets_at({PARTITION: 1_001})


@pytest.mark.parametrize(("epoch", "leader"), [(1, 1), (1, 2), (-1, 2)])
def test_the_log_end_is_requested_from_a_new_leader(epoch, leader):
    """If the leader or its epoch is new, the log end is requested again, because the log may have been cut.

    Without leader epochs, the leader's broker id decides.
    """
    cluster = Cluster(min(epoch, 0))
    cluster.bounds()
    cluster.leader, cluster.epoch, cluster.end = leader, epoch, 10
    cluster.learn()
    assert cluster.bounds(ends=20) == LogRange(start=0, end=10)
    assert cluster.asked == ["start", "end"]
    assert cluster.bounds(ends=10) == LogRange(start=0, end=10)
    assert cluster.asked == ["start"]


@pytest.mark.parametrize("read_meanwhile", ["log end", "last stable offset"])
def test_a_log_end_from_before_an_election_does_not_count(read_meanwhile):
    """A log end that was read before a leader election is requested again.

    This holds even if the new leader's log end or last stable offset has been read in the meantime.
    """
    cluster = Cluster()
    cluster.bounds()
    cluster.epoch, cluster.end = 1, 10
    cluster.learn()
    if read_meanwhile == "log end":
        cluster.bounds()
    else:
        assert cluster.logs.last_stable_offsets([PARTITION]) == {PARTITION: 10}
    assert cluster.bounds(ends=20) == LogRange(start=0, end=10)


def test_a_fenced_leader_epoch_has_metadata_and_log_end_read_again():
    """If the leader answers FENCED_LEADER_EPOCH, the metadata and the log end are read again."""
    cluster = Cluster()
    cluster.bounds()
    cluster.epoch, cluster.end = 1, 10
    assert cluster.bounds(ends=20) == LogRange(start=0, end=10)
    assert cluster.asked == ["start", "FENCED_LEADER_EPOCH", "metadata", "start", "end"]


def test_unknown_leader_epoch_is_retried():
    """If the leader answers UNKNOWN_LEADER_EPOCH, the request is retried: the leader may not know its epoch yet."""
    cluster = Cluster(1)
    cluster.epoch, cluster.end = 0, 10
    assert cluster.bounds() == LogRange(start=0, end=10)
    assert "UNKNOWN_LEADER_EPOCH" in cluster.asked
