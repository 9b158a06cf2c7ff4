"""Holding a group: the requests of others that it refuses, the offsets that stay, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    MemberToRemove,
    ResourcePattern,
    ResourceType,
)

from migrate_groups.errors import ClusterUnavailable, NotAuthorized, Refused
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.hold import _Member, hold
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.model.answers import Answer
from migrate_groups.model.groups import HOLD_PROTOCOL_TYPE
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.sandbox.broker import Sandbox
from tests.support.broker_world import until
from tests.support.versions import CONSUMER, NEEDS_AUTHORIZER, NEEDS_TRANSACTIONS

PROTOCOLS = ["classic", CONSUMER]
REFUSALS = {"classic": KafkaError.INCONSISTENT_GROUP_PROTOCOL, "consumer": KafkaError._FATAL}
COMMITTED = CommittedOffset(offset=4, leader_epoch=0, metadata="its own")


@pytest.fixture
def config(bootstrap_servers: str) -> ClientConfig:
    return ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)


@pytest.fixture
def cluster(config: ClientConfig) -> Iterator[KafkaPythonWriter]:
    """The tool's own client, for the coordinator's description of a group."""
    with closing(SecondClient(config)) as witness, closing(
        KafkaPythonWriter(config, describe_members=witness.describe_group)
    ) as writer:  # fmt: skip
        yield writer


@pytest.fixture
def strict(guarded_sandbox: Sandbox) -> tuple[ClientConfig, int]:
    """A Kafka with ACLs and a narrow range of session timeouts, and its process id."""
    return ClientConfig(bootstrap_servers=guarded_sandbox.bootstrap_servers, timeout=20), guarded_sandbox.node.pid


def stopped_group(world, protocol: str = "simple") -> tuple[str, TopicPartition]:
    """Return an Empty group and its committed partition; its members spoke this protocol (``simple``: it had none)."""
    topic, group = world.create_topic(), world.name("old")
    world.produce(topic, 0, 10)
    if protocol != "simple":
        world.leave(world.join(group, topic, **{"group.protocol": protocol}))
    partition = TopicPartition(topic, 0)
    world.commit(group, partition, COMMITTED.offset, COMMITTED.metadata, COMMITTED.leader_epoch)
    return group, partition


@contextmanager
def client(world, group: str, **settings: object) -> Iterator[confluent_kafka.Consumer]:
    settings |= {"bootstrap.servers": world.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings)
    try:
        yield consumer
    finally:
        consumer.close()


def error_on_joining(world, group: str, topic: str, protocol: str) -> KafkaError:
    """Return the error of a consumer that tries to join."""
    with client(world, group, **{"group.protocol": protocol}) as consumer:
        consumer.subscribe([topic])
        message = until(lambda: consumer.poll(0.1))
        assert consumer.assignment() == []
        return message.error()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("comes_back_as", PROTOCOLS)
def test_consumer_is_kept_out_until_the_hold_ends(config, world, protocol, comes_back_as):
    """A consumer gets an error during the hold, with both protocols; afterwards it joins and finds its offset."""
    group, partition = stopped_group(world, protocol)
    with hold(config, group) as held:
        error = error_on_joining(world, group, partition.topic, comes_back_as)
        assert error.code() == REFUSALS[comes_back_as]
    assert held.lost is None
    back = world.join(group, partition.topic, **{"group.protocol": comes_back_as})
    [committed] = back.committed([confluent_kafka.TopicPartition(*partition)])
    assert committed.offset == COMMITTED.offset


def test_simple_commit_is_refused_until_the_hold_ends(config, world, cluster):
    """During the hold, a consumer without membership can't commit, and an administrator can't alter offsets."""
    group, partition = stopped_group(world)
    offset = confluent_kafka.TopicPartition(*partition, 7)
    with client(world, group) as simple:
        simple.assign([offset])
        with hold(config, group):
            with pytest.raises(confluent_kafka.KafkaException, match="UNKNOWN_MEMBER_ID"):
                simple.commit(offsets=[offset], asynchronous=False)
            answer = cluster.alter_offsets(group, {partition: CommittedOffset(offset=8)})[partition]
            assert (answer.answer, answer.error) == (Answer.REFUSED, "UNKNOWN_MEMBER_ID")
            assert cluster.committed(group, [partition]) == {partition: COMMITTED}
        simple.commit(offsets=[offset], asynchronous=False)
    assert world.committed(group) == {partition: 7}


@NEEDS_TRANSACTIONS
def test_transactional_commit_is_not_kept_out(config, world):
    """A transactional commit without membership passes a hold, so that the offsets must be read again."""
    group, partition = stopped_group(world)
    producer = confluent_kafka.Producer({"bootstrap.servers": world.bootstrap_servers, "transactional.id": group})
    producer.init_transactions(30)
    with hold(config, group) as held, client(world, group) as consumer:
        producer.begin_transaction()
        offsets = [confluent_kafka.TopicPartition(*partition, 6)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        until(lambda: world.committed(group) == {partition: 6})
    assert held.lost is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_group_with_a_member_is_refused(config, world, cluster, protocol):
    """A group with a member can't be held, and the attempt does not change it."""
    topic, group = world.create_topic(), world.name("live")
    world.join(group, topic, **{"group.protocol": protocol})
    before = cluster.describe_group(group)
    with pytest.raises(Refused, match="INCONSISTENT_GROUP_PROTOCOL; it has members"), hold(config, group):
        pytest.fail("held a group that has a member")
    assert cluster.describe_group(group) == before
    assert before.state == "Stable"


