"""Find out whether a process has ended, and which child processes it has."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def gone(pid: int) -> bool:
    """Return whether a process has ended. A zombie has ended, too."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's children (Linux only; elsewhere an empty list)."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def crash_children(pid: int, number: int) -> int:
    """Send a signal to all children of a process, and return how many children there were (Linux only).

    number: the number of the signal.
    """
    found = children_of(pid)
    for child in found:
        with suppress(ProcessLookupError):
            os.kill(child, number)
    return len(found)
