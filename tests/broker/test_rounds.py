"""How often a hand-over waits for a response between the end of settle and the moment when the new groups may start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from migrate_groups.api.clients import open_reader, open_writer
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.hold import Holds
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import migrate, plan_migration
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.migration.ports import GroupWriter
from migrate_groups.migration.reading.stop_checkpoint import partitions_of_offsets_topic
from migrate_groups.model.groups import GroupWithOffsets
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.broker_world import BrokerWorld, broker_world, until, wait_for_coordinators
from tests.support.proxy import LISTENER, put_before
from tests.support.rounds import ManyBrokers, Rounds

SETTLE = 2.0
HELD = 0.4  # longer than the pause between two requests of which neither waits for the other
TOPICS = 12


@pytest.fixture(scope="module", params=[1, 3, pytest.param(ManyBrokers.BROKERS, marks=pytest.mark.long)])
def cluster(request, kafka_jars, java) -> Iterator[tuple[Rounds, str]]:
    """Proxies before one broker or three, or before one that looks like thirty, and the brokers' own addresses."""
    is_imitated = request.param == ManyBrokers.BROKERS
    with start_sandbox(
        kafka_jars,
        java=java,
        brokers=1 if is_imitated else request.param,
        timeout=120,
        listeners={LISTENER: "PLAINTEXT"},
        settings={"offsets.topic.num.partitions": f"{ManyBrokers.OFFSETS_PARTITIONS}"} if is_imitated else {},
    ) as sandbox:
        proxies = put_before(sandbox, ManyBrokers if is_imitated else Rounds)
        for node in sandbox.nodes:
            node.await_answer()
        wait_for_coordinators(sandbox.bootstrap_servers)
        yield proxies, sandbox.bootstrap_servers


def through(proxies: Rounds) -> ClientConfig:
    """Return the configuration of a client that is counted."""
    return ClientConfig(bootstrap_servers=proxies.bootstrap_servers, timeout=30, client_id=Rounds.CLIENT_ID)


def test_offsets_are_read_after_the_description(cluster):
    """A group is described, and its offsets are read, in one round and on one connection, in this order.

    Log end offsets of ``__consumer_offsets`` that are read before come first on this connection.
    """
    proxies, servers = cluster
    with broker_world(servers) as world:
        place, group = TopicPartition(world.create_topic(), 0), world.name("group")
        world.commit(group, place, 3)
    with closing(KafkaPythonReader(through(proxies))) as reader:
        partitions = partitions_of_offsets_topic(reader)
        # Finds the coordinator and the leaders, and connects to them.
        first = reader.describe_after_ends(partitions, group)
        proxies.begin(HELD)
        again = reader.describe_after_ends(partitions, group)
        (names,) = proxies.end()
        (at_coordinator,) = (each for each in proxies.sent() if "DescribeGroups" in each)
    assert again == first
    assert isinstance(again[1], GroupWithOffsets)
    assert again[1].offsets[place] == CommittedOffset(offset=3, leader_epoch=0)
    assert at_coordinator == ["ListOffsets", "DescribeGroups", "OffsetFetch"]
    assert {*names} == {*at_coordinator}


def request_of(world: BrokerWorld, run: Path, targets: int) -> MigrateRequest:
    """Return the request to hand a stopped group with twelve topics over to ``targets`` groups."""
    topics = [world.create_topic(partitions=2) for _ in range(TOPICS)]
    old, new = world.name("old"), world.name("new")
    offsets = {TopicPartition(topic, number): 0 for topic in topics for number in range(2)}

    def is_committed() -> bool:
        try:
            world.commit_all(old, offsets)
        except AssertionError:
            return False  # a coordinator may learn of a topic late
        return True

    until(is_committed)
    spec = SplitSpec(
        source=old,
        targets=tuple(
            SplitTarget(group=f"{new}-{number}", topics=tuple(map(TopicPattern, topics[number::targets])))
            for number in range(targets)
        ),
    )
    options = WriteOptions(settle=SETTLE, guard=0)
    return MigrateRequest(file=SplitFile(content=b"", spec=spec, options=options), run=RunDir(run))


def hold_beside(writer: GroupWriter, servers: str) -> None:
    """Make a client join groups and send heartbeats past the proxies: no request waits for a heartbeat."""
    assert isinstance(writer, KafkaPythonWriter)
    direct = ClientConfig(bootstrap_servers=servers, timeout=30)
    writer._all_holds = Holds(direct, writer._all_holds.usual)


@pytest.mark.parametrize("targets", [1, 5])
def test_rounds_from_settle_to_start(cluster, tmp_path: Path, targets):
    """From the end of settle until the new groups may start, a hand-over waits for responses six times.

    Before settle it waits twice: for the source group's description, and for its offsets beside the topics.
    It is as often with one broker as with three or thirty, and with one target group as with five.
    """
    proxies, servers = cluster
    before: list[list[list[str]]] = []
    seen: list[list[list[str]]] = []

    settling: list[str] = []

    class Settled(SystemClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if settling:
                settling.clear()
                assert isinstance(clients.second, SecondClient)
                with clients.second._one_at_a_time:  # so that it has connected, also on a busy machine
                    proxies.begin(HELD)

    class Started(Events):
        def stop_agreed(self, stop: PlannedStop) -> None:
            proxies.begin(HELD)

        def doing(self, line: str) -> None:
            if "to see that nothing is committed" in line:
                before.append(proxies.end())
                settling.append(line)

        def read_back(self, *arguments, **named) -> None:
            seen.append(proxies.end())

    with broker_world(servers) as world:
        wanted = request_of(world, tmp_path / "run", targets)
    with open_writer(through(proxies)) as clients:
        hold_beside(clients.writer, servers)
        done = migrate(clients, wanted, Settled(), Started())
    assert done is not None
    assert done.execution.is_whole
    (until_settle,), (rounds,) = before, seen
    assert len(until_settle) == 2, "\n".join(map(str, until_settle))
    assert len(rounds) == 6, "\n".join(map(str, rounds))


def test_the_forecast_has_the_round_trip(cluster, tmp_path: Path):
    """The plan adds eight round trips to the time until START, measured from a request to its response."""
    proxies, servers = cluster
    stops: list[PlannedStop] = []

    class Planned(Events):
        def stop_planned(self, stop: PlannedStop) -> None:
            stops.append(stop)

    with broker_world(servers) as world:
        wanted = request_of(world, tmp_path / "run", targets=1)
    proxies.begin(HELD)
    with open_reader(through(proxies)) as reader:
        plan_migration(reader, wanted, SystemClock(), Planned())
    proxies.end()
    (stop,) = stops
    assert stop.round_trip >= HELD
    assert stop.parts["to read, check, write and read back"] >= 8 * HELD


def test_a_client_that_another_thread_has_closed_is_replaced(bootstrap_servers):
    """If a client was closed because the request of another thread failed, the request is sent by a new client."""
    with closing(KafkaPythonReader(ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20))) as reader:
        here = reader.cluster_id()
        assert reader._connection._client is not None
        reader._connection._client.close()
        assert reader.cluster_id() == here


def test_a_client_that_is_closed_while_it_sends_is_replaced(bootstrap_servers):
    """If another thread closes a client between two steps of a request, the request is sent by a new client.

    kafka-python's thread then finds a connection without its transport.
    """
    with closing(KafkaPythonReader(ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20))) as reader:
        here = reader.cluster_id()
        client = reader._connection._client
        assert client is not None
        client.is_closed = True
        for connection in client._manager._conns.values():
            connection.transport = None
        assert reader.cluster_id() == here
        assert reader._connection._client is not client
