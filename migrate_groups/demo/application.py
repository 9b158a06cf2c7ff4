"""A consumer process of the demo, which appends the id of each processed record to a file, its ledger.

``python -m migrate_groups.demo.application CLIENT BOOTSTRAP GROUP CLIENT_ID LEDGER TOPIC...`` runs until SIGTERM or the
end of its parent process. CLIENT is ``kafka-python`` or ``confluent-kafka``.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_BATCH = 50
_POLL_SECONDS = 0.2
_LOOK_SECONDS = 0.2
_STOP_SECONDS = 60.0


class Stopped:
    """Tells whether this process must stop: after SIGTERM, after Ctrl-C, or once its parent process has ended.

    now: whether the process must stop. A process that still runs 60 s after ``now`` became True is ended.
    """

    def __init__(self) -> None:
        self.now = False
        signals, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        threading.Thread(target=self._wait, args=(signals, os.getppid()), daemon=True).start()

    def _wait(self, signals: int, parent: int) -> None:
        """Wait for a signal or for the end of the parent process. Then set ``now``, and end this process 60 s later.

        signals: a file descriptor that gets a byte for each signal. parent: the parent's process id.
        """
        while not select.select([signals], [], [], _LOOK_SECONDS)[0] and os.getppid() == parent:
            pass
        self.now = True
        # librdkafka waits for ever for brokers that are gone: in C, where Python runs no signal handler.
        time.sleep(_STOP_SECONDS)
        os._exit(1)


class Place(NamedTuple):
    """The brokers (``host:port``), the consumer group and the client id of one consumer."""

    bootstrap: str
    group: str
    client_id: str


def consume_with_confluent(place: Place, topics: list[str], stopped: Stopped) -> Iterator[list[str]]:
    """Consume topics with confluent-kafka, and yield the values of the records of each poll.

    The offsets of a poll are committed when the caller asks for the next values.
    """
    import confluent_kafka

    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": place.bootstrap,
            "group.id": place.group,
            "client.id": place.client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "partition.assignment.strategy": "range",
        }
    )
    # With a callback, librdkafka revokes partitions only within a poll, and never between a record and its commit.
    consumer.subscribe(topics, on_revoke=lambda consumer, partitions: None)
    try:
        # A stop takes effect only between two polls, after the commit, so that each record is processed once.
        while not stopped.now:
            messages = [each for each in consumer.consume(_BATCH, _POLL_SECONDS) if each.error() is None]
            if messages:
                yield [(each.value() or b"").decode() for each in messages]
                consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def consume_with_kafka_python(place: Place, topics: list[str], stopped: Stopped) -> Iterator[list[str]]:
    """Consume topics with kafka-python, and yield the values of the records of each poll.

    The offsets of a poll are committed before its values are yielded.
    """
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class Rejoin(ConsumerRebalanceListener):  # type: ignore[misc]
        """Makes the consumer rejoin after a revocation. Otherwise kafka-python may not complete the rebalance."""

        def on_partitions_revoked(self, revoked: object) -> None:
            # kafka-python 3.0.12 needs this if the consumer is the leader of the group and rejoins because topic
            # metadata changed. If a poll then ends after the leader has computed the assignment and before the broker
            # has answered, the next poll does not continue the rebalance. From then on the consumer sends no
            # heartbeats, and returns records that it refuses to commit.
            consumer._coordinator.request_rejoin()

        def on_partitions_assigned(self, assigned: object) -> None:
            pass

    consumer: Any = KafkaConsumer(
        bootstrap_servers=place.bootstrap,
        group_id=place.group,
        client_id=place.client_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    # The topics' metadata must be known before the consumer joins. Otherwise kafka-python 3.0.12, as the leader of the
    # group, leaves a topic without metadata unassigned, for good (in 9 of 48 starts on a busy machine).
    for topic in topics:
        consumer.partitions_for_topic(topic)
    consumer.subscribe(topics, listener=Rejoin())
    try:
        while not stopped.now:
            found = consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000), max_records=_BATCH)
            ids = [record.value.decode() for records in found.values() for record in records]
            if ids:
                consumer.commit()
                yield ids
    finally:
        consumer.close()


def write_down(ledger: Path, batches: Iterable[list[str]]) -> None:
    """Append each record id to the file ``ledger`` as one line, and flush the file after each batch."""
    with ledger.open("a", encoding="utf-8") as file:
        for ids in batches:
            file.write("".join(f"{each}\n" for each in ids))
            file.flush()


def main() -> None:
    """Consume with the client, group and topics on the command line until the process must stop. Log to stderr."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    client, bootstrap, group, client_id, ledger, *topics = sys.argv[1:]
    consume = {"confluent-kafka": consume_with_confluent, "kafka-python": consume_with_kafka_python}[client]
    write_down(Path(ledger), consume(Place(bootstrap, group, client_id), topics, Stopped()))


if __name__ == "__main__":
    main()
