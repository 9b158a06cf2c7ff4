"""Run Kafka in a temporary folder. Once the parent process has ended, kill Kafka and delete the folder.

This file is the program of a child process. The parent sends the commands to run as JSON on stdin. The child reports as
JSON on stdout when Kafka has started or ended.
"""

# This child process, the supervisor, is started by the path of this file, in a separate session, so that neither
# Ctrl-C nor a closed terminal reaches it or Kafka. It imports only the standard library, so that it starts quickly
# and does not depend on the parent's import path.  It reads one line of JSON from stdin: {"files": {name: text},
# "prepare": command, "serve": command}. It writes the files into the folder, and runs there first "prepare", which
# formats Kafka's storage and may be empty, then "serve", which runs Kafka. In the commands, {folder} stands for the
# folder. It writes a line of JSON to stdout: - {"folder": path, "pid": pid} when "serve" has been started - {"exit":
# code, "log": text} when "prepare" has failed or "serve" has ended. After the end of "serve", an empty line on stdin
# starts "serve" again.

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
    """Waits until Kafka ends, or until the parent process orders a restart of Kafka.

    A wait ends early if this process must end: stdin is closed, the parent has ended, or SIGTERM, SIGINT or SIGHUP has
    arrived.
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
        """Return True when ``process`` has ended. Return False as soon as this program must end.

        The program must end if stdin is closed, its parent has ended, or SIGTERM, SIGINT or SIGHUP has arrived.
        """
        while process.poll() is None:
            # The parent's id is checked, too, because a process that the parent has forked may keep the pipe open.
            ready, _, _ = select.select([0, self._signals], [], [], 1)
            told = set(os.read(self._signals, 64)) - {signal.SIGCHLD} if self._signals in ready else set()
            if 0 in ready or told or os.getppid() != self._parent:
                return False
        return True

    def wait_for_restart(self) -> bool:
        """Return True when the parent process sends an empty line on stdin, the order to restart Kafka.

        Return False as soon as this program must end: stdin is closed, the parent has ended, or SIGTERM, SIGINT or
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
    """Run the commands that the parent process sends as JSON on stdin, in a new temporary folder.

    When the parent ends or closes stdin, kill the running command and delete the folder.
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
    """Return a ``preexec_fn`` for a child process, with which Linux kills the child when this process ends.

    The result is None on other operating systems.
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
    """Do nothing with a signal, because Python itself writes the number of each signal to a pipe."""


if __name__ == "__main__":
    main()
