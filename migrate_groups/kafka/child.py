"""Run confluent-kafka in child processes, because librdkafka can crash (docs/kafka-behaviour.md#confluent-kafka)."""

from __future__ import annotations

import logging
import queue
import subprocess
import sys
import threading
from typing import IO, Any

import msgspec

from migrate_groups.kafka.client_config import ClientConfig

GRACE_SECONDS = 5.0
"""How many seconds after a request's time-out the child process counts as hanging."""
_librdkafka = logging.getLogger(f"{__name__}.librdkafka")
# These contexts of librdkafka log connections, logins and requests, but no password, key or token
# (docs/kafka-behaviour.md#confluent-kafka).
_DEBUG = "broker,protocol,security"


def question(verb: str, config: ClientConfig, **arguments: Any) -> bytes:
    """Return the line of JSON that asks a child process to call its function ``verb``.

    The function gets ``arguments``, confluent-kafka's configuration as ``config``, and a time-out in seconds as
    ``timeout``. Raises `ClusterUnavailable` if an OAuth token can't be fetched, or if the login uses Kerberos.
    """
    debug = {"debug": _DEBUG} if _librdkafka.isEnabledFor(logging.DEBUG) else {}
    # Sent on stdin, so that no secret is on a command line.
    given = {"config": config.confluent() | debug, "timeout": config.timeout, **arguments}
    return msgspec.json.encode({"verb": verb, "arguments": given}) + b"\n"


class Child:
    """A child process that runs confluent-kafka. It handles one request at a time.

    program: the module in ``migrate_groups.kafka`` that the process runs. Requests and answers are lines of JSON.
    """

    def __init__(self, program: str) -> None:
        # librdkafka also holds memory and threads after a client is closed.
        command = [sys.executable, "-m", f"migrate_groups.kafka.{program}"]
        logs = _librdkafka.isEnabledFor(logging.DEBUG)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if logs else subprocess.DEVNULL,
            process_group=0,  # otherwise Ctrl-C at a terminal would reach the child, too, and it would log a traceback
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        self._logging = threading.Thread(target=_log, args=(self._process.stderr,), daemon=True)
        if logs:
            self._logging.start()

    def answer(self, question: bytes, timeout: float) -> dict[str, Any] | None:
        """Send a request, which is a line of JSON, to the child process, and return its first answer.

        The answer is ``{"answer": result}`` or ``{"error": text}``. None: the child process has died, or did not answer
        within ``timeout`` seconds. For further answers call `next_answer`.
        """
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101  for mypy: stdin is a pipe
        try:
            stdin.write(question)
            stdin.flush()
        except (OSError, ValueError):  # ValueError: `end`, in another thread, has closed the pipe
            return None
        return self.next_answer(timeout)

    def next_answer(self, timeout: float) -> dict[str, Any] | None:
        """Return the next answer to the last request: ``{"answer": result}`` or ``{"error": text}``.

        None: the child process has died, or did not answer within ``timeout`` seconds.
        """
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            return None
        answer: dict[str, Any] | None = msgspec.json.decode(line) if line.endswith(b"\n") else None
        return answer

    def end(self) -> None:
        """Kill the child process, and wait until it has ended."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # the child is dead, so that unsent bytes do not matter
        if self._logging.ident is not None:
            self._logging.join(1.0)  # so that the end of the log is shown, too

    def _read(self, stdout: IO[bytes]) -> None:
        try:
            for line in stdout:
                self._lines.put(line)
        except ValueError:
            return  # `end` has closed the pipe during the read
        self._lines.put(b"")  # the child has ended


def _log(stderr: IO[bytes]) -> None:
    """Log each line of a child process's stderr, where librdkafka writes its log, until the process ends."""
    with stderr:
        for line in stderr:
            _librdkafka.debug("librdkafka: %s", line.decode(errors="replace").rstrip("\n"))
