"""Run the commands of ``migrate`` that stop the old applications, and start the new or the old ones."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from migrate_groups.cli.console import talk
from migrate_groups.errors import UsageError

SECONDS_TO_START = 60.0
_POLL_SECONDS = 0.05
_STDERR = 2
# Our variables hold credentials of the cluster, which the commands do not need.
_OURS = "MIGRATE_GROUPS_"


class ApplicationCommand:
    """A command that stops or starts applications.

    It runs without a shell and with empty stdin, and all its output goes to stderr. It does not inherit the environment
    variables ``MIGRATE_GROUPS_…``, but gets ``MIGRATE_GROUPS_RUN_DIR`` and the variables that `start` is given.
    """

    def __init__(self, option: str, command: str, run_dir: Path) -> None:
        """Split the command into words, as a shell does. option: its option, such as ``--start-command``.

        Raises `UsageError` if the command is empty or has an open quote, or if its program is not found.
        """
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"{option} {command!r}: {error}; it is split into words as a shell does") from None
        if not self._words:
            raise UsageError(f"{option} is empty; expected a program and its arguments")
        if shutil.which(self._words[0]) is None:
            raise UsageError(f"{option}: program {self._words[0]!r} is not found, or may not be run")
        # Messages name the program alone, because an argument may be a secret, and messages reach logs.
        self.option, self.program, self.run_dir = option, self._words[0], run_dir
        self._process: subprocess.Popen[bytes] | None = None
        self._failed = ""

    @property
    def failure(self) -> str:
        """How the command failed, as a message. It is empty as long as the command has not failed."""
        return self._failed and f"{self.option}: {self.program} {self._failed}"

    @property
    def is_running(self) -> bool:
        """Whether the command was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, variables: Mapping[str, str] | None = None) -> None:
        """Start the command. If that fails, raise no error, but set `failure`.

        variables: more environment variables, without their beginning ``MIGRATE_GROUPS_``.
        """
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        ours = {"RUN_DIR": str(self.run_dir.absolute()), **(variables or {})}
        environment |= {f"{_OURS}{name}": value for name, value in ours.items()}
        try:
            # Its output goes to stderr, because stdout is for the data of `migrate`. It stays in this process group, so
            # that Ctrl-C in a terminal reaches it too.
            self._process = subprocess.Popen(
                self._words, env=environment, stdin=subprocess.DEVNULL, stdout=_STDERR, stderr=_STDERR
            )
        except OSError as error:  # not raised, because the offsets may be written already
            self._failed = f"could not be started: {error.strerror}"

    def wait(self, seconds: float, sleep: Callable[[float], object] = time.sleep) -> None:
        """Wait for the command to end, if it was started, and set `failure`.

        If the command has not ended after ``seconds``, it counts as failed and is left running. sleep: may raise an
        error, which ends the wait.
        """
        if self._process is None:
            return
        if self._process.poll() is None:
            talk(f"waiting up to {seconds:g} s for {self.option} to end: {self.program}")
        until = time.monotonic() + seconds
        while (code := self._process.poll()) is None and time.monotonic() < until:
            sleep(_POLL_SECONDS)
        if code is None:
            self._failed = f"has not ended, and is left running as process {self._process.pid}"
            return
        if code < 0:
            self._failed = f"was killed by signal {-code} ({signal.strsignal(-code)})"
        elif code:
            self._failed = f"ended with exit code {code}"


class ApplicationCommands(NamedTuple):
    """The commands of ``migrate`` that stop and start applications; None: a person does it.

    stop: stops the old applications after the plan is agreed. start: starts the new ones after the write. restart:
    starts the old ones again if nothing was written after ``stop``.
    """

    stop: ApplicationCommand | None = None
    start: ApplicationCommand | None = None
    restart: ApplicationCommand | None = None

    @staticmethod
    def of(stop: str | None, start: str | None, restart: str | None, run_dir: Path) -> ApplicationCommands:
        """Return the commands of these options. Raises `UsageError` if one can't be run, or if ``stop`` is missing."""
        if restart is not None and stop is None:
            raise UsageError("--restart-command goes with --stop-command: pass both")
        texts = {"--stop-command": stop, "--start-command": start, "--restart-command": restart}
        found = [None if text is None else ApplicationCommand(each, text, run_dir) for each, text in texts.items()]
        return ApplicationCommands(*found)

    @property
    def given(self) -> list[ApplicationCommand]:
        """The commands that are given."""
        return [each for each in self if each is not None]


BY_HAND = ApplicationCommands()
"""No commands: the user stops and starts the applications."""
