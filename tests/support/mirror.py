"""A simple mirror for tests. It copies partitions from one cluster to another, record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.support.closed_consumers import close_consumer

Change = Callable[[Message], dict[str, Any] | None]
"""A function that returns the arguments of `Producer.produce` for the copy of a record; None: no copy is made."""


def unchanged(message: Message) -> dict[str, Any]:
    """Return the arguments of `Producer.produce` for an unchanged copy of a record."""
    return {
        "partition": message.partition(),
        "timestamp": message.timestamp()[1],
        "key": message.key(),
        "value": message.value(),
        "headers": message.headers(),
    }


def records(bootstrap_servers: str, topic: str, partition: int) -> list[Message]:
    """Return all records of a partition, also those of aborted transactions."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "mirror",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_uncommitted",
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Message] = []
        while (message := consumer.poll(30)) is not None and not message.error():
            found.append(message)
        assert message is not None, f"the end of {topic}-{partition} was not reached"
        return found
    finally:
        close_consumer(consumer)


def write(
    bootstrap_servers: str, topic: str, copied: Iterable[Message], change: Change = unchanged, codec: str = "none"
) -> None:
    """Write copies of records to a topic, in order.

    change: makes the copy of a record. codec: the compression of the batches.
    """
    produce(bootstrap_servers, topic, (made for each in copied if (made := change(each)) is not None), codec)


def produce(
    bootstrap_servers: str, topic: str, made: Iterable[dict[str, Any]], codec: str = "none", batch: int = 10_000
) -> None:
    """Write records to a topic, in order.

    made: the arguments of `Producer.produce` for each record. codec: the compression of the batches. batch: the largest
    number of records in a batch.
    """
    settings = {"bootstrap.servers": bootstrap_servers, "compression.type": codec, "batch.num.messages": batch}
    producer = Producer(settings | {"enable.idempotence": True, "linger.ms": 5, "log_level": 0})
    for each in made:
        producer.produce(topic, **each)
    assert producer.flush(30) == 0
