"""Whether a command has begun to write to a cluster, which decides how its end is reported, whenever it comes."""

from __future__ import annotations

from contextvars import ContextVar

told_by: ContextVar[str | None] = ContextVar("told_by", default=None)
"""A sentence about where to see how far the write came; None if no write has begun. `main` resets it each time."""
