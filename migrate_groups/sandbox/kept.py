"""Start Kafka under a supervisor (``supervisor.py``): a child process that kills Kafka when this process ends."""

from __future__ import annotations

import json
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.sandbox import supervisor

_STACK_FRAME = re.compile(r"\s+(at |\.\.\. )")
_ERROR = re.compile(r"\b(ERROR|FATAL)\b|Exception\b|Error\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStarted:
    """The message that Kafka's process was started. Kafka may not answer clients yet.

    folder: the folder of Kafka's data and log. pid: the id of Kafka's process.
    """

    folder: Path
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The message that Kafka has ended, or that its storage could not be formatted.

    exit_code: the exit code of Java; None if it is not known, because Java's parent process was killed. log: the end of
    Kafka's log; may be empty.
    """

    exit_code: int | None
    log: str

    def __str__(self) -> str:
        """Return the exit code of Java, or ``killed``, and the most important lines of Kafka's log, on one line."""
        code = "killed" if self.exit_code is None else f"exit code {self.exit_code}"
        return f"{code}; {end_of_log(self.log)}"


def end_of_log(log: str) -> str:
    """Return text for a message: a log's first three error lines, or its last three lines if it has no error."""
    told = [line.strip() for line in log.splitlines() if line.strip() and not _STACK_FRAME.match(line)]
    errors = [line for line in told if _ERROR.search(line)]
    return f"its log says: {' | '.join(errors[:3] or told[-3:])}" if told else "its log is empty"


class KeptServer:
    """A Kafka process that is run by a child process, the supervisor.

    When this process ends, the supervisor kills Kafka and deletes Kafka's files.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._folder: Path | None = None
        self._server: int | None = None

    @property
    def pid(self) -> int:
        """The process id of the supervisor, the child process that runs Kafka."""
        return self._process.pid

    @property
    def server_pid(self) -> int:
        """The process id of the Kafka that was started last. Raises ``ProcessLookupError`` before the first start."""
        if self._server is None:
            raise ProcessLookupError("the server was not started yet")
        return self._server

    def hear(self, timeout: float | None) -> ServerStarted | Ended | None:
        """Return the next message of the child process that runs Kafka: Kafka was started, or Kafka has ended.

        timeout: in seconds; None: wait without limit. The result is None if no message arrives in time.
        """
        said = self._process.stdout
        if said is None or not select.select([said], [], [], timeout)[0]:
            return None
        facts = json.loads(said.readline() or b'{"exit": null, "log": ""}')
        if "pid" not in facts:
            return Ended(exit_code=facts["exit"], log=facts["log"])
        self._folder, self._server = Path(facts["folder"]), facts["pid"]
        return ServerStarted(folder=self._folder, pid=facts["pid"])

    def serve_again(self) -> None:
        """Start Kafka again, in the same folder, after Kafka has ended.

        The call does not wait. The next `hear` returns whether Kafka was started.
        """
        self._send("\n")

    def _send(self, line: str) -> None:
        if self._process.stdin:
            with suppress(BrokenPipeError):  # the supervisor was killed: the next `hear` returns `Ended`
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()

    def let_go(self) -> None:
        """End Kafka and the child process that runs it; return when both have ended and their folder is deleted."""
        self._process.communicate()
        if self._folder:  # a supervisor that was killed leaves its folder behind
            shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def keep(*, files: Mapping[str, str], prepare: Sequence[str], serve: Sequence[str]) -> Iterator[KeptServer]:
    """Run the command ``prepare``, then the command ``serve``, in a new temporary folder, during a ``with`` block.

    The block begins before ``serve`` is started. When the block ends, the running command is killed and the folder is
    deleted. files: text by file name, written into the folder first. prepare: may be empty.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # otherwise a second message might wait in Python's buffer, which select does not see
        start_new_session=True,
    )
    kept = KeptServer(process)
    try:
        kept._send(json.dumps({"files": dict(files), "prepare": prepare, "serve": serve}) + "\n")
        yield kept
    finally:
        kept.let_go()
