"""Let the first of SIGINT, SIGTERM and SIGHUP interrupt the command, and no further one disturb its end."""

# This module imports nothing slow, because the user may press Ctrl-C while the commands are still being imported.

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # Typer also exits with this code on Ctrl-C, without a message
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MOST_CTRL_C = 3
_UNTIL_PYTHON_CAN_RAISE = 0.05  # seconds
_CLEAN_UP = 75.0  # seconds, more than the default of --timeout, so that each request of the clean-up can be answered


class Stops:
    """The handler of SIGINT, SIGTERM and SIGHUP: the first of them raises `KeyboardInterrupt`.

    Further ones are ignored, because `timeout` and a closed shell send two, and the second must not stop the clean-up:
    for instance, `migrate --hold` must still leave the source group that it has joined to keep consumers out. Also,
    two interrupts in Python's own `Condition.wait` would raise `RuntimeError`. Only the third Ctrl-C ends the process
    at once, if the clean-up takes long.
    """

    def __init__(self, message: Callable[[], str]) -> None:
        """message: returns what to print at the third Ctrl-C."""
        self._message = message
        self._came = self._dropped = False
        self._ctrl_c = 0
        self._heeded: list[int] = []

    def heed(self) -> None:
        """Handle the signals from now on. A signal that is ignored, as SIGHUP under nohup, stays ignored."""
        for number in _STOPS:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self)
                self._heeded.append(number)
        # At the very end Python restores the handlers that it found, with which a signal would change the exit code.
        atexit.register(self._leave)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self._ctrl_c += number == signal.SIGINT
        if self._ctrl_c == _MOST_CTRL_C:
            sys.stderr.write(f"{self._message()}\n")
            os._exit(INTERRUPTED)
        if not self._came:
            self._came = True
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """Ignore signals from now on, because the command is over. The third Ctrl-C still ends the process."""
        self._came = True

    def _leave(self) -> None:
        for number in self._heeded:
            signal.signal(number, signal.SIG_IGN)

    @contextmanager
    def none_lost(self) -> Iterator[None]:
        """Interrupt the block also if Python drops the `KeyboardInterrupt`, or does not notice the signal.

        Python drops it in a destructor, for instance. Python handles signals between two of its instructions. If a
        signal comes just before the main thread waits for a lock, Python would handle it only after the wait, which may
        take a minute. So another thread wakes the main thread soon after a signal.

        An interrupt may also leave a lock taken, on which the clean-up then waits forever. So the main thread is
        interrupted again if the block has not ended 75 s after a signal.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        main = threading.main_thread().ident or 0

        def wake() -> None:
            signals, wait = select.poll(), None
            signals.register(reader)
            while True:
                if not signals.poll(wait):
                    self._interrupt_again(main)
                elif not (number := os.read(reader, 1)):
                    break
                elif number[0] != signal.SIGURG:
                    wait = _CLEAN_UP * 1000
                    _wake(main)
            os.close(reader)

        def interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
            if not issubclass(dropped.exc_type, KeyboardInterrupt):
                hook(dropped)
                return
            threading.Thread(target=self._interrupt_again, args=(main,), daemon=True).start()

        hook, sys.unraisablehook = sys.unraisablehook, interrupt_again
        before = signal.signal(signal.SIGURG, self._woken)  # a handled signal ends the wait; this one has no other use
        earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=wake, daemon=True).start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(earlier)
            os.close(writer)
            signal.signal(signal.SIGURG, before)
            sys.unraisablehook = hook

    def _interrupt_again(self, main: int) -> None:
        self._dropped = True
        _wake(main)

    def _woken(self, number: int, frame: FrameType | None) -> None:
        if self._dropped:
            self._dropped = False
            raise KeyboardInterrupt


def _wake(main: int) -> None:
    """Wake the main thread with a signal, as soon as it can raise an error again. main: the thread's id."""
    time.sleep(_UNTIL_PYTHON_CAN_RAISE)
    signal.pthread_kill(main, signal.SIGURG)
