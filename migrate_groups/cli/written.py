"""The text that says what a command has written to the cluster so far. A command that fails prints it last."""

from __future__ import annotations

from contextvars import ContextVar

NOTHING = "nothing was written to the cluster"

NOTHING_TO_UNDO = (
    "nothing was written: every offset was in place already, written by another run, whose receipt can undo it"
)
"""The last line of a hand-over that wrote nothing. Other hand-overs end with the commands that undo them."""

so_far: ContextVar[str] = ContextVar("so_far", default="")
"""What to print if the command fails or is interrupted now: what was written to the cluster, and what to do.

It is empty until the user has agreed to a write. From then until the write begins, it is `NOTHING` and what the user
may do with the applications. After that, it says where to see what was written. `main` empties it at its start."""
