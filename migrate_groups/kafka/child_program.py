"""The main loop of a child process that runs confluent-kafka: answer requests from stdin on stdout."""

from __future__ import annotations

import os
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

# The constructor of a client sleeps at most this many seconds after it has called oauth_cb (`with_token`).
_ASLEEP_SECONDS = 0.001


def serve(*functions: Callable[..., Any]) -> None:
    """Answer each request on stdin with a line of JSON on stdout, until stdin is closed.

    functions: the functions that a request can call. A request is ``{"verb": name of the function, "arguments": {…}}``.
    An answer is ``{"answer": result}`` or ``{"error": text}``. If a function returns an iterator, each item is an
    answer.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash of librdkafka must leave no file with secrets in it
    signal.signal(signal.SIGUSR1, lambda *_: None)  # without a handler the signal would end this process
    verbs = {each.__name__: each for each in functions}
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_take, args=(questions,), daemon=True).start()
    while True:
        question = msgspec.json.decode(questions.get())
        try:
            result = verbs[question["verb"]](**question["arguments"])
            for each in result if isinstance(result, Iterator) else (result,):
                _write({"answer": each})
        except Exception as error:  # noqa: BLE001  the parent decides what an error means
            _write({"error": str(error)})


def _take(questions: queue.SimpleQueue[bytes]) -> None:
    """Put the lines of stdin into a queue; when stdin is closed, end this process at once."""
    for line in sys.stdin.buffer:
        questions.put(line)
    # stdin is also closed when the parent process is killed. Otherwise this process would keep secrets until the
    # time-out.
    os._exit(0)


def _write(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


def with_token(config: dict[str, Any]) -> dict[str, Any]:
    """Return confluent-kafka's configuration with ``oauth_cb`` as a function that returns the OAuth token.

    In ``config``, ``oauth_cb`` is the token: a list of value, expiry, principal, extensions. Without a token,
    ``config`` is returned unchanged. The client must be made in the thread that called this function. Raises
    ``RuntimeError`` if the token has expired.
    """
    if "oauth_cb" not in config:
        return config
    constructing, token = threading.get_ident(), tuple(config["oauth_cb"])
    if token[1] <= time.time():  # librdkafka would refuse it, and the constructor would wait for another one for 10 s
        raise RuntimeError("the token expired before it was used: run the command again")

    # A client's constructor sleeps for a second after it has got the token (docs/kafka-behaviour.md#confluent-kafka).
    # The signal wakes it.
    def oauth_cb(_: str) -> tuple[Any, ...]:
        time.sleep(_ASLEEP_SECONDS)  # otherwise the signal might come before the constructor sleeps
        signal.pthread_kill(constructing, signal.SIGUSR1)
        return token

    return config | {"oauth_cb": oauth_cb}
