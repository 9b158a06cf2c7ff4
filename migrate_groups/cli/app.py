"""The entry point of the command line. It turns every failure into one line on stderr and an exit code.

With ``--format json`` a failure is also printed as a JSON document on stdout.
"""

# This module imports nothing slow, because the user may press Ctrl-C while the commands are still being imported.

from __future__ import annotations

import atexit
import gc
import resource
import sys

from migrate_groups.cli import environment, event_log, json_output, streams, written
from migrate_groups.cli.signals import INTERRUPTED, Stops
from migrate_groups.errors import EXIT_CHANGES, MigrateGroupsError, was_interrupted
from migrate_groups.text import brief

# Garbage is collected less often, because collecting it took a fifth of a cut-over of 10,000 partitions
# (docs/kafka-behaviour.md#other-libraries).
_COLLECTED = (1_000_000, 20, 100)


def main() -> None:
    """Run the command that is in ``sys.argv``, and exit with its exit code.

    An error is printed as one line on stderr. Only a bug shows a traceback. SIGTERM and SIGHUP do what Ctrl-C does.
    """
    stops = Stops(_interrupted)
    try:
        stops.heed()
        gc.set_threshold(*_COLLECTED)
        # Otherwise Python searches all objects for garbage once more when it exits.
        atexit.register(gc.freeze)
        streams.open_streams()
        environment.take_properties()
        # A core file would have secrets in it. The hard limit stays, so that the program of --start-command may raise
        # its own limit.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        written.so_far.set("")
        written.run.set(None)
        json_output.awaited.set(False)
        event_log.current.set(None)
        with stops.none_lost():
            code = _after_output(_run())
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        # An interrupt may come out of Python's own code as another error: out of `Condition.wait` or, before 3.12, out
        # of __set_name__, while a class is made during the imports.
        if not was_interrupted(error):
            event_log.failed(f"an unexpected failure: {type(error).__name__}")
            event_log.done(1)
            raise
        code = INTERRUPTED
    finally:
        stops.ignore()
    if code == INTERRUPTED:
        message = _interrupted()
        json_output.print_error("Interrupted", code, message)
        sys.stderr.write(f"{message}\n")
        event_log.failed(message)
    event_log.done(code)
    sys.exit(code)


def _interrupted() -> str:
    return f"interrupted; {written.so_far.get() or written.NOTHING}"


def _run() -> int:
    """Run the command that is in ``sys.argv``, print its error if it fails, and return its exit code."""
    from migrate_groups.cli.registry import command_line

    try:
        command_line(sys.argv[1:2])()
    except MigrateGroupsError as error:
        if was_interrupted(error):
            raise
        message = brief(str(error))
        event_log.failed(message)
        json_output.print_error(json_output.kind_of(error), error.exit_code, message)
        sys.stderr.write(f"error: {message}\n")
        if meaning := written.meaning(error):
            sys.stderr.write(f"exit {error.exit_code}: {meaning}\n")
        if command := written.status_command(error):
            sys.stderr.write(f"see: {command}\n")
        return error.exit_code
    except SystemExit as end:  # because Typer ends every command with it
        return int(end.code or 0)
    return 0


def _after_output(code: int) -> int:
    """Return the exit code of the process: usually ``code``, the exit code of the command.

    If stdout could not be written, a command that succeeded without writing to the cluster gets the code 1, and a
    message is printed on stderr. For a closed pipe, no message is printed.
    """
    lost = streams.stdout_lost()
    if lost is None:
        return code
    fails = code in (0, EXIT_CHANGES) and not written.so_far.get()
    if not isinstance(lost, BrokenPipeError):  # a reader closes its pipe on purpose
        sys.stderr.write(f"{'error' if fails else 'warning'}: stdout could not be written: {lost.strerror}\n")
    return MigrateGroupsError.exit_code if fails else code
