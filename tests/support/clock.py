"""A clock whose sleep returns at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from tests.support.rows import NOON


class FakeClock:
    """A clock that starts at `NOON`. Sleeping first calls ``while_asleep``, then moves the clock forward at once."""

    def __init__(self, while_asleep: Callable[[], object] = lambda: None) -> None:
        self.slept = 0.0
        self._while_asleep = while_asleep

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.slept)

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._while_asleep()
            self.slept += seconds
