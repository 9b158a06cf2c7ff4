"""The clock of this machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """The `Clock` of this machine."""

    def now(self) -> datetime:
        """Return the current time of this machine in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds of this machine's monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds; not at all if the number is negative."""
        time.sleep(max(0.0, seconds))
