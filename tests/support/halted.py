"""A command that halts at one of its steps, until it is released or killed (`tests.support.halted_at`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from tests.support import forks


class Halted:
    """The process of a command that halts at a step. said: the file with its stdout and stderr."""

    def __init__(self, process: subprocess.Popen[bytes], telling: TextIO, go_on: int, said: Path) -> None:
        self.process, self._said = process, said
        self._telling = telling
        self._go_on: int | None = go_on

    def await_step(self) -> tuple[bool, int]:
        """Wait until the command halts or ends. Return whether it has halted, and the number of its steps so far."""
        told = self._telling.readline().split() or ["of", "0"]
        return told[0] == "at", int(told[1])

    def release(self, *, clock: float = 0.0) -> None:
        """Let the process continue. clock: the number of seconds by which its clock jumps."""
        if self._go_on is not None:
            if clock:
                with suppress(BrokenPipeError):  # the process has ended before the step
                    os.write(self._go_on, f"{clock}".encode())
            os.close(self._go_on)
            self._go_on = None

    def said(self) -> str:
        """Return what the command has printed so far."""
        return self._said.read_text()


@contextmanager
def halted(
    step: int | str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], *, said: Path | None = None
) -> Iterator[Halted]:
    """Start a command that halts at a step. At the end of the ``with`` block kill the command if it still runs.

    step: the number of the step, or a text such as ``w3`` (`tests.support.halted_at`). said: the file for stdout and
    stderr; None: ``said.txt`` in ``folder``.
    """
    said = said or folder / "said.txt"
    tell_from, tell_to = os.pipe()
    hear_from, hear_to = os.pipe()
    command = [sys.executable, "-m", "tests.support.halted_at", str(step), str(tell_to), str(hear_from), *arguments]
    with said.open("w") as output:
        process = forks.Popen[bytes](
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(tell_to, hear_from),
        )
    os.close(tell_to)
    os.close(hear_from)
    with os.fdopen(tell_from) as telling:
        started = Halted(process, telling, hear_to, said)
        try:
            yield started
        finally:
            process.kill()
            process.wait()
            started.release()
