"""The statements in docs/kafka-behaviour.md about brokers and clients that no other test checks."""

from __future__ import annotations

from contextlib import closing

import confluent_kafka
import pytest
from kafka import KafkaAdminClient
from kafka.errors import UnknownError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.model.partitions import TopicPartition
from tests.support.versions import NEEDS_TOOL_NAMES


@pytest.fixture
def admin(bootstrap_servers):
    """kafka-python's admin client."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as client:
        yield client


def test_a_broker_accepts_an_offset_outside_the_log(world):
    """If a client commits an offset beyond the log end, or below the log start, the broker stores it unchanged."""
    partition, group = TopicPartition(world.create_topic(), 0), world.name("outside")
    world.produce(*partition, 10)
    world.delete_records(*partition, 5)
    for offset in (1_000_000, 0):
        world.commit(group, partition, offset)
        assert world.committed(group) == {partition: offset}


def test_kafka_python_writes_a_negative_offset(world, admin):
    """If kafka-python commits offset -1, it returns no error, and the group then has no committed offset for the
    partition.
    """
    partition, group = TopicPartition(world.create_topic(), 0), world.name("negative")
    world.commit(group, partition, 7)
    answers = admin.alter_group_offsets(group, {KafkaTopicPartition(*partition): OffsetAndMetadata(-1, "", -1)})
    assert [error.errno for error in answers.values()] == [0]
    assert world.committed(group).get(partition, -1) == -1


def test_kafka_python_returns_errors_and_does_not_raise_them(world, admin):
    """If the broker refuses an offset, kafka-python's admin client returns the error class and raises no exception."""
    unknown = KafkaTopicPartition(world.name("no-such-topic"), 0)
    answers = admin.alter_group_offsets(world.name("refused"), {unknown: OffsetAndMetadata(1, "", -1)})
    assert [error.__name__ for error in answers.values()] == ["UnknownTopicOrPartitionError"]


def test_librdkafka_trims_white_space_before_a_group_id(world):
    """A librdkafka consumer whose ``group.id`` begins with white space reads the offsets of the group without this
    space.
    """
    partition, group = TopicPartition(world.create_topic(), 0), world.name("trimmed")
    world.commit(group, partition, 7)
    with closing(world.consumer(f" \t{group}")) as consumer:
        found = consumer.committed([confluent_kafka.TopicPartition(*partition)], timeout=20)
    assert [each.offset for each in found] == [7]


def test_confluent_kafka_appends_a_nul_to_metadata(world, admin):
    """confluent-kafka appends one NUL to the metadata that it commits."""
    partition, group = TopicPartition(world.create_topic(), 0), world.name("nul")
    place = confluent_kafka.TopicPartition(*partition, 3, metadata="abc")
    with closing(world.consumer(group)) as consumer:
        consumer.commit(offsets=[place], asynchronous=False)
    (found,) = admin.list_group_offsets({group: None})[group].values()
    assert found.metadata == "abc\0"


def test_commit_larger_than_one_batch_is_refused(world, admin):
    """If one request's commits do not fit into one batch of the offsets topic (1 MB), all fail with UNKNOWN, and none
    is written.
    """
    topic, group = world.create_topic(300), world.name("large")
    wanted = {KafkaTopicPartition(topic, number): OffsetAndMetadata(1, "m" * 4000, -1) for number in range(300)}
    assert set(admin.alter_group_offsets(group, wanted).values()) == {UnknownError}
    assert world.committed(group) == {}
    few = dict(list(wanted.items())[:200])
    assert {error.errno for error in admin.alter_group_offsets(group, few).values()} == {0}


@NEEDS_TOOL_NAMES
@pytest.mark.long
def test_a_leader_epoch_above_the_current_one_stops_a_java_consumer(world, sandbox):
    """If the leader epoch of the committed offset is above the current one, Kafka's console consumer reads no
    records.
    """
    partition = TopicPartition(world.create_topic(), 0)
    world.produce(*partition, 3)
    read = {}
    for epoch in (0, 9):
        group = world.name(f"epoch-{epoch}")
        world.commit(group, partition, 1, epoch=epoch)
        said = sandbox.run_tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--topic", partition.topic, "--group", group, "--timeout-ms", "8000"),
        )
        read[epoch] = said.stdout.splitlines()
    assert read == {0: [f"{partition.topic}-0-1", f"{partition.topic}-0-2"], 9: []}
