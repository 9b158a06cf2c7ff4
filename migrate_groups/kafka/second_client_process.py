"""The program of a child process that reads committed offsets with confluent-kafka."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient

from migrate_groups.kafka.child_program import serve, with_token

# librdkafka's time for a request grows with the square of its partitions (docs/kafka-behaviour.md#confluent-kafka).
_MOST_PARTITIONS = 500
# Reading 200 groups took 2.8 s with one consumer at a time, 0.3 s with 16, and 0.1 s with an admin client
# (docs/kafka-behaviour.md#confluent-kafka).
_MOST_CONSUMERS = 16


# librdkafka can crash its process. `list_consumer_group_offsets` crashed with SIGSEGV after the coordinator had moved,
# and with SIGABRT after admin time-outs. `Consumer.committed` survived both, and does not join the group. It reads with
# `require_stable`, because librdkafka's isolation.level is read_committed by default. Metadata is left out, because
# confluent-kafka may read beyond its buffer (docs/kafka-behaviour.md#confluent-kafka).
# The clients that are connected, by configuration and group; an admin client has the group None. It reads several
# groups, and stays, because a fleet reads groups again and again.
_connected: dict[tuple[str, str | None], Any] = {}


def connect(config: dict[str, Any], groups: dict[str, list[list[Any]]], timeout: float) -> None:
    """Read offsets as `committed` does, and keep the clients, so that the next `committed` need not connect.

    Errors are ignored, because the next `committed` then connects itself.
    """
    if _key(config, None) in _connected:
        return
    if len(groups) > 1 or _connected:
        _by_admin(config, groups, timeout)
        return
    for group, partitions in groups.items():
        consumer, said = _consumer(config, group)
        with suppress(confluent_kafka.KafkaException):
            consumer.committed([confluent_kafka.TopicPartition(*each) for each in partitions], timeout=timeout)
        _connected[_key(config, group)] = consumer, said


def _key(config: dict[str, Any], group: str | None) -> tuple[str, str | None]:
    return json.dumps(config, sort_keys=True), group


def committed(config: dict[str, Any], groups: dict[str, list[list[Any]]], timeout: float) -> dict[str, Any]:
    """Return the committed offsets of each group as a list of ``[topic, partition, offset, leader epoch]``.

    For a group that can't be read, the text of the error replaces the list. Offset or leader epoch is None if none is
    committed. groups: ``[topic, partition]`` pairs by group. timeout: in seconds. With several groups, librdkafka may
    crash this process.
    """
    until = time.monotonic() + timeout
    found = _by_admin(config, groups, timeout) if len(groups) > 1 or _key(config, None) in _connected else {}
    left = {group: partitions for group, partitions in groups.items() if group not in found}
    return found | committed_alone(config, left, until - time.monotonic())


def committed_alone(config: dict[str, Any], groups: dict[str, list[list[Any]]], timeout: float) -> dict[str, Any]:
    """Return the committed offsets of each group, read without librdkafka's admin client, which may crash.

    A group's value is a list of ``[topic, partition, offset, leader epoch]``, or the text of an error. Offset or leader
    epoch is None if none is committed. groups: ``[topic, partition]`` pairs by group. timeout: in seconds.
    """
    until = time.monotonic() + timeout

    def of_group(group: str) -> list[Any] | str:
        try:
            return _by_consumer(config, group, groups[group], max(0.1, until - time.monotonic()))
        except Exception as error:  # noqa: BLE001  the parent decides what an error means
            return str(error)

    with ThreadPoolExecutor(_MOST_CONSUMERS) as consumers:
        return dict(zip(groups, consumers.map(of_group, groups), strict=True))


def cluster_id(config: dict[str, Any], timeout: float) -> str:
    """Return the id of the cluster, from a Metadata response without topics. timeout: in seconds."""
    said: list[str] = []
    admin = AdminClient(with_token(config) | {"error_cb": lambda error: said.append(error.str())})
    try:
        return str(admin.describe_cluster(request_timeout=timeout).result(timeout).cluster_id)
    except Exception as error:
        admin.poll(0)  # librdkafka reports why a connection failed only to error_cb
        raise RuntimeError("; ".join([str(error) or "no answer", *said[:1]])) from error


def _by_admin(config: dict[str, Any], groups: dict[str, list[list[Any]]], timeout: float) -> dict[str, Any]:
    """Return the committed offsets of the groups that librdkafka's admin client could read."""
    key = _key(config, None)
    if key not in _connected:
        _connected.clear()  # those with an earlier token, too
        _connected[key] = AdminClient(with_token(config))
    found = _read_by_admin(_connected[key], groups, timeout)
    if len(found) < len(groups):
        del _connected[key]
    return found


def _read_by_admin(admin: AdminClient, groups: dict[str, list[list[Any]]], timeout: float) -> dict[str, Any]:
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
    consumer, said = _connected.pop(_key(config, group), None) or _consumer(config, group)
    try:
        return [
            _committed(answer) for part in _parts(partitions) for answer in consumer.committed(part, timeout=timeout)
        ]
    except confluent_kafka.KafkaException as error:
        consumer.poll(0)  # librdkafka reports why a connection failed only to error_cb
        raise RuntimeError("; ".join([str(error.args[0]), *said[:1]])) from error
    finally:
        consumer.close()


def _consumer(config: dict[str, Any], group: str) -> tuple[confluent_kafka.Consumer, list[str]]:
    """Return a consumer of the group, which does not join it, and a list that gets why its connections failed."""
    said: list[str] = []
    settings = {
        "group.id": group,
        "enable.auto.commit": False,
        # librdkafka waits for half of this time before it connects to the coordinator. The default takes 40 ms longer.
        "reconnect.backoff.ms": 20,
        "error_cb": lambda error: said.append(error.str()),
    }
    return confluent_kafka.Consumer(with_token(config) | settings), said


def _committed(answer: Any) -> list[Any]:
    if answer.error is not None:
        raise confluent_kafka.KafkaException(answer.error)
    offset = answer.offset if answer.offset >= 0 else None
    return [answer.topic, answer.partition, offset, answer.leader_epoch if offset is not None else None]


if __name__ == "__main__":
    serve(committed, committed_alone, connect, cluster_id)
