"""Run two functions in threads, of which one runs at a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator

# Attributes of `sys` that each of the two threads may replace. They are the same for all threads of a process.
_REPLACED = ("argv", "stdin", "stdout", "stderr")


class Turns:
    """Lets one of two threads run at a time. A thread may pass the turn on whenever it calls `take`.

    passes: for each call of `take`, whether the turn passes to the other thread. After the last one, a thread runs to
    its end.
    """

    def __init__(self, passes: Iterable[bool]) -> None:
        self._passes: Iterator[bool] = iter(passes)
        self._waiting: list[int] = []
        self._running = 0
        self._changed = threading.Condition()
        self._errors: list[BaseException] = []

    def run(self, first: Callable[[], object], second: Callable[[], object]) -> None:
        """Run both functions to their end. Raise the first error that one of them raised."""
        replaced = _replaced()
        threads = [threading.Thread(target=self._run, args=(each,)) for each in (first, second)]
        with self._changed:
            for thread in threads:
                thread.start()
                self._waiting.append(thread.ident or 0)
            self._pass_on()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        vars(sys).update(replaced)
        if self._errors:
            raise self._errors[0]

    def take(self) -> None:
        """Let the other thread run, or not. Other threads than these two need not wait."""
        is_alone = threading.get_ident() != self._running or not self._waiting
        if is_alone or not next(self._passes, False):
            return
        replaced = _replaced()
        with self._changed:
            self._waiting.append(self._running)
            self._pass_on()
            self._await_turn()
        vars(sys).update(replaced)

    def _run(self, function: Callable[[], object]) -> None:
        with self._changed:
            self._await_turn()
        try:
            function()
        except BaseException as error:  # noqa: BLE001  raised in the thread that called `run`
            self._errors.append(error)
        finally:
            with self._changed:
                self._pass_on()

    def _await_turn(self) -> None:
        self._changed.wait_for(lambda: self._running == threading.get_ident())

    def _pass_on(self) -> None:
        self._running = self._waiting.pop(0) if self._waiting else 0
        self._changed.notify_all()


def _replaced() -> dict[str, object]:
    return {name: getattr(sys, name) for name in _REPLACED}
