"""A ``subprocess.Popen`` for Python modules that saves the start of Python and the imports.

The fork server of Python's `multiprocessing` has imported the command line's modules, and forks a process for each
command. The new process has the state of a fresh process, and ends as Python ends (`forked`). Exit codes and signals,
also ``kill -9``, are real. There are two differences: the parent of the process is the server, and the process list
shows the server's command line.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, AnyStr
from unittest import mock

from tests.support.forked import Job

_CHECKOUT = Path(__file__).parents[2]
# Variables with these prefixes are read when Python and the C library start, that is, before the server forks.
_READ_AT_THE_START = ("LANG", "LC_", "PYTHON")
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
# The parameters of subprocess.Popen._execute_child after args.
_PARAMETERS = (
    *("executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo", "creationflags", "shell"),
    *(*_PIPES, "restore_signals", "gid", "gids", "uid", "umask", "start_new_session", "process_group"),
)
# The first variable is for imports, and without the second one an import of pyarrow starts a thread.
_ENVIRONMENT = {"PYTHONPATH": str(_CHECKOUT), "JE_ARROW_MALLOC_CONF": "background_thread:false"}
_server = forkserver.ForkServer()
_server.set_forkserver_preload(["tests.support.fork_server"])
_starting = threading.Lock()


class Popen(subprocess.Popen[AnyStr]):
    """A process of ``python -m MODULE ARGUMENT...``. Takes ``cwd``, ``env``, the streams, ``text`` and ``pass_fds``."""

    def _execute_child(self, args: list[str], *values: Any) -> None:
        given = dict(zip(_PARAMETERS, values, strict=True))
        (python, dash_m, module, *arguments), environment = args, dict(given["env"] or os.environ)
        assert (python, dash_m) == (sys.executable, "-m"), args
        _refuse_another_start(environment)
        ends = (given["p2cread"], given["c2pwrite"], given["errwrite"])
        streams: list[int] = [end if end >= 0 else own for own, end in enumerate(ends)]
        more: list[int] = sorted(given["pass_fds"])
        folder = os.fspath(given["cwd"] or Path.cwd())
        job = Job(module, arguments, environment, folder, [0, 1, 2, *more], given["start_new_session"])
        try:
            self._answers, orders = server().connect_to_new_process([*streams, *more])
            with os.fdopen(orders, "wb") as file:
                pickle.dump({}, file)  # what else Python's own processes are told
                pickle.dump(job, file)
            self.pid = forkserver.read_signed(self._answers)
            self._child_created = True
        finally:
            self._close_pipe_fds(*(given[name] for name in _PIPES))  # type: ignore[attr-defined]  # CPython's own

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            try:
                self.returncode = forkserver.read_signed(self._answers)
            except EOFError:  # the server has ended, and its forks with it
                self.returncode = -signal.SIGKILL
            os.close(self._answers)
        return self.returncode


def _refuse_another_start(environment: dict[str, str]) -> None:
    for name in environment.keys() | os.environ.keys():
        if name.startswith(_READ_AT_THE_START) and name != "PYTHONPATH":  # the server imports from the checkout
            assert environment.get(name) == os.environ.get(name), f"{name} takes a cold start: Python reads it first"


def server() -> forkserver.ForkServer:
    """Return this process's server, which is started first if necessary. It ends, with its forks, with this process."""
    with _starting, mock.patch.dict(os.environ, _ENVIRONMENT):
        _server.ensure_running()
    return _server


def end_server() -> None:
    """End this process's server, if it is running, and all processes that it has forked."""
    _server._stop()  # type: ignore[attr-defined]  # CPython's own
