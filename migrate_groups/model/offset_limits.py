"""The limits that brokers set to committed offsets."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple


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
