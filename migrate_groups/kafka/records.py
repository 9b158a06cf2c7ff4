"""Read records with confluent-kafka in a child process, as fingerprints: a hash of each record, not its content."""

from __future__ import annotations

import threading
from array import array
from base64 import b64decode
from collections.abc import Mapping

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, NotAuthorized
from migrate_groups.kafka import request_log as request_log
from migrate_groups.kafka.child import GRACE_SECONDS, Child, question
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.records import NULL_KEY, Records
from migrate_groups.text import counted

_PRINT_BYTES, _KEY_BYTES = 16, len(NULL_KEY)


# confluent-kafka, because librdkafka decodes batches some ten times faster than kafka-python, and needs no further
# package to decompress them.
class KafkaRecords:
    """Reads records as fingerprints: hashes of timestamp, key, value and headers (implements `RecordReader`).

    It joins no group, commits nothing, and needs Read on the topics. confluent-kafka runs in a child process.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._child: Child | None = None
        self._one_at_a_time = threading.Lock()

    def start(self) -> None:
        """Start the child process if it is not running; do not wait for it."""
        self._child = self._child or Child("records_process")

    def close(self) -> None:
        """End the child process."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def read(self, spans: Mapping[TopicPartition, range], *, committed_only: bool) -> Mapping[TopicPartition, Records]:
        """Ask the child process, which sends Fetch."""
        found = {partition: _Span() for partition in spans}
        asked = [partition for partition, span in spans.items() if span]
        if asked:
            line = request_log.line("Fetch", (), counted(len(asked), "partition"), "their leaders")
            with request_log.logged(lambda: line), self._one_at_a_time:
                try:
                    self._read({partition: spans[partition] for partition in asked}, found, committed_only)
                except BaseException:
                    self.close()  # otherwise a late answer would be taken for the answer to the next question
                    raise
        return {partition: span.records() for partition, span in found.items()}

    def _read(
        self, spans: Mapping[TopicPartition, range], found: Mapping[TopicPartition, _Span], committed_only: bool
    ) -> None:
        partitions = list(spans)
        asked = question(
            "records",
            self._config,
            spans=[[*partition, span.start, span.stop] for partition, span in spans.items()],
            committed_only=committed_only,
        )
        self.start()
        assert self._child is not None  # noqa: S101  for mypy: `start` has set it
        patience = self._config.timeout + GRACE_SECONDS
        answer, left = self._child.answer(asked, patience), len(partitions)
        while True:
            if answer is None:
                raise ClusterUnavailable(
                    "the process that reads records (confluent-kafka) died or hung: run the command again"
                )
            if "error" in answer:
                raise self._failed(answer["error"])
            for index, *parts, is_complete in answer["answer"]:
                found[partitions[index]].add(*parts)
                left -= is_complete
            if not left:
                return
            answer = self._child.next_answer(patience)

    def _failed(self, error: str) -> MigrateGroupsError:
        if "TOPIC_AUTHORIZATION_FAILED" in error:
            principal = self._config.principal
            return NotAuthorized(f"not authorized: {principal} lacks Read on a topic ({error}): grant it")
        return ClusterUnavailable(
            f"{self._config.cluster} failed while reading records: {error}: check its brokers, or pass a longer "
            "--timeout"
        )


class _Span:
    """The records of one partition that have been read so far."""

    def __init__(self) -> None:
        self._offsets = array("q")
        self._timestamps = array("q")
        self._prints: list[bytes] = []
        self._keys: list[bytes] = []
        self._tombstones = bytearray()
        self._is_log_append_time = False

    def add(
        self, offsets: str, timestamps: str, prints: str, keys: str, tombstones: str, is_log_append_time: bool
    ) -> None:
        """Add records that the child process has read.

        offsets, timestamps: arrays of 64-bit integers. prints: 16 bytes for each record. keys: 8 bytes for each record.
        tombstones: 1 byte for each record. All are in base64. is_log_append_time: whether any timestamp is
        LogAppendTime.
        """
        self._offsets.frombytes(b64decode(offsets))
        self._timestamps.frombytes(b64decode(timestamps))
        self._prints += _pieces(b64decode(prints), _PRINT_BYTES)
        self._keys += _pieces(b64decode(keys), _KEY_BYTES)
        self._tombstones += b64decode(tombstones)
        self._is_log_append_time = self._is_log_append_time or is_log_append_time

    def records(self) -> Records:
        return Records(
            offsets=self._offsets,
            timestamps=self._timestamps,
            prints=self._prints,
            keys=self._keys,
            tombstones=self._tombstones,
            log_append_time=self._is_log_append_time,
        )


def _pieces(content: bytes, size: int) -> list[bytes]:
    return [content[at : at + size] for at in range(0, len(content), size)]
