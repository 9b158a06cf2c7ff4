"""Whether a command has begun to write to the cluster: its message on an interrupt and its exit code depend on this."""

from __future__ import annotations

from contextvars import ContextVar

told_by: ContextVar[str | None] = ContextVar("told_by", default=None)
"""Where to see what was written, as a sentence; None if no write has begun. `main` sets it to None at its start."""
