"""Rows that a Spark job returned, as JSON values."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def values(row: Any) -> dict[str, Any]:
    """Return the fields of a named tuple by name, with times as RFC 3339."""
    return {name: moment(value) if isinstance(value, datetime) else value for name, value in row._asdict().items()}


def moment(value: datetime) -> str:
    """Return a time in UTC as RFC 3339, such as ``2026-11-20T21:24:55Z``."""
    return value.isoformat().replace("+00:00", "Z")