def test_group_is_held_once(config, world, cluster):
    """A second hold is refused, and the first one keeps the group."""
    group, _ = stopped_group(world)
    with hold(config, group) as held:
        with pytest.raises(Refused, match="another run holds it"), hold(config, group):
            pytest.fail("held a group twice")
        assert [member.member_id for member in cluster.describe_group(group).members] == [held.member_id]
    assert held.lost is None


def test_held_group_is_described_and_read_by_others(config, world, cluster):
    """A held group is Stable with the holder as its only member, and both clients read its committed offsets."""
    group, partition = stopped_group(world)
    with hold(config, group) as held, closing(SecondClient(config)) as witness:
        description = cluster.describe_group(group)
        assert (description.state, description.protocol_type) == ("Stable", HOLD_PROTOCOL_TYPE)
        assert [member.member_id for member in description.members] == [held.member_id]
        assert cluster.committed(group, [partition]) == {partition: COMMITTED}
        by_the_second = witness.committed(group, [partition])[partition]
        assert by_the_second is not None
        assert by_the_second.offset == COMMITTED.offset
        assert held.lost is None


@pytest.mark.parametrize("protocol", ["simple", *PROTOCOLS])
def test_leaving_leaves_an_empty_consumer_group_with_the_same_offsets(config, world, cluster, protocol):
    """However the block ends, the group is Empty, keeps its offsets, and Kafka's tools treat it as a consumer group."""
    group, partition = stopped_group(world, protocol)
    with pytest.raises(ZeroDivisionError), hold(config, group):
        raise ZeroDivisionError
    description = cluster.describe_group(group)
    assert description.stopped
    assert (description.group_type, description.protocol_type) == ("classic", "consumer")
    assert cluster.committed(group, [partition]) == {partition: COMMITTED}
    admin = AdminClient({"bootstrap.servers": world.bootstrap_servers})
    assert group in {listed.group_id for listed in admin.list_consumer_groups().result(30).valid}


HOLDER = """
import sys
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.hold import _Member, hold
with hold(ClientConfig(bootstrap_servers=sys.argv[1]), sys.argv[2], session_timeout=2.0) as held:
    print(held.member_id, flush=True)
    sys.stdin.read()
"""


