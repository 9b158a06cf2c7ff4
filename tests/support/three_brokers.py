"""A cluster of three brokers that can fail, and applications on it that count the records they process."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections import Counter
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
from tests.support.processes import gone

_SECONDS = 60.0
# The old application is slow, so that unprocessed records are left when it stops.
_SECONDS_A_RECORD = 0.2


def persistently(function):
    """Call a function, again and again while the cluster can't answer, and return its result."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((KafkaException, KafkaError, OSError)),
        stop=tenacity.stop_after_delay(_SECONDS),
        wait=tenacity.wait_fixed(0.2),
        reraise=True,
    )(function)


class ThreeBrokers:
    """Sends requests to the cluster. Each request is repeated until it is answered."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.bootstrap_servers = sandbox.bootstrap_servers
        self._hung: set[int] = set()
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

    def new_producer(self) -> Producer:
        return Producer(self._client(acks="all", **{"enable.idempotence": True, "linger.ms": 0}))

    def name(self, what: str) -> str:
        return f"{what}-{self._prefix}-{next(self._numbers)}"

    def create_topic(
        self, what: str, partitions: int = 2, *, only_on: int | Sequence[int] | None = None, **config: str
    ) -> str:
        """Create a topic with a replica on all three brokers, or only on the brokers with these ids."""
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

    def _led(self, topic: str, *, by: Node) -> bool:
        """Return whether the broker ``by`` knows a leader of each of the topic's partitions. Some learn this late."""
        asked = AdminClient(self._client(**{"bootstrap.servers": by.bootstrap_servers}))
        described = asked.list_topics(topic, timeout=_SECONDS).topics[topic]
        return bool(described.partitions) and all(each.leader >= 0 for each in described.partitions.values())

    def delete_topics(self, topics: Collection[str]) -> None:
        for done in self._admin.delete_topics(list(topics)).values():
            done.result(_SECONDS)

    def partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for topic in topics for number in range(self._sizes[topic])]

    def produce(self, values: Mapping[TopicPartition, Collection[str]]) -> None:
        """Send records in order, and do not wait for their acknowledgement. values: by partition."""
        for partition, each in values.items():
            for value in each:
                self.producer.produce(partition.topic, value=value, partition=partition.partition)

    def flush(self) -> None:
        assert self.producer.flush(_SECONDS) == 0

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets without being a member of the group."""
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
                consumer.close()
            for each in found:
                if each.error:
                    raise KafkaException(each.error)
            return {TopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

        return persistently(attempt)

    def coordinator(self, group: str) -> Node:
        """Return the node of a group's coordinator."""

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
        """Bring every broker back, and return once all replicas of all partitions are in sync."""
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
        """Restart the brokers one by one. After each, wait until all replicas are in sync again."""
        for node in self.sandbox.nodes:
            node.stop()
            self.heal()

    def consumer(self, group: str, **settings: object) -> Consumer:
        return Consumer(
            self._client(
                **{"group.id": group, "client.id": "test-app", "enable.auto.commit": False, "session.timeout.ms": 6000},
                **settings,
            )
        )

    def drain(self, group: str, topics: Collection[str], *, reset: str) -> Counter[str]:
        """Consume all records as a target group's application, and return how often it received each value.

        reset: its ``auto.offset.reset``.
        """
        consumer = self.consumer(group, **{"auto.offset.reset": reset})
        consumer.subscribe(list(topics))
        values: Counter[str] = Counter()
        wanted = [confluent_kafka.TopicPartition(*each) for each in self.partitions(topics)]

        def at_end() -> bool:
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    values[message.value().decode()] += 1
            if len(consumer.assignment()) < len(wanted):
                return False
            # The committed offset is used for a partition without a received record, because it has no position yet.
            begun = {(each.topic, each.partition): each.offset for each in consumer.committed(wanted, timeout=10)}
            return all(
                max(each.offset, begun[each.topic, each.partition])
                >= consumer.get_watermark_offsets(each, timeout=10)[1]
                for each in consumer.position(wanted)
            )

        try:
            until(at_end, seconds=_SECONDS)
        finally:
            consumer.close()
        return values


class OldApplication:
    """A member of the source group. When it must stop, it commits all that it has processed, and leaves the group.

    positions: by partition, the offset below which it has processed all records. It ignores records that it gets again
    after a rebalance.
    """

    def __init__(
        self, brokers: ThreeBrokers, group: str, topics: Collection[str], begun: Mapping[TopicPartition, int]
    ) -> None:
        self.positions = dict(begun)
        self._consumer = brokers.consumer(group, **{"auto.offset.reset": "earliest"})
        self._consumer.subscribe(list(topics))
        self._joined = False
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait until the application has committed and left the group. Raises RuntimeError if it failed to."""
        self._stop.set()
        self._thread.join(_SECONDS)
        if self._failure or self._thread.is_alive():
            raise RuntimeError("the old application could not commit") from self._failure

    def joined(self) -> bool:
        """Return whether the application has an assignment."""
        return self._joined

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._process()
            tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(KafkaException),
                stop=tenacity.stop_after_delay(_SECONDS),
                wait=tenacity.wait_fixed(0.2),
                after=lambda _: self._process(),  # takes part in a rebalance meanwhile
                reraise=True,
            )(self._commit)
            self._consumer.close()
        except BaseException as failure:  # noqa: BLE001  raised again by `stop`
            self._failure = failure

    def _process(self) -> None:
        message = self._consumer.poll(0.05)
        if message is not None and message.error() is None:
            partition = TopicPartition(message.topic(), message.partition())
            self.positions[partition] = max(self.positions[partition], message.offset() + 1)
            time.sleep(_SECONDS_A_RECORD)
        self._joined = bool(self._consumer.assignment())

    def _commit(self) -> None:
        offsets = [confluent_kafka.TopicPartition(*each, offset) for each, offset in self.positions.items()]
        for answer in self._consumer.commit(offsets=offsets, asynchronous=False):
            if answer.error:
                raise KafkaException(answer.error)
