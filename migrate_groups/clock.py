"""Time as a value that is handed in: the library never reads the clock behind the caller's back."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The time of day, a clock that never goes back, and waiting."""

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
