"""The interface of a clock. Functions get a clock as a parameter, and do not read the system clock themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """A clock: it returns the current time and a monotonic time, and it sleeps."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back. Only the difference of two results has a meaning."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
        ...
