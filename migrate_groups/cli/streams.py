"""stdout and stderr may be lost, by a full disk or a reader that has left: what is said never changes what is done."""

from __future__ import annotations

import io
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Outlet(io.FileIO):
    """Where a stream goes. Once a write has failed, ``lost`` is why, and everything goes nowhere from there on.

    Nothing is buffered here: what an interrupt has cut short is not said again later.
    """

    lost: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of it, and return how many bytes that are."""
        whole = memoryview(data).cast("B")
        rest = whole
        try:
            while rest and self.lost is None:
                written = super().write(rest)
                if written is None:  # a pipe that does not block, and is full
                    select.select([], [self], [])
                rest = rest[written or 0 :]
        except OSError as error:
            self.lost = error
        return len(whole)


def open_streams() -> None:
    """Put outlets in the place of stdout and stderr; what their encoding lacks is escaped.

    Streams that this process was started without are there as well: stdin is empty, the others are lost. Those that
    somebody has put in the place of this process's own stay.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  open as long as the process is
    if sys.stdout is sys.__stdout__:
        sys.stdout = _outlet(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _outlet(sys.stderr)


def stdout_lost() -> OSError | None:
    """Return why stdout could not be written whole, None where it was."""
    sys.stdout.flush()
    outlet = getattr(sys.stdout, "buffer", None)
    return outlet.lost if isinstance(outlet, Outlet) else None


def _outlet(stream: TextIO | None) -> TextIO:
    # Where there is none, what can't be written to takes its number, lest a file or a connection does.
    number = os.open(os.devnull, os.O_RDONLY) if stream is None else stream.fileno()
    return io.TextIOWrapper(
        Outlet(number, "w", closefd=False),  # raw, as Python has it with -u
        encoding=stream.encoding if stream else "utf-8",
        errors="backslashreplace",
        line_buffering=stream is None or bool(stream.line_buffering),
    )
