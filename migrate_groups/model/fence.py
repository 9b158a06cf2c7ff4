"""The fence: the log end offsets of ``__consumer_offsets`` right after the source group of a migration has stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """The log end offset of every partition of ``__consumer_offsets`` at a cut-over.

    The log end offsets are read after the source group of the migration has stopped, and before its final committed
    offsets are read. `audit` uses them to distinguish commits before the cut-over from later ones.

    taken_at: when they were read. ends: log end offset by partition number; None: the partition had no leader.
    """

    cluster_id: str
    taken_at: datetime
    ends: Mapping[int, int | None]
