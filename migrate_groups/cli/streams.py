"""Replacements for stdout and stderr that raise no error if they can't be written, as on a full disk."""

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
    """An unbuffered file for stdout or stderr. If it can't be written, it raises no error and drops all further output.

    lost: the error of the first write that failed; None if no write failed.
    """

    # Nothing is buffered, so that output that an interrupt has cut short is not printed later.
    lost: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of ``data``, and return its number of bytes, also if the write fails."""
        whole = memoryview(data).cast("B")
        rest = whole
        try:
            while rest and self.lost is None:
                written = super().write(rest)
                if written is None:  # a full pipe that does not block
                    select.select([], [self], [])
                rest = rest[written or 0 :]
        except OSError as error:
            self.lost = error
        return len(whole)


def open_streams() -> None:
    """Replace stdout and stderr by streams that raise no error if they can't be written, and drop their output instead.

    A missing stdin is replaced by an empty one. A stdout or stderr that other code has replaced is kept.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  open as long as the process is
    if sys.stdout is sys.__stdout__:
        sys.stdout = _outlet(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _outlet(sys.stderr)


def stdout_lost() -> OSError | None:
    """Return the first error in writing stdout; None if all output was written."""
    sys.stdout.flush()
    outlet = getattr(sys.stdout, "buffer", None)
    return outlet.lost if isinstance(outlet, Outlet) else None


def _outlet(stream: TextIO | None) -> TextIO:
    # A missing stream gets a descriptor that can't be written to. If its number stayed free, the next file or
    # connection that is opened would get the number, and with it our output.
    number = os.open(os.devnull, os.O_RDONLY) if stream is None else stream.fileno()
    return io.TextIOWrapper(
        Outlet(number, "w", closefd=False),  # unbuffered, as with python -u
        encoding=stream.encoding if stream else "utf-8",
        errors="backslashreplace",
        line_buffering=stream is None or bool(stream.line_buffering),
        write_through=isinstance(stream, io.TextIOWrapper) and stream.write_through,
    )
