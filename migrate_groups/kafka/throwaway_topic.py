"""A topic that `doctor --write` makes and deletes, its records, and a consumer of them (kafka-python)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing

import kafka.errors as kafka_errors
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.protocol.admin import CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record import MemoryRecordsBuilder

from migrate_groups.kafka import wire as wire
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection, explain
from migrate_groups.kafka.private import Client, net_client
from migrate_groups.model.permissions import Resource, ResourceType

_POLL_SECONDS = 0.5
_LEAVE_SECONDS = 5.0  # how long an interrupted consumer may take to leave its group
_BATCH_BYTES = 64 * 1024
_ALL_REPLICAS = -1


class ThrowawayTopic:
    """A topic with one partition. Every method raises `ClusterUnavailable` or `NotAuthorized` if it fails.

    The methods must not be called concurrently. Close it after use; this does not delete the topic.
    """

    def __init__(self, config: ClientConfig, name: str) -> None:
        self.name = name
        self._config = config
        self._connection = KafkaConnection(config)
        self._resource = Resource(ResourceType.TOPIC, name)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def create(self) -> None:
        """Create the topic, with the replication factor of the brokers' default; wait until it has a leader."""

        async def create(client: Client) -> None:
            topic = CreateTopicsRequest.CreatableTopic(
                name=self.name, num_partitions=1, replication_factor=-1, assignments=[], configs=[]
            )
            request = CreateTopicsRequest(topics=[topic], timeout_ms=self._milliseconds(), validate_only=False)
            (answer,) = (await client.send(request, await _controller(client))).topics
            _raise_for(answer.error_code, "TopicAlreadyExistsError", answer.error_message)

        async def look(client: Client) -> None:
            (topic,) = await wire.topics(client, [self.name])
            _raise_for(topic.error_code)
            for partition in topic.partitions:
                _raise_for(partition.error_code)

        self._connection.run(create, doing="creating a topic", needs=f"Create on {self._resource}")
        self._connection.run(look, doing="waiting for the new topic", needs=f"Describe on {self._resource}")

    def delete(self) -> None:
        """Delete the topic. A topic that does not exist is no error."""

        async def delete(client: Client) -> None:
            state = DeleteTopicsRequest.DeleteTopicState(name=self.name, topic_id=None)
            named = {"topics": [state]} if client.version(DeleteTopicsRequest) >= 6 else {"topic_names": [self.name]}
            request = DeleteTopicsRequest(**named, timeout_ms=self._milliseconds())
            for answer in (await client.send(request, await _controller(client))).responses:
                _raise_for(answer.error_code, "UnknownTopicOrPartitionError")

        self._connection.run(delete, doing="deleting the topic", needs=f"Delete on {self._resource}")

    def produce(self, records: int) -> None:
        """Append this many records, and wait until all in-sync replicas have them."""
        built = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=_BATCH_BYTES)
        for number in range(records):
            built.append(timestamp=None, key=None, value=f"record {number}".encode())
        built.close()
        topic = ProduceRequest.TopicProduceData
        partition = topic.PartitionProduceData(index=0, records=built.buffer())

        async def produce(client: Client) -> None:
            request = ProduceRequest(
                transactional_id=None,
                acks=_ALL_REPLICAS,
                timeout_ms=self._milliseconds(),
                topic_data=[topic(name=self.name, partition_data=[partition])],
                min_version=3,
                max_version=12,  # later versions name topics only by their id
            )
            (found,) = await wire.topics(client, [self.name])
            response = await client.send(request, found.partitions[0].leader_id)
            for answer in (each for topic in response.responses for each in topic.partition_responses):
                _raise_for(answer.error_code)

        self._connection.run(produce, doing=f"producing to topic {self.name!r}", needs=f"Write on {self._resource}")

    def consume(self, group: str, records: int, *, first: str = "none") -> list[int]:
        """Join a group, read this many records, commit their offsets, and leave; return the offsets of the records.

        first: where to start if the group has no committed offset: ``earliest``, or ``none``, which is an error then.
        """
        deadline = time.monotonic() + self._config.timeout
        found: list[int] = []

        def consume(over: threading.Event) -> None:
            with closing(self._consumer(group, first)) as consumer:
                consumer.partitions_for_topic(self.name)  # otherwise the first assignment may be without the topic
                consumer.subscribe([self.name])
                while len(found) < records:
                    if over.is_set() or time.monotonic() > deadline:
                        raise kafka_errors.KafkaTimeoutError(f"{len(found)} of {records} records came")
                    left = records - len(found)
                    for polled in consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000), max_records=left).values():
                        found.extend(record.offset for record in polled)
                consumer.commit()

        needs = f"Read on {Resource(ResourceType.GROUP, group)} and {self._resource}"
        self._aside(consume, "consuming", needs)
        return found

    def _aside(self, work: Callable[[threading.Event], None], doing: str, needs: str) -> None:
        """Run ``work`` in another thread, because an interrupt in this one could leave a lock of the client taken.

        ``work`` must end soon after the event that it gets is set.
        """
        failed: list[Exception] = []
        over = threading.Event()

        def run() -> None:
            try:
                work(over)
            except Exception as error:  # noqa: BLE001  raised below, in the caller's thread
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        try:
            thread.start()
            thread.join()
        finally:
            over.set()
            if thread.ident is not None:  # it has started
                thread.join(_LEAVE_SECONDS)
        for error in failed:
            if isinstance(error, kafka_errors.KafkaError | OSError):
                raise explain(error, self._config, f"{doing} with topic {self.name!r}", needs) from error
            raise error

    def _consumer(self, group: str, first: str) -> KafkaConsumer:
        return KafkaConsumer(
            **self._config.kafka_python(),
            kafka_client=net_client,
            group_id=group,
            auto_offset_reset=first,
            enable_auto_commit=False,
            # The shortest that brokers allow by default, so that a consumer that could not leave is removed soon.
            session_timeout_ms=6000,
            heartbeat_interval_ms=2000,
            partition_assignment_strategy=[RangePartitionAssignor],
        )

    def _milliseconds(self) -> int:
        return int(self._config.timeout * 1000)


async def _controller(client: Client) -> int:
    """Return the id of the controller. With KRaft it is that of any broker, which forwards the request."""
    answer = await client.send(MetadataRequest(topics=[], allow_auto_topic_creation=False))
    return int(answer.controller_id)


def _raise_for(code: int, fine: str = "", message: str | None = None) -> None:
    """Raise kafka-python's error for an error code. fine: the name of an error class that is no error here."""
    error = kafka_errors.for_code(code)
    if error is not kafka_errors.NoError and error.__name__ != fine:
        raise error(*([message] if message else []))
