"""Find out whether a process has ended, and which child processes it has."""

from __future__ import annotations

import os
import re
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


def handles(pid: int, *signals: int) -> bool:
    """Return whether a process has handlers for these signals (Linux; elsewhere always true)."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    [caught] = re.findall(r"^SigCgt:\s*(\w+)$", status.read_text(), re.MULTILINE)
    return all(int(caught, 16) >> (number - 1) & 1 for number in signals)


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
