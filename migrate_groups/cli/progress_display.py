"""Show the progress of longer work on stderr, as a bar on a terminal and otherwise as a line every ten seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from migrate_groups.cli.console import talk
from migrate_groups.text import cut

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from migrate_groups.migration.events import Done

_QUIET_SECONDS = 2.0
_BAR_SECONDS = 0.2
_LINE_SECONDS = 10.0
_JOIN_SECONDS = 1.0  # the end of a block waits no longer, because Spark may be slow to report its progress
_WIDTH = 60


class Work(NamedTuple):
    """The work that a command is doing, and its progress.

    doing: the work, for the user. amounts: the amount done and the total amount; None: not known.
    """

    doing: str
    amounts: tuple[int, int] | None = None

    @property
    def how_far(self) -> str:
        """The progress as text, such as ``3 of 12``; empty if it is not known or the total is below 2."""
        return f"{self.amounts[0]:,} of {self.amounts[1]:,}" if self.amounts and self.amounts[1] > 1 else ""


Look = Callable[[], Work | None]
"""A function that returns what the command is doing now, and its progress, or None if there is nothing to show.

It is called in another thread."""


@contextmanager
def shown_work(doing: str, done: Done) -> Iterator[None]:
    """Show the progress of the block on stderr: a bar on a terminal, otherwise a line every ten seconds.

    done: returns the amount done and the total amount, or None if they are not known. It is called in another thread.
    """
    with shown_looks(lambda: Work(doing, done())):
        yield


@contextmanager
def shown_looks(look: Look) -> Iterator[None]:
    """Show the progress of the block on stderr: a bar on a terminal, otherwise a line every ten seconds.

    look: returns what the command is doing now, and its progress, or None if there is nothing to show. It is called in
    another thread. If blocks are nested, only the progress of the innermost block is shown.
    """
    display: _Display = _BarDisplay() if sys.stderr.isatty() else _Lines()
    over = threading.Event()
    thread = threading.Thread(target=_draw, args=(look, display, over), daemon=True)
    with _screen:
        if _displays:
            _displays[-1].clear()
        _displays.append(display)
    try:
        thread.start()
        yield
    finally:
        with _screen:
            over.set()
            _displays.remove(display)
            display.clear()
        if thread.is_alive():  # otherwise an interrupt has come before it started, and it can't be joined
            thread.join(_JOIN_SECONDS)


class _Display(Protocol):
    first: float
    """Seconds after which the work is shown for the first time."""
    pause: float
    """Seconds between two updates."""

    def draw(self, work: Work | None, seconds: float) -> None: ...

    def clear(self) -> None: ...


_screen = threading.Lock()  # held while something is shown
_displays: list[_Display] = []  # of the blocks that run now, the innermost last


def _draw(look: Look, display: _Display, over: threading.Event) -> None:
    began, wait = time.monotonic(), display.first
    while not over.wait(wait):
        work = look()
        with _screen:
            if over.is_set():
                return
            if display is _displays[-1]:
                display.draw(work, time.monotonic() - began)
        wait = display.pause


class _Lines:
    first = pause = _LINE_SECONDS

    def draw(self, work: Work | None, seconds: float) -> None:
        if work is not None:
            talk(f"{seconds:4.0f} s  {work.doing}{': ' if work.how_far else ''}{work.how_far}")

    def clear(self) -> None:
        """Do nothing, because printed lines stay."""


class _BarDisplay:
    first, pause = _QUIET_SECONDS, _BAR_SECONDS

    def __init__(self) -> None:
        self._bar: Bar | None = None

    def draw(self, work: Work | None, seconds: float) -> None:
        if work is None:
            self.clear()
            return
        is_new = self._bar is None
        self._bar = self._bar or _new_bar()
        done, total = work.amounts if work.amounts and work.how_far else (0, None)  # None: the bar shows no length
        self._bar.update(
            self._bar.task_ids[0],
            description=cut(work.doing, _WIDTH),
            completed=done,
            total=total,
            how_far=work.how_far,
            seconds=f"{seconds:.0f} s",
        )
        if is_new:
            self._bar.start()  # also draws the bar
        else:
            self._bar.refresh()

    def clear(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _new_bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    shown = ("description", "fields[how_far]", "fields[seconds]")
    doing, how_far, seconds = (TextColumn(f"{{task.{each}}}", markup=False) for each in shown)
    # Rich must start no thread to redraw the bar, and must not redirect stdout, because it may be a file of data.
    bar = Bar(
        *(doing, BarColumn(), how_far, seconds),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
    )
    bar.add_task("", total=None, how_far="", seconds="")
    return bar
