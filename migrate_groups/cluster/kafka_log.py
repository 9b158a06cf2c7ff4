"""The logs of partitions through kafka-python: their ends, records by time, and whether records are left."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

import kafka.errors as kafka_errors
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.cluster import kafka_wire as wire
from migrate_groups.cluster.client_config import ClientConfig
from migrate_groups.cluster.kafka_connection import KafkaConnection, explain
from migrate_groups.cluster.ports import LogBounds, StampedOffset, TopicPartition

# A fetch gives at least one batch, however large; more is not needed to see that there are records.
_FETCH_BYTES = 64 * 1024
_LOOK_SECONDS = 5.0
_POLL_SECONDS = 0.5


def log_bounds(
    connection: KafkaConnection, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, LogBounds]:
    """See `GroupReader.log_bounds`."""
    answers = _list_offsets(connection, partitions, (wire.EARLIEST, wire.LATEST), doing="reading the log's ends")
    return {partition: LogBounds(start=starts.offset, end=ends.offset) for partition, (starts, ends) in answers.items()}


def offsets_at(
    connection: KafkaConnection, partitions: Collection[TopicPartition], timestamp: int
) -> Mapping[TopicPartition, StampedOffset | None]:
    """See `GroupReader.offsets_at`."""
    if timestamp < 0:
        raise ValueError(f"a negative timestamp asks Kafka for the log's ends: {timestamp}")
    answers = _list_offsets(connection, partitions, (timestamp,), doing="looking records up by time")
    return {
        partition: None if found.offset < 0 else StampedOffset(offset=found.offset, timestamp=found.timestamp)
        for partition, (found,) in answers.items()
    }


def with_records(config: ClientConfig, spans: Mapping[TopicPartition, range]) -> frozenset[TopicPartition]:
    """See `GroupReader.with_records`. It is a consumer of no group: nothing is committed."""
    undecided = {KafkaTopicPartition(*partition): span for partition, span in spans.items() if span}
    if not undecided:
        return frozenset()
    settings = config.kafka_python() | {
        "isolation_level": "read_committed",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_partition_fetch_bytes": _FETCH_BYTES,
    }
    found = set()
    deadline = time.monotonic() + min(_LOOK_SECONDS, config.timeout)
    try:
        with closing(KafkaConsumer(**settings)) as consumer:
            consumer.assign(list(undecided))
            for partition, span in undecided.items():
                consumer.seek(partition, span.start)
            while undecided and time.monotonic() < deadline:
                polled = consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000))
                for partition, span in list(undecided.items()):
                    records = polled.get(partition, [])
                    if any(record.offset in span for record in records):
                        found.add(TopicPartition(*partition))
                    elif not (records or consumer.position(partition) >= span.stop):
                        continue
                    del undecided[partition]
    except (kafka_errors.KafkaError, OSError) as error:
        needs = " and ".join(f"Read on Topic {topic!r}" for topic in sorted({each.topic for each in spans}))
        raise explain(error, config.security, "looking whether records are left", needs) from error
    return frozenset(found | {TopicPartition(*partition) for partition in undecided})


def _list_offsets(
    connection: KafkaConnection, partitions: Collection[TopicPartition], timestamps: tuple[int, ...], *, doing: str
) -> dict[TopicPartition, list[StampedOffset]]:
    """Return what each partition's leader answers to these timestamps, where it answers to all of them."""
    answers: dict[TopicPartition, list[StampedOffset]] = {}

    async def ask(client: KafkaAdminClient) -> None:
        leaders = await _leaders(client, [partition for partition in partitions if partition not in answers])
        # Every leader is asked all questions side by side.
        requests = [
            [client._manager.send(wire.list_offsets(led, timestamp), node_id=leader) for timestamp in timestamps]
            for leader, led in leaders.items()
        ]
        for asked in requests:
            listed = [wire.listed_offsets(await response) for response in asked]
            for partition in set(listed[0]).intersection(*listed[1:]):
                answers[partition] = [each[partition] for each in listed]

    connection.run(ask, doing=doing)
    return answers


async def _leaders(
    client: KafkaAdminClient, partitions: Collection[TopicPartition]
) -> Mapping[int, list[TopicPartition]]:
    wanted = set(partitions)
    leaders: dict[int, list[TopicPartition]] = defaultdict(list)
    metadata: dict[str, Any] = await client._get_cluster_metadata(sorted({partition.topic for partition in wanted}))
    for topic in metadata["topics"]:
        for found in topic["partitions"]:
            partition = TopicPartition(topic["name"], found["partition_index"])
            if partition in wanted and found["leader_id"] >= 0:
                leaders[found["leader_id"]].append(partition)
    return leaders
