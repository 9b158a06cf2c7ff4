"""Read ``__consumer_offsets``, Kafka's topic of committed offsets, as a log, without a consumer group.

The log includes control records and aborted records, which a consumer does not return.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from migrate_groups.kafka import wire as wire
from migrate_groups.kafka.apis import FETCH_VERSION
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.private import Client
from migrate_groups.model.offsets_topic import ABORTED, CONTROL, OFFSETS_TOPIC, RECORD, LogPiece, LogRecord, Replica
from migrate_groups.model.permissions import Operation, Resource, ResourceType

# Without control records and aborted records, their offsets would look like records that were compacted away.
# A Fetch request returns them, a consumer does not.
_READ_COMMITTED = 1
_NEEDS = f"{Operation.READ} on {Resource(ResourceType.TOPIC, OFFSETS_TOPIC)}"
_WAIT_SECONDS = 0.5
_PARTITION_BYTES = 1024 * 1024
_RESPONSE_BYTES = 4 * 1024 * 1024


class KafkaOffsetsTopic:
    """Reads the log of ``__consumer_offsets`` with Fetch requests of kafka-python (implements `OffsetsTopicReader`).

    It joins no group, commits nothing, and needs Read on the topic.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._connection = KafkaConnection(config)
        self._patience = max(1, int(config.timeout / _WAIT_SECONDS))
        self._followers: dict[int, int] = {}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def replicas(self, numbers: Collection[int]) -> Mapping[int, Replica]:
        """Send Fetch to all replicas. A follower answers from version 11 on (KIP-392)."""
        found = self._connection.run(_replicas(numbers), doing=f"looking for replicas of {OFFSETS_TOPIC}", needs=_NEEDS)
        self._followers = {number: each.broker for number, each in found.items() if not each.leads}
        return found

    def read(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LogPiece]:
        """Send Fetch to the leaders, some MB at a time. Control records and aborted records are included."""
        open_ends = {number: end for number, end in ends.items() if positions[number] < end}
        positions, idle = dict(positions), 0
        while open_ends and idle < self._patience:
            wanted = {number: positions[number] for number in open_ends}
            fetch = _fetch(wanted, self._followers)
            answers = self._connection.run(fetch, doing=f"reading {OFFSETS_TOPIC}", needs=_NEEDS)
            records = [record for number in answers for record in _records(number, positions, answers[number])]
            idle = 0 if any(positions[number] > wanted[number] for number in wanted) else idle + 1
            for number, answer in answers.items():
                # No record came, although the last stable offset is at the end: the last records were compacted away.
                if idle and answer.last_stable_offset >= open_ends[number]:
                    positions[number] = open_ends[number]
            open_ends = {number: end for number, end in open_ends.items() if positions[number] < end}
            yield LogPiece(records, dict(positions))


def _replicas(numbers: Collection[int]) -> wire.Request[dict[int, Replica]]:
    """Return a coroutine function that returns the leader, or else a follower, of each partition that has one."""

    async def request(client: Client) -> dict[int, Replica]:
        (topic,) = await wire.topics(client, [OFFSETS_TOPIC])
        _raise_for(topic.error_code, OFFSETS_TOPIC)
        partitions = [each for each in topic.partitions if each.partition_index in numbers]
        held: dict[int, list[int]] = defaultdict(list)
        for each in partitions:
            for broker in {*each.replica_nodes, each.leader_id} - {*each.offline_replicas, -1}:
                held[broker].append(each.partition_index)
        leaders = {each.partition_index: each.leader_id for each in partitions}
        begun = [client.begin(_replicas_on, client, broker, held[broker], leaders) for broker in held]
        found: dict[int, Replica] = {}
        for replicas in begun:
            for number, replica in (await replicas).items():
                found[number] = max(found.get(number, replica), replica, key=lambda each: (each.leads, each.end))
        return found

    return request


