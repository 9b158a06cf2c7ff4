"""The program of the second client's process: answers requests for committed offsets with confluent-kafka.

Each request is a line of JSON on stdin, each answer a line of JSON on stdout. The configuration is in the request, so
that no secret is on a command line.

confluent-kafka runs in a separate process, because librdkafka can crash its process. ``list_consumer_group_offsets``
crashed with SIGSEGV after the coordinator had moved, and with SIGABRT after admin time-outs. ``Consumer.committed``
survived both, and does not join the group (docs/kafka-behaviour.md#confluent-kafka). It reads with ``require_stable``,
because librdkafka's isolation.level is read_committed by default.
"""

from __future__ import annotations

import os
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import confluent_kafka
import msgspec
from confluent_kafka.admin import AdminClient

# librdkafka's time for a request grows with the square of its partitions (docs/kafka-behaviour.md#confluent-kafka).
_MOST_PARTITIONS = 500
# For 200 groups one consumer after the other took 2.8 s, 16 side by side 0.3 s, an admin client 0.1 s
# (docs/kafka-behaviour.md#confluent-kafka).
_MOST_CONSUMERS = 16
# A client with an oauth_cb needs up to this long from its call of oauth_cb until it sleeps (`_with_token`).
_ASLEEP_SECONDS = 0.001


def committed(config: dict[str, Any], groups: dict[str, list[list[Any]]], timeout: float) -> dict[str, Any]:
    """Return, for each group, a list of ``[topic, partition, offset, leader epoch]`` of its committed offsets.

    A group that can't be read has the text of the error in place of the list. Offset and leader epoch are None if the
    group has no committed offset for the partition; the leader epoch is also None if none was committed. Metadata is
    left out, because confluent-kafka may read beyond its buffer (docs/kafka-behaviour.md#confluent-kafka).

    config: the configuration of confluent-kafka. groups: the ``[topic, partition]`` pairs to read, by group. timeout:
    in seconds. Several groups are read with one admin client, which may crash this process. One group, and groups that
    the admin client did not answer for, are read with consumers.
    """
    until = time.monotonic() + timeout
    found = _by_admin(config, groups, timeout) if len(groups) > 1 else {}
    left = {group: partitions for group, partitions in groups.items() if group not in found}
    return found | committed_alone(config, left, until - time.monotonic())


def committed_alone(config: dict[str, Any], groups: dict[str, list[list[Any]]], timeout: float) -> dict[str, Any]:
    """Return the same as `committed`, but read with one consumer for each group, because an admin client may crash.

    The result has, for each group, a list of ``[topic, partition, offset, leader epoch]``. Offset and leader epoch are
    None if the group has no committed offset for the partition. A group that can't be read has the text of the error in
    place of the list. timeout: in seconds.
    """
    until = time.monotonic() + timeout

    def of_group(group: str) -> list[Any] | str:
        try:
            return _by_consumer(config, group, groups[group], max(0.1, until - time.monotonic()))
        except Exception as error:  # noqa: BLE001  the parent decides what an error means
            return str(error)

    with ThreadPoolExecutor(_MOST_CONSUMERS) as consumers:
        return dict(zip(groups, consumers.map(of_group, groups), strict=True))


def _by_admin(config: dict[str, Any], groups: dict[str, list[list[Any]]], timeout: float) -> dict[str, Any]:
    admin = AdminClient(_with_token(config))

    def ask(group: str, part: list[Any]) -> Any:
        wanted = [confluent_kafka.ConsumerGroupTopicPartitions(group, part)]
        return admin.list_consumer_group_offsets(wanted, require_stable=True, request_timeout=timeout)[group]

    asked = {group: [ask(group, part) for part in _parts(partitions)] for group, partitions in groups.items()}
    found = {}
    for group, futures in asked.items():
        with suppress(Exception):
            found[group] = [_committed(each) for future in futures for each in future.result(timeout).topic_partitions]
    return found


def _parts(partitions: list[list[Any]]) -> list[list[Any]]:
    return [
        [confluent_kafka.TopicPartition(*each) for each in partitions[start : start + _MOST_PARTITIONS]]
        for start in range(0, len(partitions), _MOST_PARTITIONS)
    ]


def _by_consumer(config: dict[str, Any], group: str, partitions: list[list[Any]], timeout: float) -> list[Any]:
    said: list[str] = []
    settings = {
        "group.id": group,
        "enable.auto.commit": False,
        # librdkafka waits half of this before it connects to the coordinator; the default costs 40 ms more.
        "reconnect.backoff.ms": 20,
        "error_cb": lambda error: said.append(error.str()),
    }
    consumer = confluent_kafka.Consumer(_with_token(config) | settings)
    try:
        return [
            _committed(answer) for part in _parts(partitions) for answer in consumer.committed(part, timeout=timeout)
        ]
    except confluent_kafka.KafkaException as error:
        consumer.poll(0)  # librdkafka reports why a connection failed only to error_cb
        raise RuntimeError("; ".join([str(error.args[0]), *said[:1]])) from error
    finally:
        consumer.close()


def _committed(answer: Any) -> list[Any]:
    if answer.error is not None:
        raise confluent_kafka.KafkaException(answer.error)
    offset = answer.offset if answer.offset >= 0 else None
    return [answer.topic, answer.partition, offset, answer.leader_epoch if offset is not None else None]


def _with_token(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration for a client of this thread, in which a function returns the token.

    The token is a list: value, expiry, principal, extensions. After the constructor has asked for the token, it sleeps
    a whole second (docs/kafka-behaviour.md#confluent-kafka). A signal ends its sleep.
    """
    if "oauth_cb" not in config:
        return config
    constructing, token = threading.get_ident(), tuple(config["oauth_cb"])
    if token[1] <= time.time():  # librdkafka would refuse it, and the constructor would wait for another one for 10 s
        raise RuntimeError("the token expired before it was used: run the command again")

    def oauth_cb(_: str) -> tuple[Any, ...]:
        time.sleep(_ASLEEP_SECONDS)  # the constructor runs on until it sleeps, and does not say when
        signal.pthread_kill(constructing, signal.SIGUSR1)
        return token

    return config | {"oauth_cb": oauth_cb}


def main() -> None:
    """Answer each request on stdin with a line of JSON on stdout, until stdin is closed.

    A request is the line ``{"verb": name of the function, "arguments": {…}}``. The answer is ``{"answer": result}``, or
    ``{"error": text}`` if the function raises an error.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash of librdkafka must leave no file with secrets in it
    signal.signal(signal.SIGUSR1, lambda *_: None)  # without a handler the signal would end this process
    verbs: dict[str, Callable[..., Any]] = {each.__name__: each for each in (committed, committed_alone)}
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_take, args=(questions,), daemon=True).start()
    while True:
        question = msgspec.json.decode(questions.get())
        try:
            answer = {"answer": verbs[question["verb"]](**question["arguments"])}
        except Exception as error:  # noqa: BLE001  the parent decides what an error means
            answer = {"error": str(error)}
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


def _take(questions: queue.SimpleQueue[bytes]) -> None:
    """Queue the lines of stdin. When stdin is closed, end this process at once.

    The parent may be killed while a request waits for a broker. Then this process must not wait with its secrets in
    memory until the request's time-out.
    """
    for line in sys.stdin.buffer:
        questions.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
