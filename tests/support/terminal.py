"""Pseudo-terminals: as a stream in this process, or as the terminal of a command's process."""

from __future__ import annotations

import os
import pty
import re
import sys
import threading
from typing import Any, Self

from tests.support import forks
from tests.support.cli import Cli

_SECONDS = 60


class Terminal:
    """A pseudo-terminal. stream: a file that writes to the terminal. shown: the output on the terminal so far."""

    patience = _SECONDS
    """How many seconds `wait_for` waits."""

    def __init__(self) -> None:
        self.shown = ""
        self._ours, theirs = pty.openpty()
        self.stream = os.fdopen(theirs, "w", encoding="utf-8")
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._more = threading.Condition()

    def __enter__(self) -> Self:
        self._reading.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def type(self, text: str) -> int:
        """Type a text, and return the index in `shown` at which later output begins."""
        start = len(self.shown)
        os.write(self._ours, text.encode())
        return start

    def wait_for(self, pattern: str, start: int = 0) -> int:
        """Wait until the output from index ``start`` on matches the pattern; return the length of `shown`."""
        with self._more:
            found = self._more.wait_for(lambda: re.search(pattern, self.shown[start:], re.DOTALL), self.patience)
            end = len(self.shown)
        assert found, f"no {pattern!r} in {self.shown[start:]!r}"
        return end

    def close(self) -> str:
        """Close the terminal, and return its whole output."""
        if not self.stream.closed:
            self.stream.close()
            self._reading.join(_SECONDS)
            os.close(self._ours)
        return self.shown

    def _read(self) -> None:
        got = b""
        while True:
            try:
                got += os.read(self._ours, 4096)
            except OSError:  # on Linux, when the other side is closed
                return
            with self._more:
                self.shown = got.decode(errors="ignore")
                self._more.notify_all()


def on_a_terminal(cli: Cli, *arguments: str, typed: str = "") -> tuple[int, str]:
    """Run a command on a terminal, type ``typed``, and return the command's exit code and output."""
    command = [sys.executable, "-m", "migrate_groups", *arguments]
    environment = {**cli.environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    with Terminal() as terminal:
        streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), terminal.stream)
        with forks.Popen[bytes](command, cwd=cli.folder, env=environment, start_new_session=True, **streams) as process:
            terminal.type(typed)
            process.wait(_SECONDS)
        return process.returncode, terminal.close()
