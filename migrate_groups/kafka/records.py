"""Read records as fingerprints, with a consumer of confluent-kafka that has no group.

librdkafka decompresses and decodes batches some ten times faster than kafka-python, and needs no package for it.
"""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import confluent_kafka

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, NotAuthorized
from migrate_groups.kafka import request_log as request_log
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.records import Records
from migrate_groups.text import counted, some

_POLL_SECONDS = 0.5
_BATCH = 10_000
# For all partitions of a consumer, so that the memory does not grow with their number.
_QUEUED_KILOBYTES = 65_536
_LOG_APPEND_TIME: int = confluent_kafka.TIMESTAMP_LOG_APPEND_TIME
_END: int = confluent_kafka.KafkaError._PARTITION_EOF


class _Span:
    """The records of one partition, while they are read."""

    def __init__(self, stop: int) -> None:
        self.stop = stop
        self.log_append_time = False
        self._offsets = array("q")
        self._timestamps = array("q")
        self._prints: list[bytes] = []

    def add(self, message: Any) -> None:
        kind, timestamp = message.timestamp()
        self.log_append_time = self.log_append_time or kind == _LOG_APPEND_TIME
        self._offsets.append(message.offset())
        self._timestamps.append(timestamp)
        self._prints.append(fingerprint(timestamp, message.key(), message.value(), message.headers() or ()))

    def records(self) -> Records:
        return Records(
            offsets=self._offsets,
            timestamps=self._timestamps,
            prints=self._prints,
            log_append_time=self.log_append_time,
        )


class KafkaRecords:
    """Reads records as fingerprints. It joins no group and commits nothing. It needs Read on the topics."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    def read(self, spans: Mapping[TopicPartition, range], *, committed_only: bool) -> Mapping[TopicPartition, Records]:
        """Return the records in a span of offsets of each partition.

        committed_only: without the records of aborted and open transactions.

        Raises `NotAuthorized` if Read on a topic is lacking, `ClusterUnavailable` if a partition does not answer within
        the time-out.
        """
        found = {partition: _Span(span.stop) for partition, span in spans.items()}
        left = {partition for partition, span in spans.items() if span}
        if left:
            line = request_log.line("Fetch", (), counted(len(left), "partition"), "their leaders")
            with request_log.logged(lambda: line):
                self._read({partition: spans[partition].start for partition in left}, found, committed_only)
        return {partition: span.records() for partition, span in found.items()}

    def _read(
        self, starts: Mapping[TopicPartition, int], found: Mapping[TopicPartition, _Span], committed: bool
    ) -> None:
        said: list[str] = []
        settings = {
            "group.id": "migrate-groups-compare",  # required, but it joins no group and commits nothing
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "queued.max.messages.kbytes": _QUEUED_KILOBYTES,
            "error_cb": lambda error: said.append(error.str()),
        }
        config = self._config.confluent()
        if "oauth_cb" in config:
            token = tuple(config["oauth_cb"])
            config["oauth_cb"] = lambda _: token
        consumer = confluent_kafka.Consumer(config | settings)
        left = {(each.topic, each.partition): found[each] for each in starts}
        try:
            consumer.assign([confluent_kafka.TopicPartition(*each, start) for each, start in starts.items()])
            deadline = time.monotonic() + self._config.timeout
            while left:
                first = consumer.poll(_POLL_SECONDS)
                # Without a time-out, because it would wait for the whole batch.
                messages = [] if first is None else [first, *consumer.consume(_BATCH, 0)]
                if done := _taken(messages, left):
                    consumer.incremental_unassign([confluent_kafka.TopicPartition(*each) for each in done])
                if messages:
                    deadline = time.monotonic() + self._config.timeout
                elif time.monotonic() > deadline:
                    silent = some(sorted(str(TopicPartition(*each)) for each in left))
                    raise ClusterUnavailable(
                        f"the cluster did not answer while reading records of {silent}"
                        f"{f' ({said[-1]})' if said else ''}: check its brokers, or pass a longer --timeout"
                    )
        except (confluent_kafka.KafkaException, _MessageError) as error:
            raise self._failed(error.args[0]) from error
        finally:
            consumer.close()

    def _failed(self, error: Any) -> MigrateGroupsError:
        if error.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED:
            principal = self._config.security.principal
            return NotAuthorized(f"not authorized: {principal} lacks Read on a topic ({error.str()}): grant it")
        return ClusterUnavailable(f"the cluster failed while reading records: {error.str()}: check its brokers")


class _MessageError(Exception):
    """The error that a broker has answered for a partition."""


def _taken(messages: Iterable[Any], left: dict[tuple[str, int], _Span]) -> list[tuple[str, int]]:
    """Add messages to the spans in ``left``; remove the spans that are complete, and return their partitions."""
    done = []
    for message in messages:
        partition = message.topic(), message.partition()
        span = left.get(partition)
        if span is None:
            continue
        error = message.error()
        if error is not None and error.code() != _END:
            raise _MessageError(error)
        if error is None and message.offset() < span.stop:
            span.add(message)
        if error is not None or message.offset() >= span.stop - 1:
            done.append(partition)
            del left[partition]
    return done


def fingerprint(timestamp: int, key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, Any]]) -> bytes:
    """Return 16 bytes that stand for a record: its timestamp, key, value and headers.

    None and empty bytes differ, and so do headers in another order.
    """
    parts = [key, value]
    for name, content in headers:
        parts += [name.encode("utf-8", "surrogateescape"), content]
    lengths = ",".join("-" if part is None else str(len(part)) for part in parts)
    content = b"".join(part for part in parts if part)
    return hashlib.blake2b(f"{timestamp} {lengths} ".encode() + content, digest_size=16).digest()
