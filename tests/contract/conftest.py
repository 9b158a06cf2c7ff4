"""Fixtures of the contract tests, each of which runs on the in-memory cluster and on a real broker."""

from __future__ import annotations

import itertools
from contextlib import closing

import pytest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.records import KafkaRecords
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.selection import TopicPattern
from tests.support.broker_world import broker_world
from tests.support.in_memory import InMemoryCluster, InMemoryRecords


class InMemoryShareMember:
    """A member of a share group, with the methods of `ShareMember`."""

    def __init__(self, cluster: InMemoryCluster, group: str, topic: str) -> None:
        self._cluster, self._group = cluster, group
        member = Member(member_id="share", client_id="share", host="/127.0.0.1", subscription=frozenset({topic}))
        cluster.join(group, member, group_type="share", protocol_type="share")

    def read(self) -> None:
        pass

    def close(self) -> None:
        self._cluster.leave(self._group, "share")


class InMemoryWorld:
    """Producers, consumers and administrators on the in-memory cluster, with the methods of `BrokerWorld`."""

    def __init__(self) -> None:
        self.writer = self.second_client = InMemoryCluster()
        self.other_writer = self.writer.other_client()
        self.records = InMemoryRecords(self.writer)
        self._numbers = itertools.count()

    def name(self, what: str) -> str:
        return f"{what}-{next(self._numbers)}"

    def create_topic(self, partitions: int = 1, *, topic: str | None = None, **config: str) -> str:
        topic = topic or self.name("topic")
        self.writer.create_topic(topic, partitions, compacted=config == {"cleanup.policy": "compact"})
        return topic

    def __getattr__(self, method: str):
        return getattr(self.writer, method)

    def join(self, group: str, *topics: str, **config: str) -> tuple[str, str]:
        """Add a member, which gets the unassigned partitions. Return the group and the member id.

        topics: names, or one regular expression, which begins with ``^``.
        """
        member_id = self.name("member")
        regex = "".join(topic for topic in topics if topic.startswith("^"))
        matched = TopicPattern(regex, is_regex=True).matching([*self.writer.describe_topics(None)]) if regex else []
        taken = {each for other in describe_group(self.writer, group).members for each in other.assignment}
        partitions = {
            TopicPartition(topic, number)
            for topic, described in self.writer.describe_topics({*topics, *matched}).items()
            for number in described.partitions
        }
        member = Member(
            member_id=member_id,
            client_id=config.get("client.id", "test-app"),
            host="/127.0.0.1",
            assignment=frozenset(partitions - taken),
            subscription=frozenset(topics) - {regex},
            subscription_regex=regex,
        )
        self.writer.join(group, member, group_type=config.get("group.protocol", "classic"))
        return group, member_id

    consumer = join

    def share_member(self, group: str, topic: str) -> InMemoryShareMember:
        return InMemoryShareMember(self.writer, group, topic)

    def leave(self, joined: tuple[str, str]) -> None:
        self.writer.leave(*joined)

    def remove_member(self, group: str, member_id: str) -> None:
        self.writer.leave(group, member_id)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow the tool more than its usual 5 s to read first records, because the test machine may be busy."""
    monkeypatch.setattr("migrate_groups.kafka.first_records._LOOK_SECONDS", 60.0)


@pytest.fixture(params=["in-memory", "broker"])
def world(request: pytest.FixtureRequest):
    """An `InMemoryWorld` or a `BrokerWorld`, with the clients under test: writer, other_writer, second_client and
    records.
    """
    if request.param == "in-memory":
        yield InMemoryWorld()
        return
    config = ClientConfig(bootstrap_servers=request.getfixturevalue("bootstrap_servers"), timeout=20)
    with (
        closing(SecondClient(config)) as second_client,
        closing(KafkaRecords(config)) as records,
        broker_world(config.bootstrap_servers) as others,
        closing(KafkaPythonWriter(config)) as writer,
        closing(KafkaPythonWriter(config)) as other_writer,
    ):
        others.writer, others.second_client, others.records = writer, second_client, records
        others.other_writer = other_writer
        yield others
