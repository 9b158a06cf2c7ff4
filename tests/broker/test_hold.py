"""The hold: the tool joins a stopped group as its only member, so that no consumer can join or commit.

Tested are the requests that a hold refuses, the offsets that remain, and how a hold ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

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
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.hold import Hold, Holds
from migrate_groups.kafka.hold import hold as hold_with
from migrate_groups.kafka.placeholder_member import PlaceholderMember
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.reading.requests import describe_group, read_committed
from migrate_groups.model.answers import Answer
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.sandbox.broker import Sandbox
from tests.support.broker_world import until
from tests.support.closed_consumers import close_consumer
from tests.support.raw_member import raw_member, subscription
from tests.support.versions import CONSUMER, NEEDS_AUTHORIZER, NEEDS_KIP_848, NEEDS_TRANSACTIONS

PROTOCOLS = ["classic", CONSUMER]
COMMITTED = CommittedOffset(offset=4, leader_epoch=0, metadata="its own")


@contextmanager
def hold(
    config: ClientConfig, group: str, partitions: list[TopicPartition], session_timeout: float = 10.0, **options: str
) -> Iterator[Hold]:
    """Hold a group with connections that no other hold uses."""
    with (
        closing(KafkaConnection(config)) as usual,
        closing(Holds(config, usual, session_timeout)) as holds,
        hold_with(holds, group, partitions, **options) as held,
    ):
        yield held


@pytest.fixture
def config(bootstrap_servers: str) -> ClientConfig:
    return ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)


@pytest.fixture
def cluster(config: ClientConfig) -> Iterator[KafkaPythonWriter]:
    """The tool's own client, which describes groups."""
    with closing(KafkaPythonWriter(config)) as writer:
        yield writer


@pytest.fixture
def guarded(guarded_sandbox: Sandbox) -> tuple[ClientConfig, int]:
    """A client's configuration for the broker of `guarded_sandbox`, and the broker's process id."""
    return ClientConfig(bootstrap_servers=guarded_sandbox.bootstrap_servers, timeout=20), guarded_sandbox.node.pid


def stopped_group(world, protocol: str = "simple") -> tuple[str, TopicPartition]:
    """Return an Empty group and the partition of its committed offset.

    protocol: the protocol of the member that the group once had; ``simple``: the group never had a member.
    """
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
        close_consumer(consumer)


class Confluent:
    """A consumer of confluent-kafka, with the methods of a test's joiner."""

    def __init__(self, consumer: confluent_kafka.Consumer, topic: str) -> None:
        self._consumer = consumer
        consumer.subscribe([topic])

    def poll(self) -> int | None:
        """Let the consumer work; return the offset of a record, if there is one. Raises the consumer's error."""
        message = self._consumer.poll(0.1)
        if message is not None and message.error():
            raise confluent_kafka.KafkaException(message.error())
        return message and message.offset()

    @property
    def has_partitions(self) -> bool:
        return bool(self._consumer.assignment())


class Java:
    """A KafkaConsumer of Java, with the methods of a test's joiner."""

    def __init__(self, consumer: Any, a_while: Any) -> None:
        self._consumer, self._while = consumer, a_while

    def poll(self) -> int | None:
        """Let the consumer work; return the offset of a record, if there is one. Raises the consumer's error."""
        records = self._consumer.poll(self._while).iterator()
        return records.next().offset() if records.hasNext() else None

    @property
    def has_partitions(self) -> bool:
        return not self._consumer.assignment().isEmpty()


