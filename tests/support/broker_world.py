"""Producers, consumers and administrators on a real broker, with topic and group names that belong to one test."""

from __future__ import annotations

import functools
import itertools
import string
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

import confluent_kafka
import tenacity
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove, ScramMechanism, UserScramCredentialUpsertion
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.kafka.records import KafkaRecords
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from tests.support.closed_consumers import close_consumer
from tests.support.share_member import ShareMember

_SECONDS = 30.0


def until(condition, *, seconds: float = _SECONDS):
    """Return the result of a condition as soon as it is true; fail if it stays false for ``seconds``."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_not_result(bool),
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_fixed(0.05),
    )(condition)


@functools.cache
def _producer(bootstrap_servers: str) -> confluent_kafka.Producer:
    """Return the producer that all tests share for a broker, because each producer keeps threads until the run ends."""
    return confluent_kafka.Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "log_level": 0})


class BrokerWorld:
    """Producers, consumers and administrators on a broker, apart from the tool. Topics and groups get unique names."""

    # The clients under test, which only the contract suite sets.
    writer: KafkaPythonWriter
    second_client: SecondClient
    records: KafkaRecords
    other_writer: KafkaPythonWriter

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
        self._producer = _producer(bootstrap_servers)
        self._prefix = uuid.uuid4().hex[:8]
        self._numbers = itertools.count()
        self._consumers: list[confluent_kafka.Consumer] = []
        self._early: dict[confluent_kafka.Consumer, list[str]] = {}

    def close(self) -> None:
        close_consumer(*self._consumers)
        self._admin.close()

    def name(self, what: str) -> str:
        """Return a name that no other test uses."""
        return f"{what}-{self._prefix}-{next(self._numbers)}"

    def create_topic(
        self, partitions: int = 1, *, topic: str | None = None, brokers: Sequence[int] | None = None, **config: str
    ) -> str:
        """Create a topic, and return its name. brokers: the id of each partition's broker; None: Kafka chooses."""
        topic = topic or self.name("topic")
        placed = {"assignments": {number: [broker] for number, broker in enumerate(brokers or [])}}
        spread = {"num_partitions": partitions, "replication_factor": 1}
        self._admin.create_topics({topic: {**(placed if brokers else spread), "configs": config}})
        self._admin.wait_for_topics([topic], timeout_ms=1000 * int(_SECONDS))  # a busy machine takes over 10 s
        return topic

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])
        until(lambda: topic not in self._admin.list_topics())

    def add_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions({topic: total})
        until(lambda: len(self._admin.describe_topics([topic])[0]["partitions"]) == total)

    def create_scram_user(self, name: str, password: str) -> None:
        """Create a user who can log in with SCRAM-SHA-256."""
        credential = UserScramCredentialUpsertion(name, ScramMechanism.SCRAM_SHA_256, password=password)
        assert self._admin.alter_user_scram_credentials([credential]) == {name: None}

    def produce(
        self, topic: str, partition: int, records: int, *, prefix: str = "", timestamp: int = 0, key: str | None = None
    ) -> None:
        """Append records. timestamp: in milliseconds since 1970; 0: the current time."""
        self._producer.list_topics(topic, _SECONDS)  # otherwise the producer might not know new partitions
        for number in range(records):
            value = f"{prefix}{topic}-{partition}-{number}"
            self._producer.produce(topic, value=value, partition=partition, timestamp=timestamp, key=key)
        assert self._producer.flush(_SECONDS) == 0

    def produce_in_order(self, topic: str, partition: int, records: Iterable[tuple[str, int]]) -> None:
        """Append records, given as value and timestamp. Send each when the previous record is acknowledged.

        Records that are sent at once may arrive in another order on a busy machine.
        """
        self._producer.list_topics(topic, _SECONDS)
        for value, timestamp in records:
            self._producer.produce(topic, value=value, partition=partition, timestamp=timestamp)
            assert self._producer.flush(_SECONDS) == 0

    def transact(self, topic: str, partition: int, records: int, *, timestamp: int = 0, commit: bool = True) -> None:
        """Append records in a transaction, followed by its control record. commit: whether it is committed."""
        with self.transaction(topic, partition, records, timestamp=timestamp, commit=commit):
            pass

    @contextmanager
    def transaction(
        self, topic: str, partition: int, records: int, *, timestamp: int = 0, commit: bool = True
    ) -> Iterator[None]:
        """Append records in a transaction that is open for the length of a ``with`` block.

        commit: whether the transaction is then committed, and not aborted. timestamp: in milliseconds since 1970; 0:
        the current time.
        """
        producer = self.transactional_producer()
        producer.begin_transaction()
        for number in range(records):
            value = f"{topic}-{partition}-{number}"
            producer.produce(topic, value=value, partition=partition, timestamp=timestamp)
        assert producer.flush(_SECONDS) == 0  # otherwise an abort would drop records that wait to be sent
        yield
        end = self._end(topic, partition) + 1
        (producer.commit_transaction if commit else producer.abort_transaction)(_SECONDS)
        until(lambda: self._end(topic, partition) >= end)  # its control record may come a little later

    def _end(self, topic: str, partition: int) -> int:
        return self.ends(topic, [partition])[partition]

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return the log end offsets of partitions, by their number."""
        found = self._admin.list_partition_offsets({KafkaTopicPartition(topic, number): -1 for number in partitions})
        return {partition.partition: end.offset for partition, end in found.items()}

    def transactional_producer(self) -> confluent_kafka.Producer:
        """Return a producer that is ready to begin a transaction."""
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "transactional.id": self.name("transaction"),
                "log_level": 0,
            }
        )
        producer.init_transactions(_SECONDS)
        return producer

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self._admin.delete_records({KafkaTopicPartition(topic, partition): before})

    def commit(self, group: str, partition: TopicPartition, offset: int, metadata: str = "", epoch: int = 0) -> None:
        """Commit an offset without being a member of the group."""
        answers = self._admin.alter_group_offsets(
            group, {KafkaTopicPartition(*partition): OffsetAndMetadata(offset, metadata, epoch)}
        )
        assert [error.errno for error in answers.values()] == [0], answers

    def commit_all(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets for several partitions in one request, without being a member."""
        wanted = {KafkaTopicPartition(*partition): OffsetAndMetadata(at, "", 0) for partition, at in offsets.items()}
        answers = self._admin.alter_group_offsets(group, wanted)
        assert {error.errno for error in answers.values()} <= {0}, answers

    def delete_offsets(self, group: str, *partitions: TopicPartition) -> None:
        """Delete a group's committed offsets, as ``kafka-consumer-groups --delete-offsets`` does."""
        self._admin.delete_group_offsets(group, [KafkaTopicPartition(*partition) for partition in partitions])
        until(lambda: not set(partitions) & self.committed(group).keys())

    def delete_group(self, group: str) -> None:
        """Delete a group without members, with all its committed offsets."""
        self._admin.delete_groups([group])
        until(lambda: not self.committed(group))

    def forget_claims(self, group: str) -> None:
        """Delete a group's journal, so that no run has claimed its partitions."""
        journal = journal_group(group)
        for member in self._admin.describe_groups([journal])[journal].get("members", []):
            self.remove_member(journal, member["member_id"])  # a killed command has left it
        if journal in self.groups():
            self.delete_group(journal)

    def groups(self) -> set[str]:
        """Return the names of all groups, of every type."""
        return {each["group_id"] for each in self._admin.list_groups()}

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return a group's committed offsets, read with a client that the tool does not use."""
        return self.committed_in([group])[group]

    def committed_in(self, groups: Iterable[str]) -> dict[str, dict[TopicPartition, int]]:
        """Return the committed offsets of several groups, with as few requests as possible."""
        found = self._admin.list_group_offsets(dict.fromkeys(groups))
        return {
            group: {TopicPartition(*partition): committed.offset for partition, committed in offsets.items()}
            for group, offsets in found.items()
        }

    def consumer(self, group: str, *topics: str, **config: object) -> confluent_kafka.Consumer:
        """Return a confluent-kafka consumer of a group, subscribed to the topics if there are any."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": group,
                "client.id": "test-app",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **config,
            }
        )
        self._consumers.append(consumer)
        if topics:
            consumer.subscribe(list(topics))
        return consumer

    def join(self, group: str, *topics: str, **config: object) -> confluent_kafka.Consumer:
        """Make a confluent-kafka consumer a member of a group, and return it once it has an assignment."""
        consumer = self.consumer(group, *topics, **config)
        early = self._early[consumer] = []

        def assigned() -> bool:
            early.extend(self._value(consumer.poll(0.05)))
            return bool(consumer.assignment())

        until(assigned)
        return consumer

    def let_expire(
        self, group: str, *partitions: TopicPartition, member: confluent_kafka.Consumer | None = None
    ) -> None:
        """Make committed offsets expire, as if they had been committed long ago, and wait until they are gone.

        The same offsets are committed again with a retention of 1 ms, in a version of OffsetCommit that has a
        retention field (before KIP-211). member: commits them; None: nobody is a member of the group. It must be the
        only member that the group ever had, because the request names generation 1, and must not be subscribed to the
        topics.
        """
        self.commit_for_a_moment(group, partitions, member)
        until(lambda: not {*partitions} & self.committed(group).keys())

    def commit_for_a_moment(
        self, group: str, partitions: Collection[TopicPartition], member: confluent_kafka.Consumer | None = None
    ) -> None:
        """Commit a group's committed offsets again, with a retention of 1 ms. member: as in `let_expire`."""
        committed = self.committed(group)
        commit = OffsetCommitRequest.OffsetCommitRequestTopic
        topics = [
            commit(
                name=each.topic,
                partitions=[
                    commit.OffsetCommitRequestPartition(
                        partition_index=each.partition, committed_offset=committed[each], committed_metadata=""
                    )
                ],
            )
            for each in partitions
        ]
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=1 if member else -1,
            member_id=member.memberid() if member else "",
            retention_time_ms=1,
            topics=topics,
            max_version=4,
        )

        async def to_coordinator():
            return await self._admin._manager.send(request, node_id=await self._admin._find_coordinator_id(group))

        answer = self._admin._manager.run(to_coordinator)
        assert {each.error_code for topic in answer.topics for each in topic.partitions} == {0}, answer

    def read_to_end(
        self, consumer: confluent_kafka.Consumer, topic: str, partition: int
    ) -> list[confluent_kafka.Message]:
        """Return all records of a partition, read with a manual assignment."""
        where = confluent_kafka.TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(where, _SECONDS)
        consumer.assign([where])
        found: list[confluent_kafka.Message] = []

        def at_end() -> bool:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                found.append(message)
            return consumer.position([where])[0].offset >= end

        if end:
            until(at_end)
        return found

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of the broker that leads a partition, or -1 if there is no leader."""
        (described,) = self._admin.describe_topics([topic])
        return next(each["leader_id"] for each in described["partitions"] if each["partition_index"] == partition)

    def leave(self, consumer: confluent_kafka.Consumer) -> None:
        self._consumers.remove(consumer)
        close_consumer(consumer)

    def share_member(self, group: str, topic: str) -> ShareMember:
        """Return a member of a share group, which has joined when it has read for a while."""
        return ShareMember(self.bootstrap_servers, group, topic)

    def remove_member(self, group: str, member_id: str) -> None:
        """Remove a member from a classic group, as an administrator does."""
        self._admin.remove_group_members(group, [MemberToRemove(member_id=member_id)])

    def consume(self, consumer: confluent_kafka.Consumer, records: int) -> list[str]:
        """Return the values of the next ``records`` records that the consumer gets."""
        values = self._early.pop(consumer, [])

        def enough() -> bool:
            for message in consumer.consume(records - len(values), 0.05) if len(values) < records else []:
                values.extend(self._value(message))
            return len(values) >= records

        until(enough)
        return values

    @staticmethod
    def _value(message: confluent_kafka.Message | None) -> list[str]:
        return [] if message is None or message.error() else [message.value().decode()]


def wait_for_coordinators(bootstrap_servers: str) -> None:
    """Wait until every partition of the offsets topic has a coordinator that answers.

    The first request about a group makes Kafka create that topic, and coordinators don't answer for a while. This
    function asks about groups whose names map to all partitions of the topic.
    """
    not_yet = (CoordinatorNotAvailableError, NotCoordinatorError, CoordinatorLoadInProgressError)
    patience = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(not_yet),
        stop=tenacity.stop_after_delay(_SECONDS),
        wait=tenacity.wait_fixed(0.05),
    )
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as admin:
        patience(admin.list_group_offsets, dict.fromkeys(string.ascii_lowercase))


@contextmanager
def broker_world(bootstrap_servers: str) -> Iterator[BrokerWorld]:
    world = BrokerWorld(bootstrap_servers)
    try:
        yield world
    finally:
        world.close()
