"""Run the command of ``migrate --on-start``, which starts the new applications as soon as they may start."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from migrate_groups.cli.console import talk
from migrate_groups.errors import UsageError

SECONDS_AFTER_GUARD = 60.0
_STDERR = 2
# Our variables hold credentials of the cluster, which the command does not need.
_OURS = "MIGRATE_GROUPS_"
_RUN_DIR = "MIGRATE_GROUPS_RUN_DIR"


class OnStart:
    """The command of ``migrate --on-start``, which starts the new applications after the write.

    It runs without a shell and with empty stdin, and all its output goes to stderr. Of the environment variables
    ``MIGRATE_GROUPS_…`` it gets only ``MIGRATE_GROUPS_RUN_DIR``.
    """

    def __init__(self, command: str, run_dir: Path) -> None:
        """Split the command into words, as a shell does.

        Raises `UsageError` if the command is empty or has an open quote, or if its program is not found.
        """
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--on-start {command!r}: {error}; it is split into words as a shell does") from None
        if not self._words:
            raise UsageError("--on-start is empty; expected a program and its arguments")
        if shutil.which(self._words[0]) is None:
            raise UsageError(f"--on-start: program {self._words[0]!r} is not found, or may not be run")
        # Messages name the program alone, because an argument may be a secret, and messages reach logs.
        self.program, self._run_dir = self._words[0], run_dir
        self._process: subprocess.Popen[bytes] | None = None
        self._failed = ""

    @property
    def failure(self) -> str:
        """How the command failed, as a message. It is empty if the command did not fail, and before `wait`."""
        return self._failed and f"--on-start: {self.program} {self._failed}"

    def start(self) -> None:
        """Start the command. If that fails, print the reason on stderr and raise no error."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        environment[_RUN_DIR] = str(self._run_dir.absolute())
        try:
            # Its output goes to stderr, because stdout is for the data of `migrate`. It stays in this process group, so
            # that Ctrl-C in a terminal reaches it too.
            self._process = subprocess.Popen(
                self._words, env=environment, stdin=subprocess.DEVNULL, stdout=_STDERR, stderr=_STDERR
            )
        except OSError as error:  # raises nothing, because the offsets are already written
            self._failed = f"could not be started: {error.strerror}"
            talk(f"{self.failure}: START THE NEW GROUPS NOW, by hand")

    def wait(self) -> None:
        """Wait up to 60 s for the command to end, if it was started, and set `failure`.

        If the command has not ended by then, it counts as failed and is left running.
        """
        if self._process is None:
            return
        if self._process.poll() is None:
            talk(f"waiting up to {SECONDS_AFTER_GUARD:g} s for --on-start to end: {self.program}")
        try:
            code = self._process.wait(SECONDS_AFTER_GUARD)
        except subprocess.TimeoutExpired:
            self._failed = f"has not ended, and is left running as process {self._process.pid}"
            return
        if code < 0:
            self._failed = f"was killed by signal {-code} ({signal.strsignal(-code)})"
        elif code:
            self._failed = f"ended with exit code {code}"
