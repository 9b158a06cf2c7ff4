"""Commits of a held group while its join is not answered, which takes ``group.initial.rebalance.delay.ms``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.model.answers import Answer
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.sandbox.broker import start_sandbox
from tests.support.broker_world import BrokerWorld, broker_world, wait_for_coordinators


@pytest.fixture(scope="module")
def servers(kafka_jars, java) -> Iterator[str]:
    """The address of a broker with a delay that no test outlasts, if nothing waits for it."""
    delay = {"group.initial.rebalance.delay.ms": "6000"}
    with start_sandbox(kafka_jars, java=java, settings=delay) as sandbox:
        wait_for_coordinators(sandbox.bootstrap_servers)
        yield sandbox.bootstrap_servers


@pytest.fixture
def world(servers) -> Iterator[BrokerWorld]:
    with broker_world(servers) as made:
        yield made


@pytest.fixture
def writer(servers) -> Iterator[KafkaPythonWriter]:
    with closing(KafkaPythonWriter(ClientConfig(bootstrap_servers=servers, timeout=30))) as made:
        yield made


def test_a_member_commits_before_its_join_is_answered(world, writer):
    """In a group that has had no member, the holder commits, and leaves, before the coordinator has answered its join.

    Then the group has no members, and has the offset.
    """
    group, partition = world.name("new"), TopicPartition(world.create_topic(), 0)
    with writer.held(group, ()) as held:
        answers = writer.alter_offsets({group: {partition: CommittedOffset(offset=8)}})
        assert answers[group][partition].answer is Answer.WRITTEN
        assert not held.has_joined
    assert held._member.generation == -1
    assert held.lost is None
    assert describe_group(writer, group).members == ()
    assert world.committed(group) == {partition: 8}


def test_a_removed_member_does_not_commit_before_its_join_is_answered(world, writer):
    """After the member is removed, its commits are refused, although its join was not answered."""
    group, partition = world.name("new"), TopicPartition(world.create_topic(), 0)
    with writer.held(group, ()) as held:
        held._member.leave(writer._connection)
        answer = writer.alter_offsets({group: {partition: CommittedOffset(offset=8)}})[group][partition]
        assert (answer.answer, answer.error) == (Answer.REFUSED, "UNKNOWN_MEMBER_ID")
    assert held.lost is not None
    assert world.committed(group) == {}


def test_a_member_of_a_group_with_earlier_generations_commits_after_its_join_is_answered(world, writer):
    """If the group has had members, the coordinator accepts the commit once it has answered the holder's join."""
    group, partition = world.name("old"), TopicPartition(world.create_topic(), 0)
    with writer.held(group, ()) as held:
        held.await_join()
    with writer.held(group, ()) as held:
        assert not held.has_joined
        answers = writer.alter_offsets({group: {partition: CommittedOffset(offset=8)}})
        assert answers[group][partition].answer is Answer.WRITTEN
        assert held.has_joined
    assert held.lost is None
    assert world.committed(group) == {partition: 8}
