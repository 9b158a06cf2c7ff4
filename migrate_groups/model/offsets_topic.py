"""Kafka's own topic of committed offsets, ``__consumer_offsets``: the records and the log end offsets of its log."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

OFFSETS_TOPIC = "__consumer_offsets"
OWN_GROUPS = "migrate-groups."
"""The prefix of the names of all groups that this tool makes for itself, so that one ACL covers them."""
_JOURNALS = f"{OWN_GROUPS}journal."

RECORD, CONTROL, ABORTED = "record", "control", "aborted"


class LogRecord(NamedTuple):
    """A record in the log of ``__consumer_offsets``.

    - timestamp: milliseconds since 1970.
    - kind: `RECORD`, `CONTROL` (a transaction marker) or `ABORTED` (a record of an aborted transaction).
    - key, value: None if the record has none. For instance, a tombstone has no value.
    - producer_id: of the transaction that the record is in, or that the transaction marker ends; None: no transaction.
    """

    partition: int
    offset: int
    timestamp: int
    kind: str
    key: bytes | None
    value: bytes | None
    producer_id: int | None


class LogPiece(NamedTuple):
    """Some records of ``__consumer_offsets``, and the offsets at which to continue reading.

    - records: in the order of the log within each partition.
    - positions: the next offset to read, by partition number.
    """

    records: list[LogRecord]
    positions: Mapping[int, int]


class Replica(NamedTuple):
    """A replica of a partition of ``__consumer_offsets`` that answers.

    broker: its id. end: its high watermark. leads: whether it is the leader; a follower may lack the last commits.
    """

    broker: int
    end: int
    leads: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCheckpoint:
    """The log end offsets of ``__consumer_offsets`` right after the source group of a migration has stopped.

    They separate earlier commits from later ones. The group's last committed offsets are read
    after the log end offsets.

    - taken_at: when the log end offsets were read.
    - ends: the log end offset by partition number; None if the partition had no leader.
    """

    cluster_id: str
    taken_at: datetime
    ends: Mapping[int, int | None]


def log_partition(group: str, partitions: int) -> int:
    """Return the number of the partition of ``__consumer_offsets`` that holds a group's commits.

    partitions: how many partitions ``__consumer_offsets`` has.
    """
    # As in Kafka: Utils.abs(group.hashCode()) % partitions. Java's hashCode reads UTF-16 code units, and Kafka's
    # Utils.abs returns 0 for the smallest int.
    units = group.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value & 0x80000000 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def journal_group(group: str) -> str:
    """Return the name of the group in which this tool keeps what its runs have claimed of a group's partitions."""
    return f"{_JOURNALS}{group}"


def probe_group(number: int, partitions: int) -> str:
    """Return the name of the group whose commits this tool appends to partition ``number`` of ``__consumer_offsets``.

    The name is always the same, such as ``migrate-groups.barrier.17-3``. partitions: how many partitions
    ``__consumer_offsets`` has.
    """
    names = (f"{OWN_GROUPS}barrier.{number}-{each}" for each in itertools.count())
    return next(name for name in names if log_partition(name, partitions) == number)
