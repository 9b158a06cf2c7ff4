"""The entry point of the command line: it turns every failure into one line on stderr and an exit code.

With ``--format json`` a failure is a JSON document on stdout, too.

It imports nothing slow, because Ctrl-C may come while the commands are still being imported.
"""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType

from migrate_groups.cli import documents, environment, streams, written
from migrate_groups.errors import EXIT_CHANGES, MigrateGroupsError, PartlyApplied
from migrate_groups.text import brief

# Garbage is collected less often, because collecting it took a fifth of a cut-over of 10,000 partitions
# (docs/kafka-behaviour.md#other-libraries).
_COLLECTED = (1_000_000, 20, 100)
_INTERRUPTED = 130  # Typer returns it for Ctrl-C, too, without a message
_STOPS = (signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Run a command. An error is one line on stderr and its own exit code; only a bug shows a traceback (exit 1).

    SIGTERM (Kubernetes, CI) and SIGHUP (the terminal was closed) do what Ctrl-C does.
    """
    try:
        for number in _STOPS:
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP, and this must stay so
                signal.signal(number, _stop)
        gc.set_threshold(*_COLLECTED)
        streams.open_streams()
        environment.take_properties()
        written.so_far.set("")
        documents.awaited.set(False)
        code = _heard(_run())
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        _ignore_stops()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends the process at once
        message = f"interrupted; {written.so_far.get() or written.NOTHING}"
        documents.print_error("Interrupted", code, message)
        sys.stderr.write(f"{message}\n")
    sys.exit(code)


def _run() -> int:
    """Run the command that was called, and return its exit code."""
    from migrate_groups.cli.registry import command_line

    try:
        command_line(sys.argv[1:2])()
    except MigrateGroupsError as error:
        message = brief(str(error))
        documents.print_error(documents.kind_of(error), error.exit_code, message)
        sys.stderr.write(f"error: {message}\n")
        if meaning := _meaning(error):
            sys.stderr.write(f"exit {error.exit_code}: {meaning}\n")
        return error.exit_code
    except SystemExit as end:  # because Typer ends every command with it
        return int(end.code or 0)
    return 0


def _meaning(error: MigrateGroupsError) -> str:
    """Return a text to print after an error: what was written to the cluster, and what the applications may do now.

    What the error's own message says is left out. The text is empty if the user has not agreed to a write, and for
    `PartlyApplied`, whose message says what to do.
    """
    if isinstance(error, PartlyApplied):
        return ""
    so_far = written.so_far.get()
    return so_far.removeprefix(written.NOTHING).removeprefix("; ") if "nothing was written" in str(error) else so_far


def _heard(code: int) -> int:
    """Return the exit code, given the ``code`` of the command; report on stderr if stdout was not written completely.

    Incomplete output makes a successful command fail, except after a write to the cluster, because then the outcome of
    the write counts. A closed pipe gets no message, because its reader has closed it on purpose.
    """
    lost = streams.stdout_lost()
    if lost is None:
        return code
    fails = code in (0, EXIT_CHANGES) and not written.so_far.get()
    if not isinstance(lost, BrokenPipeError):
        sys.stderr.write(f"{'error' if fails else 'warning'}: stdout could not be written: {lost.strerror}\n")
    return MigrateGroupsError.exit_code if fails else code


def _stop(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt` for the first SIGTERM or SIGHUP, and ignore further ones.

    `timeout` and a closed shell send the signal twice. The second one must not stop the cleanup: for instance,
    ``migrate --hold`` must still leave the source group that it has joined to keep consumers out.
    """
    _ignore_stops()
    raise KeyboardInterrupt


def _ignore_stops() -> None:
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