JAVAS = "org.apache.kafka.clients.consumer."
STRATEGY = "partition.assignment.strategy"
JOINERS = [
    *(pytest.param("java", {STRATEGY: f"{JAVAS}{name}Assignor"}, id=f"java-{name}") for name in ("Range", "Sticky")),
    pytest.param("java", {STRATEGY: f"{JAVAS}CooperativeStickyAssignor"}, id="java-cooperative"),
    pytest.param("java", {"group.instance.id": "one"}, id="java-static"),
    pytest.param("java", {"group.protocol": "consumer"}, id="java-KIP-848", marks=NEEDS_KIP_848),
    pytest.param("confluent", {STRATEGY: "roundrobin"}, id="confluent-roundrobin"),
    pytest.param("confluent", {STRATEGY: "cooperative-sticky"}, id="confluent-cooperative"),
    pytest.param("confluent", {"group.instance.id": "one"}, id="confluent-static"),
    pytest.param("confluent", {"group.protocol": "consumer"}, id="confluent-KIP-848", marks=NEEDS_KIP_848),
]


@contextmanager
def joiner(
    world, kafka_tool, kind: str, group: str, topic: str, settings: dict[str, str]
) -> Iterator[Confluent | Java]:
    """Start a consumer that tries to join the group."""
    if kind == "confluent":
        with client(world, group, **settings) as consumer:
            yield Confluent(consumer, topic)
        return
    with kafka_tool.consumer(group, topic, **{name.replace(".", "_"): each for name, each in settings.items()}) as java:
        yield Java(*java)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("kind", "settings"), JOINERS)
def test_a_consumer_waits_without_an_error_until_the_hold_ends(
    config, world, cluster, kafka_tool, protocol, kind, settings
):
    """While the tool holds a group, a consumer that joins gets no error and no partition. Afterwards it reads on from
    the committed offset, without a restart.
    """
    group, partition = stopped_group(world, protocol)
    with ExitStack() as open_until_the_end:
        with hold(config, group, [partition]) as held:
            assert held._joined.wait(30)
            joins = joiner(world, kafka_tool, kind, group, partition.topic, settings)
            consumer = open_until_the_end.enter_context(joins)
            until(lambda: consumer.poll() or len(describe_group(cluster, group).members) == 2)
            for _ in range(5):
                assert consumer.poll() is None
            assert not consumer.has_partitions
            assert world.committed(group) == {partition: COMMITTED.offset}
        assert held.lost is None
        assert until(consumer.poll) == COMMITTED.offset


def test_a_consumer_with_its_own_assignor_waits_if_the_assignor_is_known(config, world, cluster):
    """A consumer whose assignor is none of Kafka's can wait for the end of a hold if the hold names the assignor."""
    group, partition = stopped_group(world)
    raw = raw_member(world.bootstrap_servers, group, protocol="mine", metadata=subscription(partition.topic))
    with ThreadPoolExecutor() as pool:
        with hold(config, group, [partition], assignor="mine") as held:
            assert held._joined.wait(30)
            joined = pool.submit(raw.__enter__)
            until(lambda: len(describe_group(cluster, group).members) == 2)
            assert not joined.done()
        joined.result(30)
        raw.__exit__(None, None, None)


def test_commit_without_membership_is_refused_until_the_hold_ends(config, world, cluster):
    """While the tool holds a group, consumers without membership can't commit, and admin clients can't alter
    offsets.
    """
    group, partition = stopped_group(world)
    offset = confluent_kafka.TopicPartition(*partition, 7)
    with client(world, group) as simple:
        simple.assign([offset])
        with hold(config, group, [partition]):
            with pytest.raises(confluent_kafka.KafkaException, match="UNKNOWN_MEMBER_ID"):
                simple.commit(offsets=[offset], asynchronous=False)
            answer = cluster.alter_offsets({group: {partition: CommittedOffset(offset=8)}})[group][partition]
            assert (answer.answer, answer.error) == (Answer.REFUSED, "UNKNOWN_MEMBER_ID")
            assert read_committed(cluster, {group: [partition]})[group] == {partition: COMMITTED}
        simple.commit(offsets=[offset], asynchronous=False)
    assert world.committed(group) == {partition: 7}


