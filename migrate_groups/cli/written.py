"""What a command has written to the cluster so far; if the command fails, it prints this as its last line."""

from __future__ import annotations

from contextvars import ContextVar

NOTHING = "nothing was written to the cluster"

NOTHING_TO_UNDO = (
    "nothing was written: every offset was in place already, written by another run, whose receipt can undo it"
)
"""The last line of a hand-over that wrote nothing, in place of the commands that undo it."""

so_far: ContextVar[str] = ContextVar("so_far", default="")
"""What was written to the cluster, and what to do, if the command ends now. `main` sets it to empty at its start.

Empty until the user has agreed to a write; `NOTHING` and what the user may do until the write begins; then where to see
what was written."""
