"""The main loop of a child process in which confluent-kafka runs: it answers requests.

Each request is a line of JSON on stdin, each answer a line of JSON on stdout. The configuration of confluent-kafka is
in the request, so that no secret is on a command line.
"""

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

    functions: the functions that a request can call. A request is the line ``{"verb": name of the function,
    "arguments": {…}}``. The answer is ``{"answer": result}``, or ``{"error": text}`` if the function raises an error.
    If the function returns an iterator, each of its items is an answer.
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
    """Put the lines of stdin into a queue. When stdin is closed, end this process at once.

    stdin is also closed when the parent process is killed. If this process went on until the time-out of its request,
    it would keep secrets in memory.
    """
    for line in sys.stdin.buffer:
        questions.put(line)
    os._exit(0)


def _write(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


def with_token(config: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the configuration in which ``oauth_cb`` is not the OAuth token but a function that returns it.

    The token is a list: value, expiry, principal, extensions. A configuration without a token is returned unchanged.
    A client's constructor sleeps for a second after it has got the token (docs/kafka-behaviour.md#confluent-kafka). So
    the new ``oauth_cb`` wakes the thread that called `with_token`, by a signal: make the client in that thread. Raises
    ``RuntimeError`` if the token has expired.
    """
    if "oauth_cb" not in config:
        return config
    constructing, token = threading.get_ident(), tuple(config["oauth_cb"])
    if token[1] <= time.time():  # librdkafka would refuse it, and the constructor would wait for another one for 10 s
        raise RuntimeError("the token expired before it was used: run the command again")

    def oauth_cb(_: str) -> tuple[Any, ...]:
        time.sleep(_ASLEEP_SECONDS)  # otherwise the signal might come before the constructor sleeps
        signal.pthread_kill(constructing, signal.SIGUSR1)
        return token

    return config | {"oauth_cb": oauth_cb}
