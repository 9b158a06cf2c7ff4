"""The entry point of the command line. It turns every failure into one line on stderr and an exit code.

With ``--format json`` a failure is also printed as a JSON document on stdout.
"""

# This module imports nothing slow, because the user may press Ctrl-C while the commands are still being imported.

from __future__ import annotations

import atexit
import gc
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from migrate_groups.cli import documents, environment, streams, written
from migrate_groups.errors import EXIT_CHANGES, MigrateGroupsError
from migrate_groups.text import brief

# Garbage is collected less often, because collecting it took a fifth of a cut-over of 10,000 partitions
# (docs/kafka-behaviour.md#other-libraries).
_COLLECTED = (1_000_000, 20, 100)
_INTERRUPTED = 130  # Typer also exits with this code on Ctrl-C, without a message
_STOPS = (signal.SIGTERM, signal.SIGHUP)
_UNTIL_PYTHON_CAN_RAISE = 0.05  # seconds


def main() -> None:
    """Run the command that is in ``sys.argv``, and exit with its exit code.

    An error is printed as one line on stderr. Only a bug shows a traceback. SIGTERM and SIGHUP do what Ctrl-C does.
    """
    try:
        for number in _STOPS:
            if signal.getsignal(number) is signal.SIG_DFL:  # SIGHUP must stay ignored if nohup ignores it
                signal.signal(number, _stop)
        gc.set_threshold(*_COLLECTED)
        # Otherwise Python searches all objects for garbage once more when it exits.
        atexit.register(gc.freeze)
        streams.open_streams()
        environment.take_properties()
        # A core file would have secrets in it. The hard limit stays, so that the program of --on-start may raise its
        # own limit.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        written.so_far.set("")
        documents.awaited.set(False)
        with _no_interrupt_lost(), _no_signal_unseen():
            code = _after_output(_run())
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except RuntimeError as error:
        # Before 3.12, Python raises this for an interrupt in __set_name__, while a class is made during the imports.
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        _ignore_stops()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends the process at once
        message = f"interrupted; {written.so_far.get() or written.NOTHING}"
        documents.print_error("Interrupted", code, message)
        sys.stderr.write(f"{message}\n")
    sys.exit(code)


def _run() -> int:
    """Run the command that is in ``sys.argv``, print its error if it fails, and return its exit code."""
    from migrate_groups.cli.registry import command_line

    try:
        command_line(sys.argv[1:2])()
    except MigrateGroupsError as error:
        message = brief(str(error))
        documents.print_error(documents.kind_of(error), error.exit_code, message)
        sys.stderr.write(f"error: {message}\n")
        if meaning := written.meaning(error):
            sys.stderr.write(f"exit {error.exit_code}: {meaning}\n")
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


@contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Interrupt the block again if Python drops a `KeyboardInterrupt`, for instance in a destructor."""
    before = sys.unraisablehook

    def interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            before(dropped)
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, and SIGTERM have come
        main = threading.main_thread().ident
        again = threading.Timer(_UNTIL_PYTHON_CAN_RAISE, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = interrupt_again
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def _no_signal_unseen() -> Iterator[None]:
    """Wake the main thread in the block soon after a signal, so that Python handles the signal.

    Python handles signals between two of its instructions. If a signal comes just before the main thread waits for a
    lock, Python would handle it only after the wait, which may take a minute.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    main = threading.main_thread().ident or 0

    def wake() -> None:
        while number := os.read(reader, 1):
            if number[0] != signal.SIGURG:
                time.sleep(_UNTIL_PYTHON_CAN_RAISE)
                signal.pthread_kill(main, signal.SIGURG)
        os.close(reader)

    before = signal.signal(signal.SIGURG, lambda *_: None)  # a handled signal ends the wait; this one has no other use
    earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=wake, daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(earlier)
        os.close(writer)
        signal.signal(signal.SIGURG, before)


def _stop(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt` for the first SIGTERM or SIGHUP, and ignore further ones."""
    # `timeout` and a closed shell send the signal twice. The second signal must not stop the cleanup: for instance,
    # `migrate --hold` must still leave the source group that it has joined to keep consumers out.
    _ignore_stops()
    raise KeyboardInterrupt


def _ignore_stops() -> None:
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
