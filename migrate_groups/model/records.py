"""The records of a partition, with hashes in place of their content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of a partition in a range of offsets, without transaction markers.

    Each list has one item for each record.

    - timestamps: in milliseconds since 1970.
    - prints: a hash of 16 bytes over the record's timestamp, key, value and headers.
    - keys: a hash of 8 bytes over the record's key; all zeros if the key is null.
    - tombstones: 1 if the record's value is null, otherwise 0.
    - log_append_time: whether the broker set the timestamps (LogAppendTime, KIP-32).
    """

    offsets: Sequence[int]
    timestamps: Sequence[int]
    prints: Sequence[bytes]
    keys: Sequence[bytes]
    tombstones: Sequence[int]
    log_append_time: bool = False


NULL_KEY = bytes(8)
"""The item of `Records.keys` for a record whose key is null."""
