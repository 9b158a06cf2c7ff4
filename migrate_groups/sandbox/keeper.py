"""The keeper: a process that runs a sandbox's Java in a folder, and ends and removes both once its parent has ended.

It is run by its path in a separate session, so that neither Ctrl-C nor a closed terminal reaches it or Java. It reads
one line of JSON from stdin, ``{"files": {name: text}, "prepare": command, "serve": command}``. Stdin is a pipe from the
parent; when it closes, the parent has ended.

It writes the files into a new temporary folder, and runs the commands there one after the other. In the commands,
``{folder}`` stands for that folder. It writes a line of JSON to stdout:

- ``{"folder": path, "pid": pid}`` when ``serve`` has been started
- ``{"exit": code, "log": text}`` when ``prepare`` has failed or ``serve`` has ended. After the end of ``serve``, an
  empty line on stdin starts ``serve`` again.

Imports only the standard library, so that it starts quickly and does not depend on the parent's import path.
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
    """Waits until a process ends, or until the parent ends or a signal tells this keeper to end."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        # Signals arrive as bytes in this pipe, so that no signal is missed between a check and the wait after it, and
        # no signal interrupts the clean-up.
        self._signals, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _ignore)

    def ended(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the end of ``process``, then return True; return False if this keeper must end first."""
        while process.poll() is None:
            # The parent's id is checked, too, because a process that the parent has forked may keep the pipe open.
            ready, _, _ = select.select([0, self._signals], [], [], 1)
            told = set(os.read(self._signals, 64)) - {signal.SIGCHLD} if self._signals in ready else set()
            if 0 in ready or told or os.getppid() != self._parent:
                return False
        return True

    def told_to_go_on(self) -> bool:
        """Wait for an empty line from the parent, then return True; return False if this keeper must end first."""
        while True:
            ready, _, _ = select.select([0, self._signals], [], [], 1)
            told = set(os.read(self._signals, 64)) - {signal.SIGCHLD} if self._signals in ready else set()
            if told or os.getppid() != self._parent:
                return False
            if 0 in ready:
                return os.read(0, 1) == b"\n"


def main() -> None:
    """Run the job that the parent sends as JSON on stdin, until the parent ends."""
    watch = _Watch()
    line = sys.stdin.readline()
    if not line:
        return
    job = json.loads(line)
    with tempfile.TemporaryDirectory(prefix="migrate-groups-sandbox-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for file, text in job["files"].items():
            (folder / file).write_text(text, encoding="utf-8")
        step = "prepare"
        while True:
            process = _start([argument.replace("{folder}", name) for argument in job[step]], folder)
            try:
                if step == "serve":
                    _say(folder=name, pid=process.pid)
                if not watch.ended(process):
                    return
            finally:
                process.kill()
                process.wait()
            if process.returncode != 0 or step == "serve":
                log = (folder / LOG).read_text(encoding="utf-8", errors="replace")
                _say(exit=process.returncode, log=log[-50_000:])
                if step == "prepare" or not watch.told_to_go_on():
                    return
            step = "serve"


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_keeper()
        )


def _die_with_keeper() -> Callable[[], None] | None:
    """Return a function by which Linux kills the new process when the keeper ends; None on other systems."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(**facts: object) -> None:
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing, because the byte in the pipe already reports the signal."""


if __name__ == "__main__":
    main()
