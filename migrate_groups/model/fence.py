"""The log end offsets of ``__consumer_offsets`` right after the source group of a migration has stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """The log end offsets of ``__consumer_offsets`` right after the source group of a migration has stopped.

    They separate the group's earlier commits from later ones.

    - taken_at: when they were read.
    - ends: the log end offset by partition number; None if the partition had no leader.
    """

    cluster_id: str
    taken_at: datetime
    ends: Mapping[int, int | None]
