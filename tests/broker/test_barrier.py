"""A commit that waits for its replicas is not readable: the last reading of committed offsets comes after it."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection, OfGroups
from migrate_groups.kafka.group_requests import commit_offsets
from migrate_groups.kafka.private import Client
from migrate_groups.migration.hand_over.cut_over import CutOver
from migrate_groups.migration.hand_over.prepared import Prepared
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, OWN_GROUPS, journal_group, log_partition, probe_group
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.broker_world import broker_world, until
from tests.support.cli import CliHere
from tests.support.mirror import records, write
from tests.support.offsets_topic import move_coordinator, replicate_again
from tests.support.proxy import LISTENER
from tests.support.specs import split_spec
from tests.support.three_brokers import ThreeBrokers
from tests.support.versions import NEEDS_THREE_BROKERS

pytestmark = NEEDS_THREE_BROKERS

OFFSETS_PARTITIONS = 4  # of the sandbox (migrate_groups/sandbox/properties.py)
BEFORE, AFTER = 5, 1000


@pytest.fixture(scope="module")
def cluster(java: Java, kafka_jars: KafkaJars) -> Iterator[ThreeBrokers]:
    """Three brokers that replicate through proxies, and stay in-sync replicas while the proxies hold all bytes."""
    settings = {"inter.broker.listener.name": LISTENER, "replica.lag.time.max.ms": "120000"}
    with start_sandbox(
        kafka_jars, java=java, brokers=3, timeout=120, listeners={LISTENER: "PLAINTEXT"}, settings=settings
    ) as sandbox:
        brokers = ThreeBrokers(sandbox)
        brokers.proxies()
        yield brokers


class Waiting:
    """A group with committed offset 5, and a spec that hands its topic over to a new group."""

    def __init__(self, brokers: ThreeBrokers, folder: Path) -> None:
        self.brokers = brokers
        self.group = brokers.name("old")
        self.number = log_partition(self.group, OFFSETS_PARTITIONS)
        # On the same partition of the offsets topic, so that a write shows there too.
        self.new = next(
            name
            for name in (f"{self.group}-{each}" for each in itertools.count())
            if log_partition(name, OFFSETS_PARTITIONS) == self.number
        )
        self.coordinator = brokers.coordinator(self.group)
        self.partition = TopicPartition(brokers.create_topic("t", 1, only_on=self.coordinator.node_id), 0)
        brokers.produce({self.partition: [f"record {number}" for number in range(AFTER)]})
        brokers.flush()
        (folder / "split.toml").write_text(split_spec(self.group, {self.new: self.partition.topic}))
        self.cli = CliHere(folder, brokers.bootstrap_servers)
        brokers.commit(self.group, {self.partition: BEFORE})

    def _commit(self) -> None:
        """Commit 1000, as a consumer without membership does, and wait for the answer. Sends one request."""
        offsets = {self.group: {self.partition: CommittedOffset(offset=AFTER)}}
        config = ClientConfig(bootstrap_servers=self.brokers.bootstrap_servers, timeout=60)
        with closing(KafkaConnection(config)) as connection:
            connection.run_once(lambda client: commit_offsets(offsets, {})(client, [*offsets], OfGroups()))

    def commit_unreplicated(self) -> None:
        """Stop the replication, and commit 1000. Return when the coordinator has accepted this commit."""
        self.brokers.proxies().hold()
        before = self.log_size()
        threading.Thread(target=self._commit).start()
        until(lambda: self.log_size() > before)

    def replicate(self) -> None:
        self.brokers.proxies().heal()

    def replicate_after_the_next_commit(self) -> None:
        """Let the followers go on when the coordinator has accepted another commit."""
        before = self.log_size()

        def wait() -> None:
            until(lambda: self.log_size() > before)  # the probe, or without it the write of the old offset
            self.replicate()

        threading.Thread(target=wait).start()

    def log_size(self) -> int:
        """Return the size of the log to which the coordinator has appended the group's commits, in bytes."""
        logs = (self.coordinator.folder / "data" / f"{OFFSETS_TOPIC}-{self.number}").glob("*.log")
        return sum(log.stat().st_size for log in logs)

    def own_groups(self) -> list[str]:
        listed = json.loads(self.cli("list", "--format", "json").stdout)["groups"]
        return [each["group"] for each in listed if each["group"].startswith(OWN_GROUPS)]


@pytest.fixture
def waiting(cluster: ThreeBrokers, tmp_path: Path) -> Iterator[Waiting]:
    cluster.heal()
    made = Waiting(cluster, tmp_path)
    yield made
    made.replicate()


def committing_after_stop(
    waiting: Waiting, then: Callable[[], object] = lambda: None
) -> AbstractContextManager[object]:
    """Within the context, a client commits 1000, without replicas, when `migrate` has seen the group stop.

    then: called after the commit was accepted.
    """
    wait_for_stop = CutOver.wait_for_stop

    def stop_and_commit(self) -> None:
        wait_for_stop(self)
        waiting.commit_unreplicated()
        then()

    return mock.patch.object(CutOver, "wait_for_stop", stop_and_commit)


