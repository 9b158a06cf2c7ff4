"""Run a sandbox's Kafka in a temporary folder; once the parent process has ended, kill Kafka and delete the folder.

This file is the program of a child process, the keeper. It is started by its path, in a separate session, so that
neither Ctrl-C nor a closed terminal reaches it or Kafka. It reads one line of JSON from stdin, ``{"files": {name:
text}, "prepare": command, "serve": command}``. Stdin is a pipe from the parent. If the pipe is closed, the parent has
ended or no longer needs Kafka, and the keeper ends.

The keeper writes the files into a new temporary folder, and runs the commands there: first ``prepare``, which formats
Kafka's storage and may be empty, then ``serve``, which runs Kafka. In the commands, ``{folder}`` stands for the folder.
The keeper writes a line of JSON to stdout:

- ``{"folder": path, "pid": pid}`` when ``serve`` has been started
- ``{"exit": code, "log": text}`` when ``prepare`` has failed or ``serve`` has ended. After the end of ``serve``, an
  empty line on stdin starts ``serve`` again.

This file imports only the standard library, so that it starts quickly and does not depend on the parent's import path.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

LOG = "kafka.log"
_PR_SET_PDEATHSIG = 1


class _Watch:
    """Waits for the end of a child process (Kafka) or for an order of the parent process.

    A wait is over early if this process, the keeper, must end: if stdin is closed, if the parent has ended, or after
    SIGTERM, SIGINT or SIGHUP.
    """

    def __init__(self) -> None:
        self._parent = os.getppid()
        # Signals arrive as bytes in this pipe, so that no signal is missed between a check and the wait after it, and
        # no signal interrupts the clean-up.
        self._signals, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _ignore)

    def wait_for_end(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until ``process`` has ended, and return True.

        Return False, before the process has ended, if the keeper must end: stdin was closed, the parent process has
        ended, or SIGTERM, SIGINT or SIGHUP has arrived.
        """
        while process.poll() is None:
            # The parent's id is checked, too, because a process that the parent has forked may keep the pipe open.
            ready, _, _ = select.select([0, self._signals], [], [], 1)
            told = set(os.read(self._signals, 64)) - {signal.SIGCHLD} if self._signals in ready else set()
            if 0 in ready or told or os.getppid() != self._parent:
                return False
        return True

    def wait_for_restart(self) -> bool:
        """Wait until the parent process writes an empty line to stdin, the order to start Kafka again, and return True.

        Return False if the keeper must end: stdin was closed, the parent process has ended, or SIGTERM, SIGINT or
        SIGHUP has arrived.
        """
        while True:
            ready, _, _ = select.select([0, self._signals], [], [], 1)
            told = set(os.read(self._signals, 64)) - {signal.SIGCHLD} if self._signals in ready else set()
            if told or os.getppid() != self._parent:
                return False
            if 0 in ready:
                return os.read(0, 1) == b"\n"


def main() -> None:
    """Run the commands that the parent process sends as JSON on stdin, in a temporary folder.

    Return when the command ``prepare`` has failed, the parent has ended or closed stdin, or a signal has arrived. Then
    the running command is killed, and the folder is deleted.
    """
    watch = _Watch()
    line = sys.stdin.readline()
    if not line:
        return
    job = json.loads(line)
    with tempfile.TemporaryDirectory(prefix="migrate-groups-sandbox-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for file, text in job["files"].items():
            (folder / file).write_text(text, encoding="utf-8")
        step = "prepare" if job["prepare"] else "serve"
        while True:
            process = _start([argument.replace("{folder}", name) for argument in job[step]], folder)
            try:
                if step == "serve":
                    _say(folder=name, pid=process.pid)
                if not watch.wait_for_end(process):
                    return
            finally:
                process.kill()
                process.wait()
            if process.returncode != 0 or step == "serve":
                log = (folder / LOG).read_text(encoding="utf-8", errors="replace")
                _say(exit=process.returncode, log=log[-50_000:])
                if step == "prepare" or not watch.wait_for_restart():
                    return
            step = "serve"


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_keeper()
        )


def _die_with_keeper() -> Callable[[], None] | None:
    """Return a function to call in a new child process, so that Linux kills the child when the keeper ends.

    The result is None on other operating systems, which do not offer this.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(**facts: object) -> None:
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing with a signal. Python has already written its number to the pipe that `_Watch` reads."""


if __name__ == "__main__":
    main()