@pytest.fixture
def unanswered(monkeypatch) -> Iterator[threading.Event]:
    """An event; until it is set, the join of the tool's member is not completed, because SyncGroup is not sent.

    A long group.initial.rebalance.delay.ms has a similar effect.
    """
    answered, sync = threading.Event(), PlaceholderMember._sync

    async def later(*arguments):
        answered.wait(30)
        return await sync(*arguments)

    monkeypatch.setattr(PlaceholderMember, "_sync", later)
    yield answered
    answered.set()


def test_a_consumer_that_joins_before_the_join_is_answered_waits(config, world, cluster, unanswered):
    """A classic consumer that joins before the join of the tool's member is completed gets no error and no partition.

    After the hold it reads on from the committed offset.
    """
    group, partition = stopped_group(world)
    with ExitStack() as open_until_the_end:
        with hold(config, group, [partition]) as held:
            consumer = Confluent(open_until_the_end.enter_context(client(world, group)), partition.topic)
            until(lambda: consumer.poll() or len(describe_group(cluster, group).members) == 2)
            unanswered.set()
            assert held._joined.wait(30)
            for _ in range(5):
                assert consumer.poll() is None
            assert not consumer.has_partitions
        assert held.lost is None
        assert until(consumer.poll) == COMMITTED.offset


@NEEDS_KIP_848
def test_a_kip_848_consumer_fails_before_the_join_is_answered(config, world, unanswered):
    """A KIP-848 consumer that joins before the join of the tool's member is completed gets a fatal error, and no
    partition.
    """
    group, partition = stopped_group(world)
    with hold(config, group, [partition]), client(world, group, **{"group.protocol": "consumer"}) as consumer:
        consumer.subscribe([partition.topic])
        message = until(lambda: consumer.poll(0.1))
        assert message.error().code() == KafkaError._FATAL
        assert consumer.assignment() == []
        unanswered.set()


def test_a_hold_begins_before_the_join_is_answered(config, world, cluster, unanswered):
    """A hold begins before the join of the tool's member is completed.

    Once the coordinator knows this member, commits of other clients are refused.
    """
    group, partition = stopped_group(world)
    with hold(config, group, []) as held:
        assert describe_group(cluster, group).state != "Stable"
        answer = cluster.alter_offsets({group: {partition: CommittedOffset(offset=8)}})[group][partition]
        assert (answer.answer, answer.error) == (Answer.REFUSED, "UNKNOWN_MEMBER_ID")
        unanswered.set()
        until(lambda: describe_group(cluster, group).state == "Stable")
    assert held.lost is None
    assert world.committed(group) == {partition: COMMITTED.offset}


def test_a_member_removed_before_the_join_is_answered_has_lost_the_hold(config, world, unanswered):
    """If the tool's member is removed before its join is completed, ``Hold.lost`` contains the coordinator's error
    code.

    No exception is raised.
    """
    group, _ = stopped_group(world)
    with hold(config, group, []) as held, closing(KafkaAdminClient(bootstrap_servers=world.bootstrap_servers)) as admin:
        admin.remove_group_members(group, [MemberToRemove(member_id=held.member_id)])
        unanswered.set()
        until(lambda: held.lost)
    assert held.lost == f"group {group!r} is no longer held: its coordinator answered UNKNOWN_MEMBER_ID"


