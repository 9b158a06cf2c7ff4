"""A producer of numbered records, and an application that writes the number of each processed record to a ledger."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

import confluent_kafka

from tests.support.broker_world import until
from tests.support.closed_consumers import close_consumer

_SECONDS = 120.0


class Producing:
    """Produces records until it is stopped. The value of a record is its number.

    Record n is in partition n modulo ``partitions``. So the record at offset o of partition p has the number
    ``o * partitions + p``.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        settings = {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        self._producer = confluent_kafka.Producer(settings)
        self._topic, self._partitions = topic, partitions
        self._stop = threading.Event()
        self.produced = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            for _ in range(5):
                self._producer.produce(
                    self._topic, value=f"{self.produced}", partition=self.produced % self._partitions
                )
                self.produced += 1
            self._producer.poll(0)

    def flush(self) -> int:
        """Wait until all records so far are acknowledged, and return their number."""
        produced = self.produced
        until(lambda: self._producer.flush(0.1) == 0 or not self._thread.is_alive(), seconds=_SECONDS)
        return produced

    def stop(self) -> int:
        """Stop producing, wait until all records are acknowledged, and return their number."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(_SECONDS) == 0
        return self.produced


class Application:
    """A consumer that writes each record's number to a ledger, and then commits. It survives a broker's restart."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str) -> None:
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "log_level": 0,
        }
        self._consumer = confluent_kafka.Consumer(settings)
        self._consumer.subscribe([topic])
        self.ledger: Counter[int] = Counter()
        self._next: dict[int, int] = {}
        self._committed: Mapping[int, int] = {}

    def process(self) -> None:
        """Process a few records, and commit their offsets. If the commit fails, the next call repeats it."""
        for message in self._consumer.consume(500, 0.1):
            assert not message.error(), message.error()
            self.ledger[int(message.value())] += 1
            self._next[message.partition()] = message.offset() + 1
        try:
            positions = [each for each in self._consumer.position(self._consumer.assignment()) if each.offset >= 0]
            if positions:
                done = self._consumer.commit(offsets=positions, asynchronous=False)
                self._committed = {each.partition: each.offset for each in done if not each.error}
        except confluent_kafka.KafkaException:  # the broker is down, or the group has rebalanced
            self._committed = {}

    def stop(self) -> None:
        """Commit the offsets of all processed records, and leave the group."""
        until(self._commits_all, seconds=_SECONDS)
        close_consumer(self._consumer)

    def abandon(self) -> None:
        """Close the consumer without a commit."""
        close_consumer(self._consumer)

    def _commits_all(self) -> bool:
        self.process()
        return all(self._committed.get(partition, -1) >= offset for partition, offset in self._next.items())
