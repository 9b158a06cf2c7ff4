"""Whether a process is gone."""

from __future__ import annotations

import os
from pathlib import Path


def gone(pid: int) -> bool:
    """Say whether a process has ended; one that only waits for its parent to look (a zombie) has."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True
