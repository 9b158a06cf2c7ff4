"""The records of a partition, with a fingerprint of each record in place of its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records in a span of offsets of a partition, in order, without transaction markers.

    offsets: their offsets. timestamps: in milliseconds since 1970. prints: the fingerprint of each record, a hash of 16
    bytes over its timestamp, key, value and headers. log_append_time: whether the timestamps are those of the broker
    (LogAppendTime), and not those of the producer (KIP-32).
    """

    offsets: Sequence[int]
    timestamps: Sequence[int]
    prints: Sequence[bytes]
    log_append_time: bool = False
