"""Rows of snapshots for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from migrate_groups.snapshots.row import Row

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def row(**changes: Any) -> Row:
    """Return a snapshot's row of group ``g``, with committed offset 5 in ``t-0``. changes: values of other columns."""
    values: dict[str, Any] = {
        "cluster_id": "in-memory",
        "taken_at": NOON,
        "group": "g",
        "source_group": None,
        "group_state": "Empty",
        "group_type": "classic",
        "topic": "t",
        "topic_id": "topic-id-1",
        "partition": 0,
        "offset": 5,
        "leader_epoch": 0,
        "metadata": "",
        "log_start_offset": 0,
        "log_end_offset": 9,
    }
    return Row(**(values | changes))