@NEEDS_TRANSACTIONS
def test_transactional_commit_is_accepted_during_a_hold(config, world):
    """While the tool holds a group, the broker still accepts transactional commits without membership."""
    group, partition = stopped_group(world)
    producer = world.transactional_producer()
    with hold(config, group, [partition]) as held, client(world, group) as consumer:
        producer.begin_transaction()
        offsets = [confluent_kafka.TopicPartition(*partition, 6)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        until(lambda: world.committed(group) == {partition: 6})
    assert held.lost is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_hold_refuses_a_group_with_a_member(config, world, cluster, protocol):
    """If a group has a member, the tool can't hold the group, and the attempt does not change the group."""
    topic, group = world.create_topic(), world.name("live")
    world.join(group, topic, **{"group.protocol": protocol})
    before = describe_group(cluster, group)
    with pytest.raises(Refused, match=r"can't be held: .*it has members"), hold(config, group, []):
        pytest.fail("held a group that has a member")
    assert describe_group(cluster, group) == before
    assert before.state == "Stable"


def test_second_hold_is_refused(config, world, cluster):
    """While the tool holds a group, a second attempt to hold the group is refused, and the first hold continues."""
    group, _ = stopped_group(world)
    with hold(config, group, []) as held:
        with pytest.raises(Refused, match="another run holds it"), hold(config, group, []):
            pytest.fail("held a group twice")
        assert [member.member_id for member in describe_group(cluster, group).members] == [held.member_id]
    assert held.lost is None


def test_other_clients_describe_and_read_a_held_group(config, world, cluster):
    """While the tool holds a group, the group is Stable with the tool as its only member.

    kafka-python and confluent-kafka can read its committed offsets.
    """
    group, partition = stopped_group(world)
    with hold(config, group, [partition]) as held, closing(SecondClient(config)) as second_client:
        description = until(lambda: (found := describe_group(cluster, group)).state == "Stable" and found)
        assert (description.protocol_type, description.members[0].assignment) == ("consumer", {partition})
        assert [member.member_id for member in description.members] == [held.member_id]
        assert read_committed(cluster, {group: [partition]})[group] == {partition: COMMITTED}
        from_second_client = read_committed(second_client, {group: [partition]})[group][partition]
        assert from_second_client is not None
        assert from_second_client.offset == COMMITTED.offset
        assert held.lost is None


@pytest.mark.parametrize("protocol", ["simple", *PROTOCOLS])
def test_released_group_is_empty_and_keeps_its_offsets(config, world, cluster, protocol):
    """When the tool stops holding a group, even because of an error, the group is Empty, keeps its offsets, and is a
    consumer group.
    """
    group, partition = stopped_group(world, protocol)
    with pytest.raises(ZeroDivisionError), hold(config, group, []):
        raise ZeroDivisionError
    description = describe_group(cluster, group)
    assert description.stopped
    assert (description.group_type, description.protocol_type) == ("classic", "consumer")
    assert read_committed(cluster, {group: [partition]})[group] == {partition: COMMITTED}
    admin = AdminClient({"bootstrap.servers": world.bootstrap_servers})
    assert group in {listed.group_id for listed in admin.list_consumer_groups().result(30).valid}


HOLDER = """
import sys
from migrate_groups.kafka.client_config import ClientConfig
from tests.broker.test_hold import hold
with hold(ClientConfig(bootstrap_servers=sys.argv[1]), sys.argv[2], [], session_timeout=2.0) as held:
    print(held.member_id, flush=True)
    sys.stdin.read()
"""


def test_killed_holder_frees_the_group_after_its_session_timeout(world, cluster):
    """If the process that holds a group is killed, the group is Empty after the session timeout, and a consumer can
    join.
    """
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
            assert [member.member_id for member in describe_group(cluster, group).members] == [member_id]
        finally:
            holder.kill()
    until(lambda: describe_group(cluster, group).stopped, seconds=8)
    world.join(group, partition.topic)
    assert world.committed(group) == {partition: COMMITTED.offset}


def test_lost_hold_is_noticed_by_the_next_heartbeat(config, world):
    """If an admin client removes the tool's member from a held group, the next heartbeat notices it. No error is
    raised.
    """
    group, partition = stopped_group(world)
    with hold(config, group, []) as held, closing(KafkaAdminClient(bootstrap_servers=world.bootstrap_servers)) as admin:
        admin.remove_group_members(group, [MemberToRemove(member_id=held.member_id)])
        world.join(group, partition.topic)
        assert "no longer held: its coordinator answered UNKNOWN_MEMBER_ID" in until(lambda: held.lost)
    assert "no longer held" in str(held.lost)


def test_lost_hold_is_noticed_by_the_last_heartbeat(config, world, monkeypatch):
    """When a hold ends, a last heartbeat finds out whether the tool's member was removed before."""
    group, _ = stopped_group(world)
    answered, heartbeat = threading.Event(), PlaceholderMember.heartbeat

    async def answer_seen(*arguments):
        answer = await heartbeat(*arguments)
        answered.set()
        return answer

    monkeypatch.setattr(PlaceholderMember, "heartbeat", answer_seen)
    with closing(KafkaAdminClient(bootstrap_servers=world.bootstrap_servers)) as admin:
        with hold(config, group, [], session_timeout=300.0) as held:
            assert answered.wait(30)
            admin.remove_group_members(group, [MemberToRemove(member_id=held.member_id)])
            assert held.lost is None
        assert "UNKNOWN_MEMBER_ID" in str(held.lost)


@NEEDS_AUTHORIZER
def test_hold_is_uncertain_while_the_coordinator_does_not_answer(guarded):
    """While heartbeats get no answer, ``Hold.lost`` says that the hold is uncertain. After an answer it is None again.

    In this test the broker refuses the session timeout that the hold asks for first, so the hold asks for a longer one.
    """
    config, pid = guarded
    with hold(config, "silent", [], session_timeout=1.9) as held:
        assert held._joined.wait(30)
        os.kill(pid, signal.SIGSTOP)
        try:
            assert "it is not known" in until(lambda: held.lost)
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: held.lost is None)
    assert held.lost is None


