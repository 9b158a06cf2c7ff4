"""Partitions, their committed offsets with the limits of brokers, and their log start and log end offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec


# Creating a msgspec struct takes a seventh of the time of a dataclass. Instances contain no reference cycles, so the
# garbage collector can ignore them (docs/kafka-behaviour.md#other-libraries).
class PartitionValue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The base class of values of one partition. They are fast to create, because there are many partitions."""


class TopicPartition(PartitionValue, frozen=True, order=True, kw_only=False):
    """A partition of a topic. It sorts by topic, then by partition number, and unpacks into ``topic, partition``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def __iter__(self) -> Iterator[Any]:
        yield self.topic
        yield self.partition


class CommittedOffset(PartitionValue, frozen=True, kw_only=True):
    """A group's committed offset for a partition: the offset of the next record to read.

    leader_epoch: None if the offset was committed without a leader epoch. Raises ``ValueError`` for a negative offset.
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""

    def __post_init__(self) -> None:
        # kafka-python would write -1 without an error, and the group would then apply auto.offset.reset
        # (docs/kafka-behaviour.md#kafka-python).
        if self.offset < 0:
            raise ValueError(f"a committed offset is never negative: {self.offset}")


def offset_in_words(committed: CommittedOffset | None) -> str:
    """Return a committed offset as text for users, such as ``42``; ``no offset`` if there is none."""
    return "no offset" if committed is None else str(committed.offset)


class OffsetLimits(NamedTuple):
    """The limits of a broker for committed offsets; each is None if the broker does not report it.

    - retention: ``offsets.retention.minutes``: how long the broker keeps committed offsets.
    - metadata: ``offset.metadata.max.bytes``: the longest metadata, as `metadata_length` counts it.
    """

    retention: timedelta | None
    metadata: int | None


def metadata_length(text: str) -> int:
    """Return the length of metadata as brokers count it: in UTF-16 code units, not in bytes as the setting is named.

    Source: docs/kafka-behaviour.md#altering-offsets
    """
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


class LeaderEpoch(PartitionValue, frozen=True, order=True):
    """A partition and one of its leader epochs. The epoch grows each time a leader is elected (KIP-101)."""

    partition: TopicPartition
    epoch: int


class LogRange(PartitionValue, frozen=True, kw_only=True):
    """A partition's log start offset and log end offset. The log end offset is the offset that the next record gets."""

    start: int
    end: int


class OffsetAndTimestamp(PartitionValue, frozen=True, kw_only=True):
    """A record's offset and its timestamp in milliseconds since 1970: CreateTime or LogAppendTime (KIP-32)."""

    offset: int
    timestamp: int


# A group's committed offsets by partition; None: the group has no committed offset.
CommittedOffsets = Mapping[TopicPartition, CommittedOffset | None]


# For each partition, the record that a lookup found: the first at or after a time, or the first in a range of offsets.
# None: there is no such record.
Timestamps = Mapping[TopicPartition, OffsetAndTimestamp | None]
