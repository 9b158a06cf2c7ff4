"""The two clusters of the contract suite: one in memory, one real."""

from __future__ import annotations

import itertools
from contextlib import closing

import pytest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import broker_world
from tests.support.in_memory import InMemoryCluster


class InMemoryWorld:
    """Deeds of other clients on the cluster in memory, with the methods of `BrokerWorld`."""

    def __init__(self) -> None:
        self.writer = self.witness = InMemoryCluster()
        self._numbers = itertools.count()

    def name(self, what: str) -> str:
        return f"{what}-{next(self._numbers)}"

    def create_topic(self, partitions: int = 1, *, topic: str | None = None) -> str:
        topic = topic or self.name("topic")
        self.writer.create_topic(topic, partitions)
        return topic

    def __getattr__(self, deed: str):
        return getattr(self.writer, deed)

    def join(self, group: str, *topics: str) -> tuple[str, str]:
        member_id = self.name("member")
        partitions = {
            TopicPartition(topic, number)
            for topic, described in self.writer.describe_topics(topics).items()
            for number in described.partitions
        }
        member = Member(
            member_id=member_id,
            client_id="test-app",
            host="/127.0.0.1",
            assignment=frozenset(partitions),
            subscription=frozenset(topics),
        )
        self.writer.join(group, member)
        return group, member_id

    def leave(self, joined: tuple[str, str]) -> None:
        self.writer.leave(*joined)


@pytest.fixture(params=["in-memory", "broker"])
def world(request: pytest.FixtureRequest):
    """Deeds of other clients; ``world.writer`` and ``world.witness`` are under test."""
    if request.param == "in-memory":
        yield InMemoryWorld()
        return
    config = ClientConfig(bootstrap_servers=request.getfixturevalue("bootstrap_servers"), timeout=20)
    with (
        closing(SecondClient(config)) as witness,
        broker_world(config.bootstrap_servers) as deeds,
        closing(KafkaPythonWriter(config, describe_members=witness.describe_group)) as writer,
    ):
        deeds.writer, deeds.witness = writer, witness
        yield deeds
