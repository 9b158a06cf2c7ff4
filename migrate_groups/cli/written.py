"""Whether a command has begun to write to a cluster: that decides how its end is told, wherever it comes."""

from __future__ import annotations

from contextvars import ContextVar

told_by: ContextVar[str | None] = ContextVar("told_by", default=None)
"""What tells how far the write of this command came; None where none has begun. `main` sets it for each command."""
