"""Write what happens in a running command as JSON lines, for ``--events``."""

from __future__ import annotations

import os
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.errors import InvalidInput, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from migrate_groups.show.event import EventName

_STDOUT = "-"


class EventLog:
    """The file of ``--events``, or stdout, to which each event is written at once, as one line.

    A line that can't be written, as on a full disk, never stops the command: stderr says so once, and no further line
    is written. `tell` may be called from any thread.
    """

    def __init__(self, name: str) -> None:
        """Open the file to append to it. name: its path, or ``-`` for stdout. Raises `InvalidInput` if it can't be."""
        self.is_stdout = name == _STDOUT
        self.command = self._error = ""
        self._name, self._is_lost, self._lock = name, False, threading.Lock()
        self._last: dict[str, Any] = {}
        try:
            # Without blocking: a pipe that nobody reads must not keep the new applications waiting.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
            self._descriptor = None if self.is_stdout else os.open(name, flags, 0o666)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"--events {name} can't be written: {getattr(error, 'strerror', error)}") from None

    def __str__(self) -> str:
        """Return the value of the option."""
        return self._name

    def tell(self, event: EventName, **state: Any) -> None:
        """Write an event. state: the fields of `EventDocument` that are known."""
        from migrate_groups.cli.json_output import encoded
        from migrate_groups.show.event import EventDocument

        with self._lock:
            made = EventDocument(event=event, at=SystemClock().now(), command=self.command, **state)
            of_one = {name: state.get(name, ()) for name in ("run", "source_groups", "target_groups")}
            self._last = of_one if self._last in ({}, of_one) else {"run": None}
            self._write(encoded(made, indent=None))

    def failed(self, message: str) -> None:
        """Remember why the command fails, for `done`."""
        self._error = message

    def done(self, exit_code: int) -> None:
        """Write the last event. It names the run and the groups if all events were about the same ones."""
        self.tell("done", **self._last, exit_code=exit_code, error=self._error or None)

    def _write(self, line: bytes) -> None:
        if self._descriptor is None:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            return
        try:
            while line and not self._is_lost:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            self._is_lost = True
            sys.stderr.write(f"warning: --events {self._name} can't be written any more: {error.strerror}\n")


current: ContextVar[EventLog | None] = ContextVar("current", default=None)
"""The file of ``--events`` of the running command; None without the option."""


def begin(command: str, log: EventLog | None, output_format: str | None) -> None:
    """Write the events of a command to ``log`` from now on; None: nowhere.

    Raises `UsageError` if they go to stdout, and another output format than ``table`` needs stdout too.
    """
    if log is not None and log.is_stdout and output_format not in (None, "table"):
        raise UsageError(f"--events - and --format {output_format} both write to stdout: name a file with --events")
    if log is not None:
        log.command = command
    current.set(log)


def take_stdout() -> bool:
    """Return whether stdout is only for events, so that everything else goes to stderr."""
    return (log := current.get()) is not None and log.is_stdout


def failed(message: str) -> None:
    """Remember why the running command fails, for the event ``done``."""
    if (log := current.get()) is not None:
        log.failed(message)


def done(exit_code: int) -> None:
    """Write the event ``done`` of the running command."""
    if (log := current.get()) is not None:
        log.done(exit_code)


def group_done(run: Path, group: str, exit_code: int, error: str | None) -> None:
    """Write the event ``done`` of one of several groups that the running command moves."""
    if (log := current.get()) is not None:
        log.tell("done", run=run, source_groups=(group,), exit_code=exit_code, error=error)
