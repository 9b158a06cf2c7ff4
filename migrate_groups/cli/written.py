"""What a failed or interrupted command prints last: what it has written to the cluster, and how to see its run."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path

from migrate_groups.cli.typed_command import CLUSTERS, without_dry_run
from migrate_groups.errors import MigrateGroupsError, PartlyApplied, UsageError

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

run: ContextVar[Path | None] = ContextVar("run", default=None)
"""The run directory or the receipt of the running command; None if it has none. `main` empties it at its start."""


def meaning(error: MigrateGroupsError) -> str:
    """Return a text to print after an error: what was written to the cluster, and what the applications may do now.

    The text is empty if the user has not agreed to a write, and for `PartlyApplied`, whose message says what to do.
    """
    if isinstance(error, PartlyApplied):
        return ""
    told = so_far.get()
    return told.removeprefix(NOTHING).removeprefix("; ") if "nothing was written" in str(error) else told


def status_command(error: MigrateGroupsError) -> str:
    """Return the command that shows the run of a failed command, to type into a shell.

    It is empty if the command has no run, if the run has no receipt yet, and if an option or a file is wrong, because
    then the error says what to change.
    """
    path = run.get()
    if path is None or error.exit_code == UsageError.exit_code:
        return ""
    # Path.is_file raises an error if the folder can't be read.
    if not (os.path.isfile(path) or os.path.isfile(path / "receipt.json")):  # noqa: PTH113
        return ""
    return without_dry_run(name="status", only=CLUSTERS, to=[str(path)])
