"""Run a command that halts at one of its steps, until it is released or killed (`tests.support.halted_at`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tests.support import forks


class Halted:
    """The process of a command that halts at one of its steps."""

    def __init__(self, process: subprocess.Popen[bytes], telling: TextIO, go_on: int, said: Path) -> None:
        self.process, self._said = process, said
        self._telling = telling
        self._go_on: int | None = go_on

    def await_step(self) -> tuple[bool, int]:
        """Wait until the command halts or ends. Return whether it has halted, and the number of its steps so far."""
        told = self._telling.readline().split() or ["of", "0"]
        return told[0] == "at", int(told[1])

    def release(self) -> None:
        """Let the process continue."""
        if self._go_on is not None:
            os.close(self._go_on)
            self._go_on = None

    def said(self) -> str:
        """Return what the command has printed so far."""
        return self._said.read_text()


@contextmanager
def halted(step: int, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[Halted]:
    """Start a command that halts at a step. At the end of the ``with`` block, kill it if it is still running."""
    tell_from, tell_to = os.pipe()
    hear_from, hear_to = os.pipe()
    command = [sys.executable, "-m", "tests.support.halted_at", str(step), str(tell_to), str(hear_from), *arguments]
    with (folder / "said.txt").open("w") as said:
        process = forks.Popen[bytes](
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=(tell_to, hear_from),
        )
    os.close(tell_to)
    os.close(hear_from)
    with os.fdopen(tell_from) as telling:
        started = Halted(process, telling, hear_to, folder / "said.txt")
        try:
            yield started
        finally:
            process.kill()
            process.wait()
            started.release()
