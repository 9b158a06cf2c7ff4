"""A ``subprocess.Popen`` for Python modules that saves the start of Python and the imports.

A server (`fork_server`) that has imported the command line's modules forks a process for each command. The new process
has the state of a fresh process, and ends as Python ends. Exit codes and signals, also ``kill -9``, are real. There are
two differences: the parent of the process is the server, and the process list shows the server's command line.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, AnyStr

_CHECKOUT = Path(__file__).parents[2]
# Variables with these prefixes are read when Python and the C library start, that is, before the server forks.
_READ_AT_THE_START = ("LANG", "LC_", "PYTHON")
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
# The parameters of subprocess.Popen._execute_child after args.
_PARAMETERS = (
    *("executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo", "creationflags", "shell"),
    *(*_PIPES, "restore_signals", "gid", "gids", "uid", "umask", "start_new_session", "process_group"),
)


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
        request = {
            "module": module,
            "arguments": arguments,
            "environment": environment,
            "folder": os.fspath(given["cwd"] or Path.cwd()),
            "descriptors": [0, 1, 2, *more],
            "new_session": given["start_new_session"],
        }
        try:
            self._answers = _ask(request, [*streams, *more])
            self.pid = _answer(self._answers)
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
            self.returncode = _answer(self._answers)
            self._answers.close()
        return self.returncode


def _refuse_another_start(environment: dict[str, str]) -> None:
    for name in environment.keys() | os.environ.keys():
        if name.startswith(_READ_AT_THE_START) and name != "PYTHONPATH":  # the server imports from the checkout
            assert environment.get(name) == os.environ.get(name), f"{name} takes a cold start: Python reads it first"


class _Server:
    """The server's process. It ends, with all forked processes, when its stdin is closed or this process ends."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="forks-")
        self.address = f"{self._folder.name}/socket"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", self.address],
            cwd=_CHECKOUT,
            env=os.environ | {"JE_ARROW_MALLOC_CONF": "background_thread:false"},  # otherwise importing starts a thread
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "the fork server has not started"

    def close(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


_servers: list[_Server] = []
_starting = threading.Lock()


def address() -> str:
    """Return the address (a Unix socket) of this process's server, which is started first if necessary."""
    with _starting:
        if not _servers:
            _servers.append(_Server())
    return _servers[0].address


def end_server() -> None:
    """End this process's server, if it is running."""
    while _servers:
        _servers.pop().close()


def _ask(request: dict[str, Any], descriptors: list[int]) -> socket.socket:
    """Send a request, and return the connection for the answers: the process id, then the exit code."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(address())
        message = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [message], descriptors)
        if sent < len(message):  # otherwise EPIPE if a quick process has already ended the connection
            connection.sendall(message[sent:])
    except BaseException:
        connection.close()
        raise
    return connection


def _answer(connection: socket.socket) -> int:
    line = b""
    while not line.endswith(b"\n"):
        received = connection.recv(1)
        assert received, "the fork server has ended"
        line += received
    return int(line)
