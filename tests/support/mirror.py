"""A simple mirror for tests. It copies partitions from one cluster to another, record by record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, Message, Producer, TopicPartition

Change = Callable[[Message], bytes | None]
"""Returns the value that the copy of a record gets; None: the mirror leaves the record out."""


def records(bootstrap_servers: str, topic: str, partition: int) -> list[Message]:
    """Return all records of a partition, also those of aborted transactions."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "mirror",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
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
        consumer.close()


def write(bootstrap_servers: str, topic: str, partition: int, copied: Sequence[Message], change: Change) -> None:
    """Write copies of records to a partition, in their order, with their keys, headers and timestamps."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5, "log_level": 0})
    for each in copied:
        value = change(each)
        if value is not None:
            producer.produce(
                topic,
                value=value,
                key=each.key(),
                partition=partition,
                timestamp=each.timestamp()[1],
                headers=each.headers(),
            )
    producer.flush()