def test_killed_holder_frees_the_group_after_its_session_timeout(world, cluster):
    """After ``kill -9`` the group is Empty once the session has timed out, and a consumer joins."""
    group, partition = stopped_group(world)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, world.bootstrap_servers, group],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        member_id = holder.stdout.readline().strip()
        try:
            assert [member.member_id for member in cluster.describe_group(group).members] == [member_id]
        finally:
            holder.kill()
    until(lambda: cluster.describe_group(group).stopped, seconds=8)
    world.join(group, partition.topic)
    assert world.committed(group) == {partition: COMMITTED.offset}


def test_hold_that_is_lost_says_so(config, world):
    """If an administrator removes the holder, the next heartbeat notices it, and the block ends without an error."""
    group, partition = stopped_group(world)
    with hold(config, group) as held, closing(KafkaAdminClient(bootstrap_servers=world.bootstrap_servers)) as admin:
        admin.remove_group_members(group, [MemberToRemove(member_id=held.member_id)])
        world.join(group, partition.topic)
        assert "no longer held: its coordinator says UNKNOWN_MEMBER_ID" in until(lambda: held.lost)
    assert "no longer held" in str(held.lost)


def test_hold_that_is_lost_at_the_last_moment_says_so(config, world, monkeypatch):
    """``lost`` is final after the block: a last heartbeat tells whether the hold lasted until then."""
    group, _ = stopped_group(world)
    answered, heartbeat = threading.Event(), _Member.heartbeat

    async def told(*arguments):
        answer = await heartbeat(*arguments)
        answered.set()
        return answer

    monkeypatch.setattr(_Member, "heartbeat", told)
    with closing(KafkaAdminClient(bootstrap_servers=world.bootstrap_servers)) as admin:
        with hold(config, group, session_timeout=300.0) as held:
            assert answered.wait(30)
            admin.remove_group_members(group, [MemberToRemove(member_id=held.member_id)])
            assert held.lost is None
        assert "UNKNOWN_MEMBER_ID" in str(held.lost)


@NEEDS_AUTHORIZER
def test_silence_of_the_coordinator_is_told_while_it_lasts(strict):
    """Unanswered heartbeats make the hold uncertain; an answer makes it certain again, because no other member joined.

    These brokers do not allow the requested session timeout, so that another one is used.
    """
    config, pid = strict
    with hold(config, "silent", session_timeout=1.9) as held:
        until(lambda: held.lost is None)
        os.kill(pid, signal.SIGSTOP)
        try:
            assert "it is not known" in until(lambda: held.lost)
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: held.lost is None)
    assert held.lost is None


@NEEDS_AUTHORIZER
def test_principal_without_read_on_the_group_is_refused(strict):
    """A principal with Describe but not Read on the group can't hold it; the error names the missing ACL."""
    config, _ = strict
    group, allow = ResourcePattern(ResourceType.GROUP, "unreadable"), ACLPermissionType.ALLOW
    with closing(KafkaAdminClient(bootstrap_servers=config.bootstrap_servers)) as admin:
        admin.create_acls([ACL("User:ANONYMOUS", "*", ACLOperation.DESCRIBE, allow, group)])
    with (
        pytest.raises(NotAuthorized, match="lacks Read on Group 'unreadable'; GroupAuthorizationFailed while joining"),
        hold(config, "unreadable"),
    ):
        pytest.fail("held a group without Read on it")


@NEEDS_AUTHORIZER
def test_cluster_that_hangs_is_unavailable(strict):
    """If brokers accept the connection and never answer, the attempt ends at the time-out."""
    config, pid = strict
    impatient = ClientConfig(bootstrap_servers=config.bootstrap_servers, timeout=1)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ClusterUnavailable, match="nothing within 1 s"), hold(impatient, "hung"):
            pytest.fail("held a group of brokers that hang")
    finally:
        os.kill(pid, signal.SIGCONT)
