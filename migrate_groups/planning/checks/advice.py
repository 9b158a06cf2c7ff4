"""What checks tell the user to do next, for offsets from a file or from a group."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What checks tell the user to do next. The defaults fit offsets from a snapshot file.

    - read_again: what to do if the offsets are out of date.
    - still_running: what to do while a source group runs.
    - unasked: where offsets without a source group are from, and why no old group is checked.
    """

    read_again: str = "take a new snapshot"
    still_running: str = "stop these consumers"
    unasked: str = "without a source group, so no old group is checked"


FROM_FILE = Advice()
READ_EACH_TIME = Advice(read_again="run the same command again")
"""For offsets that the command reads itself."""
