"""Run the tool's commands with a fault in a folder, and collect their exit codes and ``error:`` lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import forks
from tests.support.halted import Halted, halted

PATIENCE = 150.0
"""Seconds within which each command must end: far longer than the sum of its time-outs."""
_EXITS = (0, 3, 4, 5, -signal.SIGKILL)


@dataclass(slots=True, kw_only=True)
class Tool:
    """Runs ``migrate-groups`` in a folder, whose disk may be full.

    logs: another folder, for the output of the commands. timeout: ``--timeout`` in seconds. also_exits: further exit
    codes that are right. exits, errors: the exit codes of the command with the fault and of its re-run, and their lines
    that say why they failed or were interrupted. problems: wrong exit codes and messages.
    """

    folder: Path
    logs: Path
    bootstrap_servers: str
    timeout: int
    also_exits: tuple[int, ...] = ()
    exits: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def prepare(self, *arguments: object) -> None:
        """Run a command that comes before the command with the fault. It must succeed."""
        code, said = self._run([str(each) for each in arguments])
        assert code == 0, f"{arguments} ended with exit {code}: {said[-2000:]}"

    def again(self, arguments: list[str]) -> int:
        """Run the command again, without a fault, and return its exit code."""
        code, said = self._run([*arguments, *self._limits])
        self._told(code, said)
        return code

    @contextmanager
    def halted(self, step: str, arguments: list[str]) -> Iterator[Halted]:
        """Start the command, which halts at this step; `ended` must be called within the ``with`` block."""
        command = [*arguments, *self._limits]
        with halted(step, command, self.folder, self._environment, said=self.logs / "said.txt") as started:
            yield started

    def ended(self, command: Halted) -> int:
        """Wait for the command's end, check its exit code and its output, and return the exit code."""
        with self._in_time(command.process):
            code = command.process.wait(PATIENCE)
        self._told(code, command.said())
        return code

    @contextmanager
    def _in_time(self, process: subprocess.Popen[Any]) -> Iterator[None]:
        try:
            yield
        except subprocess.TimeoutExpired:
            process.kill()
            self.problems.append(f"the command has not ended after {PATIENCE:g} s")
            raise

    @property
    def _limits(self) -> list[str]:
        return ["--timeout", f"{self.timeout}s"]

    @property
    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MIGRATE_GROUPS_")}
        return kept | {
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "MIGRATE_GROUPS_BOOTSTRAP_SERVER": self.bootstrap_servers,
        }

    def _run(self, arguments: list[str]) -> tuple[int, str]:
        with (
            forks.Popen[str](
                [sys.executable, "-m", "migrate_groups", *arguments],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as process,
            self._in_time(process),
        ):
            said, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, said

    def _told(self, code: int, said: str) -> None:
        self.exits.append(code)
        errors = [line for line in said.splitlines() if line.startswith(("error: ", "interrupted; "))]
        self.errors += errors
        if "Traceback" in said or code not in (*_EXITS, *self.also_exits):
            self.problems.append(f"exit {code}: {said[-2000:]}")
        elif code > 0 and len(errors) != 1:
            self.problems.append(f"exit {code} with {len(errors)} lines of error: {said[-2000:]}")
