"""Run stories (random sequences of commands) on a real broker. Only the clock is simulated.

An application joins and commits with a real consumer. It fetches no records: the story computes which records are
processed, as on the in-memory cluster, so each run is the same. An event that a broker causes itself, such as the
expiry of an offset, is replaced by the most similar request of an administrator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import fields, is_dataclass, replace
from enum import Enum

import confluent_kafka

from migrate_groups.errors import raise_first
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.model.groups import Member
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Resource
from tests.support.any_order.acting import GROUPS
from tests.support.any_order.world import World
from tests.support.broker_world import BrokerWorld, broker_world

_NAMES = (*GROUPS, "t", "u")
_FREE_CLIENTS = 2  # for two commands at once


class Broker:
    """A real broker and the tool's clients, shared by all stories; each story has its own groups and topics."""

    def __init__(self, others: BrokerWorld, config: ClientConfig, second_client: SecondClient) -> None:
        self.others, self.second_client = others, second_client
        self.administrator = KafkaPythonWriter(config)
        self._config, self._writers = config, deque[KafkaPythonWriter]()

    def writer(self) -> KafkaPythonWriter:
        """Return a client that holds no group, and another one at each of two calls."""
        free = [each for each in self._writers if not each._holds]
        self._writers.extend(KafkaPythonWriter(self._config) for _ in range(_FREE_CLIENTS - len(free)))
        self._writers.rotate()
        return next(each for each in self._writers if not each._holds)

    def close(self) -> None:
        for each in (self.administrator, *self._writers):
            each.close()

    @contextmanager
    def world(self) -> Iterator[World]:
        """Yield the `World` of one story. At its end all members leave, and its topics are deleted."""
        cluster = _Cluster(self)
        world = _World(cluster)
        try:
            yield world
        finally:
            for _, member in world.left_behind:
                member.close()
            cluster.clear()


@contextmanager
def broker(bootstrap_servers: str) -> Iterator[Broker]:
    """Yield a `Broker` with connected clients."""
    config = ClientConfig(bootstrap_servers=bootstrap_servers)
    with (
        broker_world(bootstrap_servers) as others,
        closing(SecondClient(config)) as second_client,
        closing(Broker(others, config, second_client)) as of,
    ):
        yield of


class _World(World):
    """A `World` whose cluster is a real broker."""

    def __init__(self, cluster: _Cluster) -> None:
        super().__init__(cluster)
        self._commit_all = cluster.commit_all
        self.second = cluster.second

    def commit(self, group: str, positions: dict[TopicPartition, int]) -> None:
        self._commit_all(group, positions)


class _Named:
    """A wrapper of a client that translates names: a story's group ``old`` has a unique name on the broker."""

    def __init__(self, client, real: Mapping[str, str]) -> None:
        self._client, self._real = client, real
        self._told = {name: told for told, name in real.items()}

    def __getattr__(self, name: str):
        method = getattr(self._client, name)

        def called(*arguments, **named):
            return _renamed(method(*_renamed(arguments, self._real), **_renamed(named, self._real)), self._told)

        return called


class _Client(_Named):
    """A client of a real broker behind those methods of `InMemoryCluster` that commands use."""

    def alter(self, group: str, offsets):
        return self.alter_offsets({group: offsets})[group]

    def describe_topics(self, topics):
        """Return the descriptions of these topics (None: all), without the topics of other stories."""
        described = super().__getattr__("describe_topics")(topics)
        return {name: each for name, each in described.items() if name in (*_NAMES, OFFSETS_TOPIC)}

    @contextmanager
    def held(self, group: str, partitions, assignor: str = "", holder: str = ""):
        with self._client.held(self._real[group], partitions, assignor, holder) as hold:
            yield hold


class _Cluster(_Client):
    """A real broker behind the methods of `InMemoryCluster`."""

    def __init__(self, of: Broker) -> None:
        real = {name: of.others.name(name) for name in _NAMES}
        super().__init__(of.administrator, real | {journal_group(name): journal_group(real[name]) for name in GROUPS})
        self.principal = of.administrator.principal
        self.second = _Named(of.second_client, self._real)
        self._of, self._others = of, of.others
        self._members: dict[str, confluent_kafka.Consumer] = {}
        self._topics: list[str] = []

    def other_client(self) -> _Client:
        return _Client(self._of.writer(), self._real)

    def clear(self) -> None:
        for group in list(self._members):
            self.leave(group, "")
        for topic in self._topics:
            self._others.delete_topic(self._real[topic])

    def create_topic(self, topic: str, partitions: int) -> None:
        self._topics.append(topic)
        self._others.create_topic(partitions, topic=self._real[topic])

    def add_partitions(self, topic: str, total: int) -> None:
        self._others.add_partitions(self._real[topic], total)

    def produce(self, topic: str, partition: int, records: int) -> None:
        self._others.produce(self._real[topic], partition, records)

    def join(self, group: str, member: Member) -> None:
        topics = [self._real[topic] for topic in sorted(member.subscription)]
        self._members[group] = self._others.join(self._real[group], *topics)

    def leave(self, group: str, member_id: str) -> None:
        if group in self._members:
            self._others.leave(self._members.pop(group))
        else:
            self._others.remove_member(self._real[group], member_id)

    def commit(self, group: str, partition: TopicPartition, offset: int) -> None:
        self.commit_all(group, {partition: offset})

    def commit_all(self, group: str, positions: Mapping[TopicPartition, int]) -> None:
        """Commit offsets as the group's member or, if the group has no member, without membership."""
        consumer = self._members.get(group)
        if consumer is None:
            self._others.commit_all(self._real[group], _renamed(positions, self._real))
            return
        offsets = [
            confluent_kafka.TopicPartition(self._real[topic], partition, position)
            for (topic, partition), position in positions.items()
        ]
        done = consumer.commit(offsets=offsets, asynchronous=False)
        assert [each.error for each in done if each.error] == []

    def delete(self, group: str, partitions) -> None:
        self.delete_offsets({group: partitions})

    def delete_group(self, group: str) -> None:
        self.delete_groups([group])

    def description(self, group: str):
        return raise_first(self.describe_groups([group]))[group]

    def offsets(self, group: str):
        return raise_first(self.committed({group: None}, wait=False))[group]


def _renamed(value, names: Mapping[str, str]):
    """Return a client's argument or result, with the names of groups and topics replaced."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, TopicPartition):
        return TopicPartition(names.get(value.topic, value.topic), value.partition)
    if isinstance(value, Resource):
        return Resource(value.type, names.get(value.name, value.name))
    if isinstance(value, Mapping):
        return {_renamed(key, names): _renamed(each, names) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(_renamed(each, names) for each in value)
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(_renamed(each, names) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _renamed(getattr(value, each.name), names) for each in fields(value)})
    return value
