"""Partitions, and what Kafka keeps for each: committed offsets, the range of the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec


class PartitionValue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A value that there is one of for every partition: made in a seventh of a dataclass's time.

    It never refers to itself, so the garbage collector need not look at it (docs/kafka-behaviour.md#other-libraries).
    """


class TopicPartition(PartitionValue, frozen=True, order=True, kw_only=False):
    """A partition of a topic; sorts by topic, then partition, and unpacks into them."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def __iter__(self) -> Iterator[Any]:
        yield self.topic
        yield self.partition


class CommittedOffset(PartitionValue, frozen=True, kw_only=True):
    """What a group has committed for a partition: the next record to read, ``offset >= 0``.

    "Nothing committed" is ``None`` in place of this, never -1: kafka-python would write a negative offset without
    complaint, and the new group would then apply auto.offset.reset (docs/kafka-behaviour.md#kafka-python).
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise ValueError(f"a committed offset is never negative: {self.offset}")


class LogRange(PartitionValue, frozen=True, kw_only=True):
    """The ends of a partition's log: the first record that is still there, and the offset that the next will get."""

    start: int
    end: int


class OffsetAndTimestamp(PartitionValue, frozen=True, kw_only=True):
    """A record's offset and timestamp, in milliseconds since 1970 (its producer's, or LogAppendTime, KIP-32)."""

    offset: int
    timestamp: int


# What a group has committed for each of some partitions; ``None`` where that is nothing.
CommittedOffsets = Mapping[TopicPartition, CommittedOffset | None]


# The record that was found for each partition; ``None`` where there is none.
Timestamps = Mapping[TopicPartition, OffsetAndTimestamp | None]
