"""What a user is told to do next in the reasons of checks: it depends on where the offsets to write come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to do next, as the reasons of checks say it. The defaults are for offsets from a file.

    read_again: how the offsets are read again if they are out of date. still_running: what to do while a source group
    runs.
    """

    read_again: str = "take a new snapshot"
    still_running: str = "stop these consumers"


FROM_FILE = Advice()
