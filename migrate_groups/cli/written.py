"""Whether this process has begun to write to a cluster: that decides how its end is told, wherever it comes."""

from __future__ import annotations

_where: list[str] = []


def begin(where: str) -> None:
    """Note, before the first request of a write, that one is on its way; ``where`` says what tells how far it came."""
    _where[:] = [where]


def begun() -> str | None:
    """Return what tells how far a write came, None where none has begun."""
    return _where[0] if _where else None


def forget() -> None:
    """Begin anew, as a new process does."""
    _where.clear()
