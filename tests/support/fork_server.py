"""The server of `forks`: ``python -m tests.support.fork_server SOCKET`` prints ``ready`` and forks on request.

The server imports the command line's modules first. It has only one thread, because a forked process would wait
forever for a lock that another thread held. A request is a line of JSON together with file descriptors. There are two
answers: the id of the new process at once, and its exit code after its end.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, AnyStr

import migrate_groups
from migrate_groups.kafka import child

# Spark is not imported here, because it is large and few commands need it.
_NOT_IMPORTED = ("migrate_groups.__main__", "migrate_groups.spark", "migrate_groups.demo")
_LOADED_LATE = ("pyarrow.compute", "pyarrow.csv", "pyarrow.parquet", "rich.live", "rich.progress", "kafka.admin")
_MOST_DESCRIPTORS = 32
# Received file descriptors are moved above this number. All others are below it, and are closed.
_ASIDE = 512


def import_all() -> None:
    """Import the modules that commands use, including those that they import lazily."""
    for found in pkgutil.walk_packages(migrate_groups.__path__, "migrate_groups."):
        if not found.name.startswith(_NOT_IMPORTED):
            importlib.import_module(found.name)
    for name in _LOADED_LATE:
        importlib.import_module(name)


class Server:
    """A server that forks a process for each request until its stdin ends."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(address)
        self._listener.listen()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno())
        self._callers: dict[int, socket.socket] = {}

    def serve(self) -> Job | None:
        """Serve requests. In each forked process, return the job to run; in the server, return None at the end."""
        with selectors.DefaultSelector() as ready:
            for each in (sys.stdin, self._woken, self._listener):
                ready.register(each, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    if key.fileobj is sys.stdin:
                        self._end_all()
                        return None
                    if key.fileobj is self._woken:
                        self._tell_of_ends()
                    elif job := self._forked():
                        return job

    def _forked(self) -> Job | None:
        caller, _ = self._listener.accept()
        job = Job.received(caller)
        if job is None:
            caller.close()
            return None
        pid = os.fork()
        if pid:
            job.close()
            self._callers[pid] = caller
            _tell(caller, pid)
            return None
        signal.set_wakeup_fd(-1)
        for each in (caller, self._listener, self._wake, self._woken, *self._callers.values()):
            each.close()
        return job

    def _tell_of_ends(self) -> None:
        self._woken.recv(4096)
        while self._callers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            caller = self._callers.pop(pid)
            _tell(caller, os.waitstatus_to_exitcode(status))
            caller.close()

    def _end_all(self) -> None:
        for pid, caller in self._callers.items():
            os.kill(pid, signal.SIGKILL)
            _tell(caller, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _tell(caller: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # the caller does not wait for the answer
        caller.sendall(b"%d\n" % number)


class Job:
    """A request: a module to run, and the state of its process, such as arguments, folder and environment."""

    def __init__(self, request: dict[str, Any], received: list[int]) -> None:
        self._request, self._received = request, received

    @classmethod
    def received(cls, caller: socket.socket) -> Job | None:
        """Return the job that a caller requests; None: the caller ended before it had sent the whole request."""
        message, received, _, _ = socket.recv_fds(caller, 1 << 16, _MOST_DESCRIPTORS)
        while not message.endswith(b"\n"):
            more = caller.recv(1 << 16)
            if not more:
                return None
            message += more
        return cls(json.loads(message), received)

    def close(self) -> None:
        for each in self._received:
            os.close(each)

    def prepare(self) -> None:
        """Give this forked process the state that a new process for this job would have."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            if callable(signal.getsignal(number)):  # an ignored signal stays ignored
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        if self._request["new_session"]:
            os.setsid()
        self._take_descriptors()
        os.chdir(self._request["folder"])
        os.environ.clear()
        os.environ.update(self._request["environment"])
        time.tzset()
        tempfile.tempdir = None  # so that it is read from the new environment
        sys.argv = ["-m", *self._request["arguments"]]
        sys.path[0] = self._request["folder"]

    def _take_descriptors(self) -> None:
        aside = [fcntl.fcntl(each, fcntl.F_DUPFD, _ASIDE) for each in self._received]
        os.closerange(3, _ASIDE)
        for number, each in zip(self._request["descriptors"], aside, strict=True):
            os.dup2(each, number)
            os.close(each)
        sys.stdin = vars(sys)["__stdin__"] = _stream(0, "rb", sys.stdin)
        sys.stdout = vars(sys)["__stdout__"] = _stream(1, "wb", sys.stdout, by_line=os.isatty(1))
        sys.stderr = vars(sys)["__stderr__"] = _stream(2, "wb", sys.stderr, by_line=True)

    def run(self) -> None:
        """Run the module, as ``python -m`` does."""
        module = self._request["module"]
        sys.modules.pop(module, None)  # runpy warns if the module is already imported
        code: object = None
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code
        _end(code)


def _end(code: object) -> None:
    """End this process as Python does, but without freeing memory, which would copy every shared page (40 ms)."""
    if code is not None and not isinstance(code, int):
        raise SystemExit(code)
    threading._shutdown()  # type: ignore[attr-defined]  # CPython's own
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        raise SystemExit(code) from None  # Python reports the error and chooses the exit code
    os._exit((code or 0) & 0xFF)


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
        request = {
            "module": args[2],
            "arguments": args[3:],
            "environment": dict(os.environ),
            "folder": os.fspath(Path.cwd()),
            "descriptors": [0, 1, 2],
            "new_session": False,
        }
        self.pid = os.fork()
        if not self.pid:
            _run_and_exit(Job(request, [p2cread, c2pwrite, errwrite]))
        self._child_created = True
        pipes = (p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # CPython's own


def _run_and_exit(job: Job) -> None:
    """Run a job in a process that was just forked, and end the process. This never returns."""
    try:
        job.prepare()
        job.run()
    finally:
        os._exit(1)


if __name__ == "__main__":
    import_all()
    assert threading.active_count() == 1
    vars(child)["subprocess"] = SimpleNamespace(Popen=ForkedHere, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL)
    server = Server(sys.argv[1])
    gc.collect()
    gc.freeze()  # otherwise the first collection in each fork copies the pages of all these objects
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if job := server.serve():
        del server
        job.prepare()
        job.run()
