"""The types of callbacks that show the progress of work that may take a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

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


@contextmanager
def amounts_shown(working: Working, doing: str) -> Iterator[Progress]:
    """Yield a function that receives the progress of the block, which ``working`` shows."""
    amounts: tuple[int, int] | None = None

    def tell(done: int, total: int) -> None:
        nonlocal amounts
        amounts = done, total

    with working(doing, lambda: amounts):
        yield tell
