"""The records of a partition, with a hash of each record in place of its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of a partition in a range of offsets, without transaction markers.

    Each list has one item for each record.

    - timestamps: in milliseconds since 1970.
    - prints: a hash of 16 bytes over the record's timestamp, key, value and headers.
    - log_append_time: whether the broker set the timestamps (LogAppendTime, KIP-32).
    """

    offsets: Sequence[int]
    timestamps: Sequence[int]
    prints: Sequence[bytes]
    log_append_time: bool = False
