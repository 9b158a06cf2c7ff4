"""The types of callbacks that show the progress of work that may take a while."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Progress = Callable[[int, int], None]
"""Called with the amount that is done, and the amount to do in all."""

Done = Callable[[], tuple[int, int] | None]
"""Returns the amount that is done and the amount to do in all; None: not known. It may be called in another thread."""

Working = Callable[[str, Done], AbstractContextManager[None]]
"""Called with a description of the work, for the user, and a function that returns the progress.

Returns a context manager, within which the work is done.
"""


def in_silence(doing: str, done: Done) -> AbstractContextManager[None]:
    """Return a context manager that shows no progress of the work within it."""
    return nullcontext()


def not_known() -> None:
    """Return None, for work of which no progress is known."""