@NEEDS_AUTHORIZER
def test_session_timeouts_that_no_broker_allows_are_the_reason(guarded, monkeypatch):
    """If the broker refuses every session timeout that a hold asks for, the error names the broker settings
    to change.
    """
    config, _ = guarded
    monkeypatch.setattr("migrate_groups.kafka.placeholder_member._OTHER_SESSION_TIMEOUTS", (30.0,))
    with pytest.raises(Refused) as refusal, hold(config, "timeless", [], session_timeout=1.5):
        pytest.fail("held a group with a session timeout that the brokers do not allow")
    assert str(refusal.value) == (
        "group 'timeless' can't be held: INVALID_SESSION_TIMEOUT; the brokers allow no session timeout of 1.5, 30 s: "
        "change group.min.session.timeout.ms or group.max.session.timeout.ms, or run without a hold"
    )


@NEEDS_AUTHORIZER
def test_hold_without_read_on_the_group_is_refused(guarded):
    """A principal with Describe but not Read on a group can't hold the group, and the error names the missing ACL."""
    config, _ = guarded
    group, allow = ResourcePattern(ResourceType.GROUP, "unreadable"), ACLPermissionType.ALLOW
    with closing(KafkaAdminClient(bootstrap_servers=config.bootstrap_servers)) as admin:
        admin.create_acls([ACL("User:ANONYMOUS", "*", ACLOperation.DESCRIBE, allow, group)])
    with (
        pytest.raises(
            NotAuthorized,
            match=r"lacks Read on Group 'unreadable' \(GROUP_AUTHORIZATION_FAILED while joining .*: grant it",
        ),
        hold(config, "unreadable", []),
    ):
        pytest.fail("held a group without Read on it")


@NEEDS_AUTHORIZER
def test_hold_on_a_hung_cluster_ends_at_the_timeout(guarded):
    """If brokers accept connections but never answer, the attempt to hold a group ends with an error at the timeout."""
    config, pid = guarded
    impatient = ClientConfig(bootstrap_servers=config.bootstrap_servers, timeout=1)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ClusterUnavailable, match="no answer within 1 s"), hold(impatient, "hung", []):
            pytest.fail("held a group of brokers that hang")
    finally:
        os.kill(pid, signal.SIGCONT)
