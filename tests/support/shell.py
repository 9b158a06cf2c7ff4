"""A terminal with an interactive bash, such as a reader of the docs uses."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.terminal import Terminal

ROOT = Path(__file__).parents[2]
CTRL_C = "\x03"
_QUESTION = r"\[y/N\]: $"
_PROMPT = r"<exit code (\d+)>$"


class Shell(Terminal):
    """A terminal of 1,000 columns in which bash runs in a folder, with ``migrate-groups`` on its PATH.

    variables: additional environment variables. The prompt is empty unless they contain PS1.
    """

    patience = 400

    def __init__(self, folder: Path, **variables: str) -> None:
        super().__init__()
        fcntl.ioctl(self.stream, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 1000, 0, 0))
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": programs, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PS1": ""} | variables
        command = ["setsid", "--ctty", "bash", "--norc", "--noediting", "-i"]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), self.stream)
        self._bash = subprocess.Popen(command, cwd=folder, env=environment, **streams)  # type: ignore[call-overload]

    def await_end(self, start: int) -> None:
        """Wait until all typed commands have ended. start: the index in `shown` at which their output begins."""
        self.type("echo all 'has ended'\n")
        self.wait_for("all has ended\r", start)

    def run(self, commands: str) -> None:
        """Type commands, and wait until they have ended."""
        self.await_end(self.type(commands))

    def close(self) -> str:
        """End bash and its jobs, close the terminal, and return its whole output."""
        if not self.stream.closed:
            self.type(f"{CTRL_C}\nkill $(jobs -p)\nwait\nexec true\n")
            self._bash.wait(self.patience)
        return super().close()


class Prompting(Shell):
    """A shell whose prompt shows the exit code of the last command."""

    def __init__(self, folder: Path, **variables: str) -> None:
        super().__init__(folder, PS1="<exit code $?>", PS2="", **variables)

    def answered(self, command: str, when: Mapping[str, Callable[[], object]]) -> int:
        """Type a command, answer its confirmation prompts with ``y``, and return its exit code.

        when: actions, by a regular expression. An action is done once the output matches.
        """
        self.wait_for(_PROMPT)
        start, waiting = self.type(f"{command}\n"), dict(when)
        while True:
            end = self.wait_for(f"{_QUESTION}|{_PROMPT}" + "".join(f"|{pattern}" for pattern in waiting), start)
            for pattern in [pattern for pattern in waiting if re.search(pattern, self.shown[start:])]:
                waiting.pop(pattern)()
            if re.search(_QUESTION, self.shown[start:end]):
                start = self.type("y\n")
            elif found := re.search(_PROMPT, self.shown[start:end]):
                assert not waiting, f"{command} printed no {waiting}"
                return int(found[1])
