"""Run the command line as a user does, without a terminal: in a new process, or faster in this process."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Self
from unittest import mock

import typer

from migrate_groups.cli import registry
from migrate_groups.cli.app import main
from tests.support import forks

_SECONDS = 120


class Process(subprocess.Popen[str]):
    """A command's process with a pipe for each of stdin, stdout and stderr."""

    stdin: IO[str]
    stdout: IO[str]
    stderr: IO[str]


class _Forked(Process, forks.Popen[str]):
    """A command's process, forked from a process that has imported everything. This saves the start of Python."""


class Cli:
    """Runs ``migrate-groups`` in a folder, with ``bootstrap_servers`` in the environment.

    With `cold`, commands start Python anew. Otherwise they run in forks of a process that has imported everything.
    """

    program: tuple[str, ...] = ("-m", "migrate_groups")
    is_cold = False

    def __init__(self, folder: Path, bootstrap_servers: str | None = None) -> None:
        self.folder = folder
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("MIGRATE_GROUPS_")}
        self.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        if bootstrap_servers:
            self.environment["MIGRATE_GROUPS_BOOTSTRAP_SERVER"] = bootstrap_servers

    @property
    def cold(self) -> Self:
        """Return a `Cli` that starts Python anew for each command, for tests of the start and of the imports."""
        other = copy.copy(self)
        other.is_cold = True
        return other

    def start(self, *arguments: object) -> Process:
        """Start a command and return its process."""
        popen = Process if self.is_cold or self.program[0] != "-m" else _Forked
        return popen(
            [sys.executable, *self.program, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(
        self, *arguments: object, stdin: str = "", code: int = 0, seconds: float = _SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, check its exit code, and return the completed process."""
        process = self.start(*arguments)
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR1)  # a fork prints the stack of each thread
            out, err = process.communicate()
        assert process.returncode == code, f"exit {process.returncode}, expected {code}\n{out}\n{err}"
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def fails(self, *arguments: object, code: int, stdin: str = "") -> str:
        """Run a command that must fail with one line ``error: ...`` on stderr and no traceback; return that line."""
        done = self(*arguments, code=code, stdin=stdin)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, done.stderr
        assert "Traceback" not in done.stderr
        return lines[0]

    def killed_at(self, step: int, *arguments: str) -> bool:
        """Run a command that is killed at this step. Return False if the command succeeded before that step.

        There is a step before and after each request that writes, and before and after each save of the receipt.
        """
        process = self.start_killed_at(step, *arguments)
        _, err = process.communicate(timeout=_SECONDS)
        assert process.returncode in (0, -signal.SIGKILL), err
        return process.returncode != 0

    def start_killed_at(self, step: int, *arguments: str) -> Process:
        """Start a command that is killed at this step, and return its process. `killed_at` says what the steps are."""
        killed = copy.copy(self)
        killed.program = ("-m", "tests.support.halted_at", "kill", str(step))
        return killed.start(*arguments)


class CliHere(Cli):
    """Runs ``migrate-groups`` in this process, because a new process takes half a second for each command."""

    def __call__(
        self, *arguments: object, stdin: str = "", code: int = 0, seconds: float = _SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, check its exit code, and return its result; ``seconds`` is ignored."""
        status, said, complained = self.outcome(*arguments, stdin=stdin)
        assert status == code, f"exit {status}, expected {code}\n{said}\n{complained}"
        return subprocess.CompletedProcess(sys.argv, code, said, complained)

    def outcome(self, *arguments: object, stdin: str = "") -> tuple[int, str, str]:
        """Run a command and return its exit code, its stdout and its stderr."""
        with self.as_process():
            return self.outcome_within(*arguments, stdin=stdin)

    @contextlib.contextmanager
    def as_process(self) -> Iterator[None]:
        """Set for a ``with`` block what commands share: the handlers of signals, the environment, and the folder.

        Typer's parsers are made once for each command, because that takes it longer than most commands run.
        """
        with (
            signals_kept(),
            collection_kept(),
            mock.patch.dict(os.environ, self.environment, clear=True),
            mock.patch.object(registry, "command_line", lambda called=(): _command_line(*called)),
            contextlib.chdir(self.folder),
        ):
            yield

    def outcome_within(self, *arguments: object, stdin: str = "") -> tuple[int, str, str]:
        """Do the same as `outcome`, within the block of `as_process`, in any thread."""
        command = ["migrate-groups", *map(str, arguments)]
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        status = 0
        with (
            mock.patch.object(sys, "argv", command),
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin.encode())))),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as exit_:
                status = int(exit_.code or 0)
        said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))
        return status, said, complained


_made_anew = registry.command_line


@cache
def _command_line(*called: str):
    return typer.main.get_command(_made_anew(called))


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Handle signals in a ``with`` block as a new process does, and restore the handlers after it.

    A command replaces the handlers, and so does PySpark, if tests of Spark ran in this process before. A signal that is
    ignored stays ignored.
    """
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number, handler in kept.items():
        if callable(handler):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def collection_kept() -> Iterator[None]:
    """Restore after a ``with`` block how often Python collects garbage.

    A command makes that rare. The tests after it would keep their old DataFrames, and Spark's heap would get full.
    """
    kept = gc.get_threshold()
    try:
        yield
    finally:
        gc.set_threshold(*kept)


@contextlib.contextmanager
def running(cli: Cli, *arguments: object) -> Iterator[Process]:
    """Start a command, and yield its process. At the end of the ``with`` block kill it if it still runs."""
    process = cli.start(*arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@dataclass
class Said:
    """What a command printed from the time at which a test had seen that it waits, to its end."""

    out: str = ""
    err: str = ""


@contextlib.contextmanager
def waiting(cli: Cli, *arguments: object, names: str = "test-app") -> Iterator[Said]:
    """Start a command, and enter the ``with`` block once its first two lines name the member that it waits for.

    After the block the command must succeed. arguments: if none are given, it is `migrate` of ``split.toml``.
    """
    said = Said()
    with running(cli, *(arguments or ("migrate", "split.toml", "--yes", "--wait", "60s"))) as process:
        assert names in "".join(process.stderr.readline() for _ in range(2))
        yield said
        said.out, said.err = process.communicate(timeout=_SECONDS)
    assert process.returncode == 0, said.err
