"""Consumers, each in a thread, that record what they did in a ledger: members, and consumers without membership."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import confluent_kafka

_RESTART_SECONDS = 1.0
_SECONDS = 30.0


@dataclass
class Ledger:
    """A ledger of what the consumers of a group have done.

    records: the values of the records that they processed. commits: when each of their commits was accepted. first:
    when they processed the first record; None: not yet. Times are those of ``time.monotonic``.
    """

    records: set[str] = field(default_factory=set)
    commits: list[float] = field(default_factory=list)
    first: float | None = None

    def note(self, messages: Sequence[confluent_kafka.Message]) -> None:
        """Record these messages as processed."""
        self.records.update((each.value() or b"").decode() for each in messages)
        if messages and self.first is None:
            self.first = time.monotonic()


class Consumer:
    """A group member that records each message in the ledger, then commits. After an error it starts again.

    While ``going`` is not set, it keeps the records of its last poll without processing them, and does not poll.
    """

    def __init__(self, ledger: Ledger, topics: Sequence[str], config: Mapping[str, object]) -> None:
        self._ledger, self._topics, self._over = ledger, topics, threading.Event()
        self._config = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "log_level": 0, **config}
        self.going = threading.Event()
        self.going.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Commit what was processed, and leave the group."""
        self._over.set()
        self.going.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            consumer = confluent_kafka.Consumer(self._config)
            with suppress(confluent_kafka.KafkaException):  # for instance because the group is held
                self._open(consumer)
                while not self._over.is_set():
                    self._work(consumer)
                self._commit(consumer)
            consumer.close()
            self._over.wait(_RESTART_SECONDS)

    def _open(self, consumer: confluent_kafka.Consumer) -> None:
        consumer.subscribe(list(self._topics))

    def _work(self, consumer: confluent_kafka.Consumer) -> None:
        messages = self._polled(consumer)
        self.going.wait()
        self._ledger.note(messages)
        if messages:
            self._commit(consumer)

    @staticmethod
    def _polled(consumer: confluent_kafka.Consumer) -> list[confluent_kafka.Message]:
        messages = consumer.consume(20, 0.5)
        for each in messages:
            if (error := each.error()) is not None:
                raise confluent_kafka.KafkaException(error)
        return messages

    def _commit(self, consumer: confluent_kafka.Consumer) -> None:
        with suppress(confluent_kafka.KafkaException):  # refused, or nothing was processed
            answers = consumer.commit(asynchronous=False) or []
            if not any(each.error for each in answers):
                self._ledger.commits.append(time.monotonic())


class SimpleConsumer(Consumer):
    """A consumer without membership on both partitions of a topic. It commits after 20 records, then periodically.

    every: the seconds between two commits. producer: if given, the consumer commits in its transactions.
    """

    def __init__(
        self,
        ledger: Ledger,
        topic: str,
        config: Mapping[str, object],
        *,
        every: float,
        producer: confluent_kafka.Producer | None = None,
    ) -> None:
        self._every, self._producer, self._due = every, producer, 0.0
        super().__init__(ledger, [topic], config)

    def _open(self, consumer: confluent_kafka.Consumer) -> None:
        (topic,) = self._topics
        consumer.assign([confluent_kafka.TopicPartition(topic, number) for number in (0, 1)])

    def _work(self, consumer: confluent_kafka.Consumer) -> None:
        self._ledger.note(self._polled(consumer))
        if len(self._ledger.records) > 20 and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._every
            self._commit(consumer)

    def _commit(self, consumer: confluent_kafka.Consumer) -> None:
        if self._producer is None:
            super()._commit(consumer)
            return
        positions = [each for each in consumer.position(consumer.assignment()) if each.offset >= 0]
        self._producer.begin_transaction()
        self._producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _SECONDS)
        self._producer.commit_transaction(_SECONDS)
        self._ledger.commits.append(time.monotonic())
