"""Whether a process is gone, and which others it has started."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def gone(pid: int) -> bool:
    """Say whether a process has ended; one that only waits for its parent to look (a zombie) has."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started (Linux; elsewhere none)."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def crash_children(pid: int, number: int) -> int:
    """Send a signal to the processes that a process has started, and return how many there were (Linux)."""
    found = children_of(pid)
    for child in found:
        with suppress(ProcessLookupError):
            os.kill(child, number)
    return len(found)
