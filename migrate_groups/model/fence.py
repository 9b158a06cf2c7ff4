"""The fence: the log end offsets of the offsets topic when a snapshot was taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """The log end offset of every partition of ``__consumer_offsets``, read just before the snapshot.

    Records at or after these offsets were committed after the snapshot's groups had stopped. ``ends`` has every
    partition of the topic; None: it had no leader.
    """

    cluster_id: str
    taken_at: datetime
    ends: Mapping[int, int | None]
