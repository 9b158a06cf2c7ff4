"""The log end offsets of ``__consumer_offsets`` right after the source group of a migration has stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


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
