"""Run the command line as a user does: in a process of its own, without a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_SECONDS = 120


class Cli:
    """``migrate-groups`` in a folder; ``bootstrap_servers`` is handed over in the environment."""

    def __init__(self, folder: Path, bootstrap_servers: str | None = None) -> None:
        self.folder = folder
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("MIGRATE_GROUPS_")}
        self.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        if bootstrap_servers:
            self.environment["MIGRATE_GROUPS_BOOTSTRAP_SERVER"] = bootstrap_servers

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start a command and return its process."""
        return subprocess.Popen(
            [sys.executable, "-m", "migrate_groups", *map(str, arguments)],
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
        """Run a command to its end, and check its exit code."""
        process = self.start(*arguments)
        out, err = process.communicate(stdin, timeout=seconds)
        assert process.returncode == code, f"exit {process.returncode}, expected {code}\n{out}\n{err}"
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def fails(self, *arguments: object, code: int, stdin: str = "") -> str:
        """Run a command that must fail: one line on stderr begins with ``error:``, and there is no traceback."""
        done = self(*arguments, code=code, stdin=stdin)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, done.stderr
        assert "Traceback" not in done.stderr
        return lines[0]

    def killed_at(self, step: int, *arguments: str) -> bool:
        """Run a command that is killed at a step; return whether it came to that step. It must succeed otherwise."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.killed_at", str(step), *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode != 0
