"""Applications with real consumers in one group. Their rebalance callbacks record when a partition had no owner."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

import kafka
from kafka.coordinator.assignors.range import RangePartitionAssignor

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import BrokerWorld, until

_POLL = 0.05
_COMMIT = 500
_CONFIG = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}


@dataclass
class Application:
    """An application of two members, each with a thread that polls. Of each topic, each member gets one partition.

    protocol: ``eager``, ``cooperative`` or ``consumer`` (KIP-848). client: ``confluent`` or, if the protocol is eager,
    ``python``. pause: the seconds for which a member processes a record before it commits it; 0: the client commits by
    itself, every 500 ms. heartbeat: milliseconds between heartbeats; not used for KIP-848, where the brokers set them.
    """

    world: BrokerWorld
    name: str
    topics: Sequence[str]
    protocol: str = "eager"
    client: str = "confluent"
    pause: float = 0.0
    heartbeat: int = 3000
    changes: list[tuple[float, int, frozenset[tuple[str, int]]]] = field(default_factory=list)
    """The changes of ownership, in order: the time in seconds since 1970, the member (1 or 2), and its partitions from
    then on."""

    def __post_init__(self) -> None:
        self._over, self._lock, self._threads = Event(), Lock(), list[Thread]()
        self._owned = {1: frozenset[tuple[str, int]](), 2: frozenset[tuple[str, int]]()}

    def start(self, group: str) -> None:
        """Start both members, and wait until each has its partitions."""
        self._over.clear()
        run = self._confluent if self.client == "confluent" else self._python
        self._threads = [Thread(target=run, args=(group, number)) for number in (1, 2)]
        for each in self._threads:
            each.start()
        until(self.is_whole, seconds=90)

    def stop(self) -> None:
        """Stop both members at once."""
        self._over.set()
        for each in self._threads:
            each.join()

    def is_whole(self) -> bool:
        """Return whether each member has one partition of each topic."""
        return all(len(each) == len(self.topics) for each in self._owned.values())

    def without(self) -> float:
        """Return the seconds in which a partition had no owner, from the first full assignment to the last change."""
        wanted, seconds, owned = len(self.topics) * 2, 0.0, {1: frozenset[tuple[str, int]](), 2: frozenset()}
        lacks: float | None = None
        begun = False
        for at, number, now in self.changes:
            owned[number] = now
            whole = len(owned[1] | owned[2]) == wanted
            if whole:
                seconds += at - lacks if begun and lacks is not None else 0.0
                begun, lacks = True, None
            elif lacks is None:
                lacks = at
        return seconds

    def _owns(self, number: int, now: frozenset[tuple[str, int]]) -> None:
        with self._lock:
            self._owned[number] = now
            self.changes.append((time.time(), number, now))

    def _confluent(self, group: str, number: int) -> None:
        config = {**_CONFIG[self.protocol], "client.id": f"{self.name}-{number}", "enable.auto.commit": not self.pause}
        config["auto.commit.interval.ms"] = _COMMIT
        if self.protocol != "consumer":
            config["heartbeat.interval.ms"] = self.heartbeat
        consumer = self.world.consumer(group, **config)

        def on_assign(_: object, partitions: list[Any]) -> None:
            self._owns(number, self._owned[number] | {(each.topic, each.partition) for each in partitions})

        def on_revoke(_: object, partitions: list[Any]) -> None:
            self._owns(number, self._owned[number] - {(each.topic, each.partition) for each in partitions})

        consumer.subscribe(list(self.topics), on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
        while not self._over.is_set():
            message = consumer.poll(_POLL)
            if self.pause and message is not None and not message.error() and not self._over.wait(self.pause):
                consumer.commit(message, asynchronous=False)
        self.world.leave(consumer)
        self._owns(number, frozenset())

    def _python(self, group: str, number: int) -> None:
        application = self

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked) -> None:
                application._owns(number, frozenset())

            def on_partitions_assigned(self, assigned) -> None:
                application._owns(number, frozenset((each.topic, each.partition) for each in assigned))

        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.world.bootstrap_servers,
            group_id=group,
            client_id=f"{self.name}-{number}",
            auto_offset_reset="earliest",
            enable_auto_commit=not self.pause,
            auto_commit_interval_ms=_COMMIT,
            heartbeat_interval_ms=self.heartbeat,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        for topic in self.topics:
            consumer.partitions_for_topic(topic)
        consumer.subscribe(list(self.topics), listener=Listener())
        while not self._over.is_set():
            found = consumer.poll(int(_POLL * 1000))
            if self.pause and found and not self._over.wait(self.pause):
                consumer.commit()
        consumer.close()
        self._owns(number, frozenset())


@contextmanager
def produced(world: BrokerWorld, topics: Sequence[str]) -> Iterator[None]:
    """Append 20 records a second to both partitions of each of these topics, during a ``with`` block."""
    over = Event()

    def produce() -> None:
        while not over.is_set():
            for topic in topics:
                for partition in (0, 1):
                    world.produce(topic, partition, 1)
            over.wait(_POLL)

    producer = Thread(target=produce)
    producer.start()
    try:
        yield
    finally:
        over.set()
        producer.join()


def progress(world: BrokerWorld, group: str, topics: Sequence[str]) -> None:
    """Wait until the group has committed a new offset in both partitions of each of these topics."""
    begun: dict[TopicPartition, int] = {}

    def moved() -> bool:
        now = {partition: at for partition, at in world.committed(group).items() if partition.topic in topics}
        for partition, at in now.items():
            begun.setdefault(partition, at)
        return len(now) == 2 * len(topics) and all(now[each] > begun[each] for each in begun)

    until(moved, seconds=90)
