"""A process that owns a sandbox's folder and Java process, and ends both when its parent is gone, however it went.

It is run by its path, in a session of its own, so that neither Ctrl-C nor the end of a terminal reaches it or Java. On
stdin it gets one line of JSON, ``{"files": {name: text}, "prepare": command, "serve": command}``. The parent holds the
pipe, and its end is the end of the parent. It makes the files in a new temporary folder, runs the commands there one
after the other (``{folder}`` in them is that folder) and writes on stdout, a line of JSON each:

- ``{"folder": path, "pid": pid}`` when the second command has been started
- ``{"exit": code, "log": text}`` when a command has ended that should not have. Any further line on stdin starts the
  second one again, where the first has done its work.

Imports only the standard library: it has to be there quickly and whatever the parent's path is.
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
    """Tells a process that ended from a parent that is gone, whichever is first."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        # Signals arrive as bytes here: none is missed between a look and the wait that follows, and none interrupts
        # the cleaning up.
        self._signals, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _ignore)

    def ended(self, process: subprocess.Popen[bytes]) -> bool:
        """Await the end of ``process``; False if this keeper is to end first."""
        while process.poll() is None:
            # A process that the parent has forked may hold the pipe, too: the parent's id is looked at as well.
            ready, _, _ = select.select([0, self._signals], [], [], 1)
            told = set(os.read(self._signals, 64)) - {signal.SIGCHLD} if self._signals in ready else set()
            if 0 in ready or told or os.getppid() != self._parent:
                return False
        return True

    def told_to_go_on(self) -> bool:
        """Await a line from the parent; False if this keeper is to end first."""
        while True:
            ready, _, _ = select.select([0, self._signals], [], [], 1)
            told = set(os.read(self._signals, 64)) - {signal.SIGCHLD} if self._signals in ready else set()
            if told or os.getppid() != self._parent:
                return False
            if 0 in ready:
                return os.read(0, 1) == b"\n"


def main() -> None:
    """Keep what stdin asks for until the parent is gone."""
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
    """Return what makes Linux kill the new process when this one is killed; elsewhere nothing does."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(**facts: object) -> None:
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: the byte has told already."""


if __name__ == "__main__":
    main()
