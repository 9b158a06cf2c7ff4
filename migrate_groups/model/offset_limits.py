"""The limits that brokers set to committed offsets."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple


class OffsetLimits(NamedTuple):
    """The limits of a broker for committed offsets; each is None if the broker does not report it.

    - retention: ``offsets.retention.minutes``: how long the broker keeps committed offsets.
    - metadata: ``offset.metadata.max.bytes``: the length of their metadata in UTF-16 code units, in spite of its name
      (docs/kafka-behaviour.md#altering-offsets).
    """

    retention: timedelta | None
    metadata: int | None