def test_a_commit_that_waits_for_its_replicas_is_handed_over(waiting):
    """A commit is accepted, and no follower has it: `migrate` waits until it is readable, and hands it over.

    No probe group is left.
    """
    with committing_after_stop(waiting, waiting.replicate_after_the_next_commit):
        waiting.cli("migrate", "split.toml", "--yes")
    assert waiting.brokers.committed(waiting.new, [waiting.partition]) == {waiting.partition: AFTER}
    assert waiting.own_groups() == []


def test_a_move_to_another_cluster_hands_over_a_commit_that_waits_for_its_replicas(waiting, target_servers):
    """A commit is accepted on the source cluster, and no follower has it: `migrate` to another cluster hands it over.

    No probe group is left on either cluster. A dry run before it has made none.
    """
    move = ("migrate", "split.toml", "--to-bootstrap-server", target_servers)
    with broker_world(target_servers) as target:
        target.create_topic(topic=waiting.partition.topic)
        copied = records(waiting.brokers.bootstrap_servers, *waiting.partition)
        write(target_servers, waiting.partition.topic, copied)
        others = target.groups()  # of tests before this one
        before = waiting.log_size()
        waiting.cli(*move, "--dry-run")
        assert waiting.log_size() == before
        with committing_after_stop(waiting, waiting.replicate_after_the_next_commit):
            waiting.cli(*move, "--yes")
        assert target.committed(waiting.new) == {waiting.partition: AFTER}
        own = {each for each in target.groups() if each.startswith(OWN_GROUPS) and each not in others}
        assert (waiting.own_groups(), own) == ([], {journal_group(waiting.new)})


def test_a_commit_that_waits_past_the_timeout_is_a_refusal(waiting):
    """A commit is accepted, and no follower gets it within ``--timeout``: `migrate` is refused, and writes nothing.

    The same command is safe when the followers are back.
    """
    with committing_after_stop(waiting):
        refusal = waiting.cli.fails("migrate", "split.toml", "--yes", "--timeout", "3s", code=3)
    assert "barrier: no answer to the commit to migrate-groups.barrier." in refusal
    assert "nothing was written" in refusal
    waiting.replicate()
    assert waiting.brokers.committed(waiting.new, [waiting.partition]) == {}
    waiting.cli("migrate", "split.toml", "--yes")
    # Not always 1000, because Kafka 3 forgets a commit that it has answered with a time-out.
    now = waiting.brokers.committed(waiting.group, [waiting.partition])
    assert waiting.brokers.committed(waiting.new, [waiting.partition]) == now
    assert waiting.own_groups() == []


def test_a_fetch_sent_right_behind_a_probe_reads_the_waiting_commit(waiting):
    """A fetch is sent behind the commit to the probe group, on its connection and before its answer.

    It returns the commit that waited for its replicas, although it does not ask for stable offsets: a broker handles
    the requests of a connection one after the other.
    """
    probe = probe_group(waiting.number, OFFSETS_PARTITIONS)
    topic, number = waiting.partition

    async def both(client: Client) -> tuple[Any, Any]:
        written = OffsetCommitRequest.OffsetCommitRequestTopic
        partition = written.OffsetCommitRequestPartition(partition_index=number, committed_offset=0)
        commit = OffsetCommitRequest(
            group_id=probe,
            generation_id_or_member_epoch=-1,
            member_id="",
            retention_time_ms=-1,
            topics=[written(name=topic, partitions=[partition])],
            max_version=7,
        )
        asked = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[number])
        fetch = OffsetFetchRequest(group_id=waiting.group, topics=[asked], require_stable=False, max_version=7)
        node = await client.coordinator(waiting.group)
        sent = [client.begin(client.send, each, node) for each in (commit, fetch)]
        return await sent[0], await sent[1]

    waiting.commit_unreplicated()
    waiting.replicate_after_the_next_commit()
    config = ClientConfig(bootstrap_servers=waiting.brokers.bootstrap_servers, timeout=60)
    with closing(KafkaConnection(config)) as connection:
        committed, fetched = connection.run_once(both)
    assert committed.topics[0].partitions[0].error_code == 0
    assert fetched.topics[0].partitions[0].committed_offset == AFTER
    waiting.cli("delete-group", probe, "--yes")


def test_a_coordinator_that_moves_around_the_barrier(waiting):
    """The coordinator moves after the stop, and again before the last reading: the offset is handed over."""
    wait_for_stop, read = CutOver.wait_for_stop, CutOver.read

    def stop_and_move(self) -> None:
        wait_for_stop(self)
        move_coordinator(waiting.brokers, waiting.group)

    def move_and_read(self) -> Prepared | None:
        replicate_again(waiting.brokers, waiting.group)
        move_coordinator(waiting.brokers, waiting.group)
        return read(self)

    with (
        mock.patch.object(CutOver, "wait_for_stop", stop_and_move),
        mock.patch.object(CutOver, "read", move_and_read),
    ):
        waiting.cli("migrate", "split.toml", "--yes")
    replicate_again(waiting.brokers, waiting.group)
    assert waiting.brokers.committed(waiting.new, [waiting.partition]) == {waiting.partition: BEFORE}
    assert waiting.own_groups() == []
