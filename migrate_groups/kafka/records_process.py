"""The program of the child process that reads records with confluent-kafka, and answers with hashes of the records."""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import confluent_kafka

from migrate_groups.kafka.child_program import serve, with_token
from migrate_groups.model.records import NULL_KEY
from migrate_groups.text import some

_POLL_SECONDS = 0.5
_BATCH = 10_000
# The limit is for all partitions of a consumer together, so that memory does not grow with the number of partitions.
_QUEUED_KILOBYTES = 65_536
_LOG_APPEND_TIME: int = confluent_kafka.TIMESTAMP_LOG_APPEND_TIME
_END: int = confluent_kafka.KafkaError._PARTITION_EOF


def records(
    config: dict[str, Any], spans: list[tuple[str, int, int, int]], committed_only: bool, timeout: float
) -> Iterator[list[Any]]:
    """Yield the records that have arrived, as lists with one item for each range of offsets.

    spans: the ranges to read: topic, partition, first offset, end (exclusive). committed_only: whether to read like a
    ``read_committed`` consumer. Raises ``RuntimeError`` if reading fails.

    An item is ``[index in spans, *what `_Piece.content` returns]``. A list is empty if no record arrived for 0.5 s.
    """
    said: list[str] = []
    settings = {
        "group.id": "migrate-groups",  # required, but it joins no group and commits nothing
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed" if committed_only else "read_uncommitted",
        "queued.max.messages.kbytes": _QUEUED_KILOBYTES,
        "error_cb": lambda error: said.append(error.str()),
    }
    consumer = confluent_kafka.Consumer(with_token(config) | settings)
    left = {(topic, partition): (index, stop) for index, (topic, partition, _, stop) in enumerate(spans)}
    try:
        consumer.assign([confluent_kafka.TopicPartition(*span[:3]) for span in spans])
        deadline = time.monotonic() + timeout
        while left:
            first = consumer.poll(_POLL_SECONDS)
            # `consume` gets the time-out 0, because otherwise it would wait for a full batch.
            messages = [] if first is None else [first, *consumer.consume(_BATCH, 0)]
            pieces = _pieces(messages, left)
            if done := [each for each, piece in pieces.items() if piece.is_complete]:
                consumer.incremental_unassign([confluent_kafka.TopicPartition(*each) for each in done])
            yield [[left[each][0], *piece.content()] for each, piece in pieces.items()]
            for each in done:
                del left[each]
            if messages:
                deadline = time.monotonic() + timeout
            elif time.monotonic() > deadline:
                silent = some(sorted(f"{topic}-{partition}" for topic, partition in left))
                raise RuntimeError(f"no answer for {silent}{f' ({said[-1]})' if said else ''}")
    except confluent_kafka.KafkaException as error:
        raise RuntimeError(f"{error.args[0].name()}: {error.args[0].str()}") from error
    finally:
        consumer.close()


class _Piece:
    """Some records of one partition. is_complete: whether these are its last requested records."""

    def __init__(self) -> None:
        self.is_complete = False
        self._is_log_append_time = False
        self._offsets = array("q")
        self._timestamps = array("q")
        self._prints = bytearray()
        self._keys = bytearray()
        self._tombstones = bytearray()

    def add(self, message: Any) -> None:
        kind, timestamp = message.timestamp()
        self._is_log_append_time = self._is_log_append_time or kind == _LOG_APPEND_TIME
        self._offsets.append(message.offset())
        self._timestamps.append(timestamp)
        key, value = message.key(), message.value()
        self._prints += fingerprint(timestamp, key, value, message.headers() or ())
        self._keys += key_hash(key)
        self._tombstones.append(value is None)

    def content(self) -> list[Any]:
        """Return ``[offsets, timestamps, hashes, key hashes, tombstones, is_log_append_time, is_complete]``.

        Offsets and timestamps are the bytes of 64-bit integers. For each record there are 16 bytes of its hash, 8 bytes
        of its key's hash, and 1 byte that says whether its value is null. is_log_append_time: whether any timestamp is
        LogAppendTime. is_complete: whether these are the last requested records of the partition.
        """
        parts = self._offsets.tobytes(), self._timestamps.tobytes(), bytes(self._prints), bytes(self._keys)
        return [*parts, bytes(self._tombstones), self._is_log_append_time, self.is_complete]


def _pieces(messages: Iterable[Any], left: dict[tuple[str, int], tuple[int, int]]) -> dict[tuple[str, int], _Piece]:
    """Return, by topic and partition number, the records in these messages that are to be read.

    left: for each partition still to read, the index of its range and its end offset (exclusive). Other partitions are
    skipped. Raises ``KafkaException`` for a message that is an error.
    """
    pieces: dict[tuple[str, int], _Piece] = {}
    for message in messages:
        partition = message.topic(), message.partition()
        if partition not in left:
            continue
        error, stop = message.error(), left[partition][1]
        if error is not None and error.code() != _END:
            raise confluent_kafka.KafkaException(error)
        piece = pieces.setdefault(partition, _Piece())
        if error is None and message.offset() < stop:
            piece.add(message)
        if error is not None or message.offset() >= stop - 1:
            piece.is_complete = True
    return pieces


def fingerprint(timestamp: int, key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, Any]]) -> bytes:
    """Return the fingerprint of a record: a hash of 16 bytes over its timestamp, key, value and headers.

    The hash differs between a null and an empty key or value. It depends on the order of the headers.
    """
    parts = [key, value]
    for name, content in headers:
        parts += [name.encode("utf-8", "surrogateescape"), content]
    lengths = ",".join("-" if part is None else str(len(part)) for part in parts)
    content = b"".join(part for part in parts if part)
    return hashlib.blake2b(f"{timestamp} {lengths} ".encode() + content, digest_size=16).digest()


def key_hash(key: bytes | None) -> bytes:
    """Return a hash of 8 bytes of a record's key; all zeros for a null key."""
    return NULL_KEY if key is None else hashlib.blake2b(key, digest_size=len(NULL_KEY)).digest()


if __name__ == "__main__":
    serve(records)
