"""The text that a failed or interrupted command prints last: what it has written to the cluster so far."""

from __future__ import annotations

from contextvars import ContextVar

from migrate_groups.errors import MigrateGroupsError, PartlyApplied

NOTHING = "nothing was written to the cluster"

NOTHING_TO_UNDO = (
    "nothing was written: every offset was in place already; if another run wrote them, its receipt can undo it"
)
"""The last line of a hand-over that wrote nothing. Other hand-overs end with the commands that undo them."""

so_far: ContextVar[str] = ContextVar("so_far", default="")
"""What to print if the command fails or is interrupted now: what was written to the cluster, and what to do.

It is empty until the user has agreed to a write. From then until the write begins, it says that nothing was written,
and what the user may do with the applications. After that, it says where to see what was written. `main` empties it at
its start."""


def meaning(error: MigrateGroupsError) -> str:
    """Return a text to print after an error: what was written to the cluster, and what the applications may do now.

    The text is empty if the user has not agreed to a write, and for `PartlyApplied`, whose message says what to do.
    """
    if isinstance(error, PartlyApplied):
        return ""
    told = so_far.get()
    return told.removeprefix(NOTHING).removeprefix("; ") if "nothing was written" in str(error) else told