async def _replicas_on(
    client: Client, broker: int, numbers: list[int], leaders: Mapping[int, int]
) -> dict[int, Replica]:
    """Return the replicas of these partitions on a broker; none if the broker does not answer."""
    try:
        response = await client.send(_fetch_request(numbers, dict.fromkeys(numbers, 0), records=False), broker)
    except (kafka_errors.KafkaError, OSError):
        return {}
    return {
        answer.partition_index: Replica(broker, answer.high_watermark, broker == leaders[answer.partition_index])
        for topic in response.responses
        for answer in topic.partitions
        if not answer.error_code
    }


def _fetch(positions: Mapping[int, int], followers: Mapping[int, int]) -> wire.Request[dict[int, Any]]:
    """Return a coroutine function that fetches records, with one Fetch request to each leader.

    positions: the fetch offset by partition number. followers: by partition number, the broker that is asked in place
    of the leader. The coroutine function returns the response's parts by partition
    number. It raises kafka-python's error if a response contains an error.
    """

    async def request(client: Client) -> dict[int, Any]:
        leaders: dict[int, list[int]] = defaultdict(list)
        for topic in await wire.topics(client, [OFFSETS_TOPIC]):
            _raise_for(topic.error_code, OFFSETS_TOPIC)
            for found in topic.partitions:
                if found.partition_index in positions:
                    broker = followers.get(found.partition_index, found.leader_id)
                    leaders[broker].append(found.partition_index)
        requests = [client.send(_fetch_request(led, positions), leader) for leader, led in leaders.items()]
        answers = {}
        for asked in requests:
            response = await asked
            _raise_for(response.error_code, OFFSETS_TOPIC)
            for answer in (answer for topic in response.responses for answer in topic.partitions):
                _raise_for(answer.error_code, f"{OFFSETS_TOPIC}-{answer.partition_index}")
                answers[answer.partition_index] = answer
        return answers

    return request


def _fetch_request(partitions: list[int], positions: Mapping[int, int], *, records: bool = True) -> FetchRequest:
    """Return a Fetch request. records: otherwise the response has as few records as possible, and comes at once."""
    topic = FetchRequest.FetchTopic
    return FetchRequest(
        max_wait_ms=int(_WAIT_SECONDS * 1000),
        min_bytes=1 if records else 0,
        max_bytes=_RESPONSE_BYTES if records else 1,
        isolation_level=_READ_COMMITTED,
        topics=[
            topic(
                topic=OFFSETS_TOPIC,
                partitions=[
                    topic.FetchPartition(
                        partition=number,
                        fetch_offset=positions[number],
                        partition_max_bytes=_PARTITION_BYTES if records else 1,
                    )
                    for number in partitions
                ],
            )
        ],
        max_version=FETCH_VERSION,
    )


def _raise_for(code: int, place: str) -> None:
    error = kafka_errors.for_code(code)
    if error is not kafka_errors.NoError:
        raise error(place)


def _records(partition: int, positions: dict[int, int], answer: Any) -> Iterator[LogRecord]:
    """Yield the records in a Fetch response for one partition, including control records and aborted records.

    positions: the fetch offset by partition number; after each batch, the partition's fetch offset is set to the next
    offset. answer: the response's part about the partition.
    """
    start = positions[partition]
    aborted = deque(sorted(answer.aborted_transactions or (), key=lambda each: int(each.first_offset)))
    aborting: set[int] = set()
    batches = MemoryRecords(answer.records or b"")
    while (batch := batches.next_batch()) is not None:
        while aborted and aborted[0].first_offset <= batch.last_offset:
            aborting.add(aborted.popleft().producer_id)
        producer = batch.producer_id if batch.is_transactional else None
        dropped = producer in aborting
        kind = CONTROL if batch.is_control_batch else ABORTED if dropped else RECORD
        for record in batch:
            if kind is CONTROL and record.abort:
                aborting.discard(batch.producer_id)
            if record.offset >= start:  # a fetch returns the whole batch that contains the fetch offset
                yield LogRecord(partition, record.offset, record.timestamp, kind, record.key, record.value, producer)
        positions[partition] = batch.next_offset
