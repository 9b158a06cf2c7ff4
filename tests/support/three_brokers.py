"""A cluster of three brokers that can fail, and requests to it that are repeated until they are answered."""

from __future__ import annotations

import itertools
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import partial

import confluent_kafka
import tenacity
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import Sandbox
from migrate_groups.sandbox.node import Node
from tests.support.broker_world import until
from tests.support.closed_consumers import close_consumer
from tests.support.processes import gone
from tests.support.proxy import LISTENER, Proxies, put_before

LISTENERS = {LISTENER: "PLAINTEXT"}
SETTINGS = {
    f"group.consumer.{name}": milliseconds
    for name, milliseconds in (
        ("min.heartbeat.interval.ms", "300"),
        ("heartbeat.interval.ms", "300"),
        ("min.session.timeout.ms", "6000"),
        ("session.timeout.ms", "6000"),
    )
}
"""The listener behind proxies, and short time-outs of KIP-848 groups: pass both to `start_sandbox`."""
_SECONDS = 60.0


def persistently(function):
    """Return a function's result. Call the function again while the cluster can't answer."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((KafkaException, KafkaError, OSError)),
        stop=tenacity.stop_after_delay(_SECONDS),
        wait=tenacity.wait_fixed(0.2),
        reraise=True,
    )(function)


class ThreeBrokers:
    """A cluster of three brokers, with requests that are repeated until they are answered."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.bootstrap_servers = sandbox.bootstrap_servers
        self._hung: set[int] = set()
        self._proxies: Proxies | None = None
        self._sizes: dict[str, int] = {}
        self._prefix = uuid.uuid4().hex[:6]
        self._numbers = itertools.count()
        self._admin = AdminClient(self._client())
        # One producer for the cluster's lifetime.
        self.producer = self.new_producer()

    def _client(self, **settings: object) -> dict[str, object]:
        # Failed connections are expected here, and librdkafka would log each of them.
        usual = {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "reconnect.backoff.max.ms": 500}
        return usual | settings

    def new_producer(self, **settings: object) -> Producer:
        return Producer(self._client(acks="all", **{"enable.idempotence": True, "linger.ms": 0}, **settings))

    def name(self, what: str) -> str:
        return f"{what}-{self._prefix}-{next(self._numbers)}"

    def create_topic(
        self, what: str, partitions: int = 2, *, only_on: int | Sequence[int] | None = None, **config: str
    ) -> str:
        """Create a topic with a replica on each broker, or only on the brokers with these ids. Return its name."""
        topic = self.name(what)
        ids = only_on or [node.node_id for node in self.sandbox.nodes]
        brokers = [ids] if isinstance(ids, int) else [*ids]
        assignment = [[*brokers[i % 3 :], *brokers[: i % 3]] for i in range(partitions)]
        config = {"min.insync.replicas": str(max(1, len(brokers) - 1)), **config}
        new = NewTopic(topic, partitions, replica_assignment=assignment, config=config)
        persistently(lambda: self._admin.create_topics([new])[topic].result(_SECONDS))
        until(lambda: all(self._led(topic, by=node) for node in self.sandbox.nodes), seconds=_SECONDS)
        self._sizes[topic] = partitions
        return topic

    def leader(self, partition: TopicPartition) -> int:
        """Return the id of the broker that leads a partition, or -1 if there is no leader."""
        described = persistently(lambda: self._admin.list_topics(partition.topic, timeout=_SECONDS))
        leader: int = described.topics[partition.topic].partitions[partition.partition].leader
        return leader

    def replicas(self, partition: TopicPartition) -> list[int]:
        """Return the ids of the brokers that have a replica of a partition."""
        described = persistently(lambda: self._admin.list_topics(partition.topic, timeout=_SECONDS))
        return [*described.topics[partition.topic].partitions[partition.partition].replicas]

    def _led(self, topic: str, *, by: Node) -> bool:
        """Return whether the broker ``by`` names a leader for each partition; a broker may learn of a topic late."""
        asked = AdminClient(self._client(**{"bootstrap.servers": by.bootstrap_servers}))
        described = asked.list_topics(topic, timeout=_SECONDS).topics[topic]
        return bool(described.partitions) and all(each.leader >= 0 for each in described.partitions.values())

    def delete_topics(self, topics: Collection[str]) -> None:
        for done in self._admin.delete_topics(list(topics)).values():
            done.result(_SECONDS)

    def partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for topic in topics for number in range(self._sizes[topic])]

    def produce(self, values: Mapping[TopicPartition, Collection[str]]) -> None:
        """Send records in order, without waiting for their acknowledgement."""
        for partition, each in values.items():
            for value in each:
                self.producer.produce(partition.topic, value=value, partition=partition.partition)

    def flush(self) -> None:
        assert self.producer.flush(_SECONDS) == 0

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets as a consumer without membership does."""
        wanted = {KafkaTopicPartition(*each): OffsetAndMetadata(offset, "", -1) for each, offset in offsets.items()}

        def attempt() -> None:
            with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)) as admin:
                for error in admin.alter_group_offsets(group, wanted).values():
                    if error.errno:
                        raise error

        persistently(attempt)

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return a group's committed offsets, read by confluent-kafka."""

        def attempt() -> dict[TopicPartition, int]:
            consumer = Consumer(self._client(**{"group.id": group, "enable.auto.commit": False}))
            try:
                found = consumer.committed([confluent_kafka.TopicPartition(*each) for each in partitions], timeout=5)
            finally:
                close_consumer(consumer)
            for each in found:
                if each.error:
                    raise KafkaException(each.error)
            return {TopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

        return persistently(attempt)

    def coordinator(self, group: str) -> Node:
        """Return the broker that is the group's coordinator."""

        def attempt() -> int:
            with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)) as admin:
                return admin._manager.run(partial(admin._find_coordinator_id, group))

        return self.sandbox.nodes[persistently(attempt) - 1]

    def hang(self, *nodes: Node) -> None:
        for node in nodes:
            self._hung.add(node.node_id)
            node.hang()

    def go_on(self, *nodes: Node) -> None:
        for node in nodes:
            self._hung.discard(node.node_id)
            node.go_on()

    def heal(self) -> None:
        """Resume or start each broker that does not run, and return once all replicas are in sync."""
        self.go_on(*(node for node in self.sandbox.nodes if node.node_id in self._hung))
        ended = [node for node in self.sandbox.nodes if gone(node.pid)]
        for node in ended:
            node.start()
        for node in self.sandbox.nodes:
            node.await_answer()
        until(self._is_whole, seconds=_SECONDS)

    def _is_whole(self) -> bool:
        try:
            cluster = self._admin.list_topics(timeout=5)
        except KafkaException:
            return False
        return len(cluster.brokers) == len(self.sandbox.nodes) and all(
            partition.leader >= 0 and len(partition.isrs) == len(partition.replicas)
            for topic in cluster.topics.values()
            for partition in topic.partitions.values()
        )

    def roll(self) -> None:
        """Restart the brokers one by one. After each restart wait until all replicas are in sync."""
        for node in self.sandbox.nodes:
            node.stop()
            self.heal()

    def proxies(self) -> Proxies:
        """Return the proxies in front of all brokers. The first call starts them, and restarts the brokers."""
        if self._proxies is None:
            self._proxies = put_before(self.sandbox)
            self.heal()
        return self._proxies

    def consumer(self, group: str, *, protocol: str = "classic", **settings: object) -> Consumer:
        """Return a consumer. protocol: ``classic``, or ``consumer`` (KIP-848)."""
        of_protocol = {"session.timeout.ms": 6000} if protocol == "classic" else {"group.protocol": protocol}
        usual = {"group.id": group, "client.id": "test-app", "enable.auto.commit": False}
        return Consumer(self._client(**usual, **of_protocol, **settings))

    def drain(self, group: str, topics: Collection[str], *, reset: str, protocol: str = "classic") -> Counter[str]:
        """Let a consumer of a group read to the log ends, and return how many records it received with each value.

        A record that it receives again counts once: on a busy machine it may lose its membership, and it never commits.
        """
        consumer = self.consumer(group, protocol=protocol, **{"auto.offset.reset": reset})
        consumer.subscribe(list(topics))
        received: dict[TopicPartition, dict[int, str]] = defaultdict(dict)
        wanted = [confluent_kafka.TopicPartition(*each) for each in self.partitions(topics)]

        def at_end() -> bool:
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    partition = TopicPartition(message.topic(), message.partition())
                    received[partition][message.offset()] = message.value().decode()
            if len(consumer.assignment()) < len(wanted):
                return False
            # A partition without any received record has no position yet: its committed offset is used.
            begun = {(each.topic, each.partition): each.offset for each in consumer.committed(wanted, timeout=10)}
            return all(
                max(each.offset, begun[each.topic, each.partition])
                >= consumer.get_watermark_offsets(each, timeout=10)[1]
                for each in consumer.position(wanted)
            )

        try:
            until(at_end, seconds=_SECONDS)
        finally:
            close_consumer(consumer)
        return Counter(value for of_partition in received.values() for value in of_partition.values())

    def committed_records(self, topic: str) -> Counter[str]:
        """Return how often each value is in partition 0 of a topic, without those of aborted transactions."""
        consumer = self.consumer(self.name("reader"), **{"enable.partition.eof": "true"})
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        values: Counter[str] = Counter()

        def at_end() -> bool:
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    values[message.value().decode()] += 1
                elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    return True
            return False

        try:
            until(at_end, seconds=_SECONDS)
        finally:
            close_consumer(consumer)
        return values
