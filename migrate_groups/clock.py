"""The interface of a clock. The caller passes one in, so that the library never reads the time unasked."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, monotonic time, and sleep."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back. Only differences of two results have a meaning."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
        ...
