"""What a process of `forks` does after the fork: it takes the state of a new process, runs a module, and ends.

Python's fork server imports this module before it forks, and with it all that commands use.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import fcntl
import gc
import importlib
import io
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Any, AnyStr

import migrate_groups
from migrate_groups.kafka import child

# Spark is not imported here, because it is large and few commands need it.
_NOT_IMPORTED = ("migrate_groups.__main__", "migrate_groups.spark", "migrate_groups.demo")
_LOADED_LATE = ("pyarrow.compute", "pyarrow.csv", "pyarrow.parquet", "rich.live", "rich.progress", "kafka.admin")
# Received file descriptors are moved above this number. All others are below it, and are closed.
_ASIDE = 512
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


@dataclass
class Job:
    """A module to run, and the state of its process. descriptors: the numbers that the received ones get."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    descriptors: list[int]
    new_session: bool = False

    def _bootstrap(self, _: int) -> int:
        """Run the module. Python's fork server calls this in the forked process, and ends it with the result."""
        return self.run(forkserver.get_inherited_fds() or [])

    def run(self, received: list[int]) -> int:
        """Run the module as ``python -m`` does, in a process that was just forked. Return the exit code."""
        self._prepare(received)
        sys.modules.pop(self.module, None)  # runpy warns if the module is already imported
        code: object = None
        try:
            runpy.run_module(self.module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code
        except BaseException as error:  # noqa: BLE001  Python ends a process on any error
            sys.excepthook(*sys.exc_info())
            code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
        return _ended(code)

    def _prepare(self, received: list[int]) -> None:
        """Give this process the state that a new process for this job would have."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            if callable(signal.getsignal(number)):  # an ignored signal stays ignored
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        if self.new_session:
            os.setsid()
        self._take(received)
        faulthandler.register(signal.SIGUSR1, 2, chain=True)  # prints the stack of each thread, and ends the process
        _leave_no_lock_to_a_signal()
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        time.tzset()
        tempfile.tempdir = None  # so that it is read from the new environment
        sys.argv = ["-m", *self.arguments]
        sys.path[0] = self.folder

    def _take(self, received: list[int]) -> None:
        aside = [fcntl.fcntl(each, fcntl.F_DUPFD, _ASIDE) for each in received]
        os.closerange(3, _ASIDE)
        for number, each in zip(self.descriptors, aside, strict=True):
            os.dup2(each, number)
            os.close(each)
        # stdin has the encoding of stdout, because the fork server has replaced its own.
        sys.stdin = vars(sys)["__stdin__"] = _stream(0, "rb", sys.stdout)
        sys.stdout = vars(sys)["__stdout__"] = _stream(1, "wb", sys.stdout, by_line=os.isatty(1))
        sys.stderr = vars(sys)["__stderr__"] = _stream(2, "wb", sys.stderr, by_line=True)


def _leave_no_lock_to_a_signal() -> None:
    """Make coverage, if it measures this process, take no lock while it counts a line.

    Otherwise a signal that interrupts the process between the taking and the release leaves the lock taken, and every
    thread waits for it forever. That happened once in some 200 commands that a signal interrupted. With Python's global
    lock, the counts are right without it.
    """
    coverage = sys.modules.get("coverage")
    measured = coverage and coverage.Coverage.current()
    if measured:
        assert measured._collector.data_lock is not None, "coverage has no such lock any more: delete this function"
        measured._collector.data_lock = None


def _ended(code: object) -> int:
    """Do what Python does at the end of a process, but free no memory, which would copy every shared page (40 ms).

    Returns the exit code. If Python would end by a signal, this function does not return.
    """
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # CPython's own
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if not stream.closed:
                stream.flush()
        except OSError as error:
            sys.stderr.write(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}\n")
            code = 120  # Python's, for a stream that can't be flushed
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return (code or 0) & 0xFF


def _stream(number: int, mode: str, like: Any, *, by_line: bool = False) -> io.TextIOWrapper:
    """Return a standard stream as Python opens it. With ``PYTHONUNBUFFERED``, stdout and stderr have no buffer."""
    at_once = like.write_through
    binary = open(number, mode, 0 if at_once and number else -1, closefd=False)  # noqa: SIM115  open until the end
    return io.TextIOWrapper(binary, like.encoding, like.errors, None, by_line and not at_once, at_once)


class ForkedHere(subprocess.Popen[AnyStr]):
    """The second client's process: a fork of this process, unless this process has several threads."""

    def _execute_child(self, args: list[str], *values: Any) -> None:
        if threading.active_count() > 1:
            super()._execute_child(args, *values)  # type: ignore[misc]  # CPython's own
            return
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = values[9:15]
        job = Job(args[2], args[3:], dict(os.environ), os.fspath(Path.cwd()), [0, 1, 2])
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                code = job.run([p2cread, c2pwrite, errwrite])
            finally:
                os._exit(code)
        self._child_created = True
        pipes = (p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # CPython's own


def load() -> None:
    """Prepare the fork server: import what commands use, and let their second client be a fork, too."""
    for found in pkgutil.walk_packages(migrate_groups.__path__, "migrate_groups."):
        if not found.name.startswith(_NOT_IMPORTED):
            importlib.import_module(found.name)
    for name in _LOADED_LATE:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork would wait forever for a lock that another thread holds"
    vars(child)["subprocess"] = SimpleNamespace(Popen=ForkedHere, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL)
    gc.collect()
    gc.freeze()  # otherwise the first collection in each fork copies the pages of all these objects
