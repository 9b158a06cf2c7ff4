"""A clock that waits in no time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from tests.support.rows import NOON


class FakeClock:
    """Starts at `NOON`; sleeping moves it on at once, after ``while_asleep`` did what others do meanwhile."""

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
