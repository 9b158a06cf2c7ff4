"""Read the first record in a range of offsets, with a kafka-python consumer that has no group."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing

import kafka.errors as kafka_errors
from kafka import KafkaConsumer
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.kafka import request_log as request_log
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import explain
from migrate_groups.kafka.private import net_client
from migrate_groups.model.partitions import OffsetAndTimestamp, Timestamps, TopicPartition
from migrate_groups.text import counted

# Small, because one batch shows whether there are records. A fetch returns at least one batch, however large.
_FETCH_BYTES = 64 * 1024
_LOOK_SECONDS = 5.0
_POLL_SECONDS = 0.5


def first_records(config: ClientConfig, spans: Mapping[TopicPartition, range]) -> Timestamps:
    """Return the first record that a ``read_committed`` consumer gets in each range of offsets.

    The result has the record's offset and timestamp; None: the range has no such record. A partition is left out if no
    answer comes within 5 s, or within ``config.timeout`` if that is shorter. Raises `ClusterUnavailable`, or
    `NotAuthorized` without Read on a topic.
    """
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {
        partition: None for partition in spans if not spans[partition]
    }
    undecided = {KafkaTopicPartition(*partition): span for partition, span in spans.items() if span}
    if not undecided:
        return found
    settings = config.kafka_python() | {
        "kafka_client": net_client,
        "isolation_level": "read_committed",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_partition_fetch_bytes": _FETCH_BYTES,
    }
    asked = request_log.line("Fetch", (), counted(len(undecided), "partition"), "their leaders")
    deadline = time.monotonic() + min(_LOOK_SECONDS, config.timeout)
    try:
        with request_log.logged(lambda: asked), closing(KafkaConsumer(**settings)) as consumer:
            consumer.assign(list(undecided))
            for partition, span in undecided.items():
                consumer.seek(partition, span.start)
            while undecided and time.monotonic() < deadline:
                polled = consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000))
                # `position` is called only if no record comes, because each call takes time.
                decided = polled or {
                    each: [] for each, span in undecided.items() if consumer.position(each) >= span.stop
                }
                for partition in decided.keys() & undecided.keys():
                    records, span = decided[partition], undecided.pop(partition)
                    first = next((record for record in records if record.offset in span), None)
                    found[TopicPartition(*partition)] = first and OffsetAndTimestamp(
                        offset=first.offset, timestamp=first.timestamp
                    )
                consumer.pause(*decided)
    except (kafka_errors.KafkaError, OSError) as error:
        needs = " and ".join(f"Read on Topic {topic!r}" for topic in sorted({each.topic for each in spans}))
        raise explain(error, config, "reading the first unread records", needs) from error
    return found
