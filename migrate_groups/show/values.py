"""What Spark has handed over, as JSON values."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def values(row: Any) -> dict[str, Any]:
    """Return the fields of a named tuple by name, moments as text."""
    return {name: moment(value) if isinstance(value, datetime) else value for name, value in row._asdict().items()}


def moment(value: datetime) -> str:
    """Return a moment of UTC as RFC 3339."""
    return value.isoformat().replace("+00:00", "Z")
