"""The records of a partition, as fingerprints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of a span of offsets of a partition, without transaction markers, in the order of their offsets.

    offsets: their offsets. timestamps: in milliseconds since 1970. prints: the fingerprint of each record, 16 bytes. It
    depends on the record's timestamp, key, value and headers, and on nothing else. log_append_time: the timestamps are
    those of the broker (LogAppendTime), and not those of the producer (KIP-32).
    """

    offsets: Sequence[int]
    timestamps: Sequence[int]
    prints: Sequence[bytes]
    log_append_time: bool = False
