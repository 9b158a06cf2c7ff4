"""Read ``__consumer_offsets``, Kafka's topic of committed offsets, as a log, without a consumer group.

The log includes control records and aborted records, which a consumer does not return.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from migrate_groups.kafka import wire as wire
from migrate_groups.kafka.apis import FETCH_VERSION
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.private import Client
from migrate_groups.model.offsets_topic import ABORTED, CONTROL, OFFSETS_TOPIC, RECORD, LogPiece, LogRecord
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

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def read(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LogPiece]:
        """Send Fetch to the leaders, some MB at a time. Control records and aborted records are included."""
        open_ends = {number: end for number, end in ends.items() if positions[number] < end}
        positions, idle = dict(positions), 0
        while open_ends and idle < self._patience:
            wanted = {number: positions[number] for number in open_ends}
            answers = self._connection.run(_fetch(wanted), doing=f"reading {OFFSETS_TOPIC}", needs=_NEEDS)
            records = [record for number in answers for record in _records(number, positions, answers[number])]
            idle = 0 if any(positions[number] > wanted[number] for number in wanted) else idle + 1
            for number, answer in answers.items():
                # No record came, although the last stable offset is at the end: the last records were compacted away.
                if idle and answer.last_stable_offset >= open_ends[number]:
                    positions[number] = open_ends[number]
            open_ends = {number: end for number, end in open_ends.items() if positions[number] < end}
            yield LogPiece(records, dict(positions))


def _fetch(positions: Mapping[int, int]) -> wire.Request[dict[int, Any]]:
    """Return a coroutine function that fetches records, with one Fetch request to each leader.

    positions: the fetch offset by partition number. The coroutine function returns the response's parts by partition
    number. It raises kafka-python's error if a response contains an error.
    """

    async def request(client: Client) -> dict[int, Any]:
        leaders: dict[int, list[int]] = defaultdict(list)
        for topic in await wire.topics(client, [OFFSETS_TOPIC]):
            _raise_for(topic.error_code, OFFSETS_TOPIC)
            for found in topic.partitions:
                if found.partition_index in positions:
                    leaders[found.leader_id].append(found.partition_index)
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


def _fetch_request(partitions: list[int], positions: Mapping[int, int]) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    return FetchRequest(
        max_wait_ms=int(_WAIT_SECONDS * 1000),
        min_bytes=1,
        max_bytes=_RESPONSE_BYTES,
        isolation_level=_READ_COMMITTED,
        topics=[
            topic(
                topic=OFFSETS_TOPIC,
                partitions=[
                    topic.FetchPartition(
                        partition=number, fetch_offset=positions[number], partition_max_bytes=_PARTITION_BYTES
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
