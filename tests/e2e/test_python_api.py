"""All topics, or some topics, of a group are handed over to another group, by calls from Python."""

from __future__ import annotations

from contextlib import closing

import pytest

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.make_plan import make_plan, plan_at_the_write, refuse_forbidden
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.stop import Wait, prove_stopped
from migrate_groups.migration.write import write
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.selection import Selection, TopicPattern, select
from migrate_groups.snapshots.snapshot import SnapshotTable

CLOCK = SystemClock()


@pytest.fixture
def clients(bootstrap_servers):
    """The client that writes, and the second client that reads back."""
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)
    with closing(SecondClient(config)) as second_client, closing(KafkaPythonWriter(config)) as writer:
        yield writer, second_client


@pytest.fixture
def old_group(world):
    """A stopped group on three topics with a committed offset in the middle of each partition: (group, topics)."""
    group = world.name("old")
    topics = [world.create_topic(2, topic=world.name(what)) for what in ("profiles", "messages", "events")]
    for number, topic in enumerate(topics):
        for partition in (0, 1):
            world.produce(topic, partition, 20)
            world.commit(group, TopicPartition(topic, partition), 5 + number + partition, metadata=f"app {number}")
    return group, topics


def move(clients, taken: SnapshotTable, new: str) -> Execution:
    """Write the offsets of a stopped group's snapshot to target group ``new``."""
    writer, second_client = clients
    named = name_groups(taken, [new], fan_out=False, restore=False)
    shown = make_plan(writer, named, WriteOptions(settle=0, guard=0))
    refuse_forbidden(shown.refusals(at_the_write=True))
    plan = plan_at_the_write(writer, named, shown)
    executions: list[Execution] = []
    return write(writer, second_client, Execution.of(plan, CLOCK.now()), executions.append)


def compared_values(row: Row) -> tuple[str, int, int | None, int | None, str, int | None]:
    """Return the values that must be equal in the source group and the target group."""
    return row.topic, row.partition, row.offset, row.leader_epoch, row.metadata, row.lag


def assert_same_offsets(clients, old: SnapshotTable, new: str) -> None:
    """Assert that the target group has the source group's offset for every partition, and no other offsets."""
    now = take_snapshot(clients[0], [new], CLOCK)
    assert [compared_values(row) for row in now.rows()] == [compared_values(row) for row in old.rows()]


def test_whole_group_moves_to_a_target_group(clients, world, old_group):
    """After the proof that the source group has stopped, every offset is handed over, with epoch and metadata.

    The source group keeps its offsets.
    """
    group, _ = old_group
    prove_stopped(clients[0], [group], CLOCK, Wait(settle=0.5))
    taken = take_snapshot(clients[0], [group], CLOCK)
    execution = move(clients, taken, f"{group}-new")
    assert (len(execution.changes), execution.failed, execution.remarks) == (6, (), ())
    assert_same_offsets(clients, taken, f"{group}-new")
    assert_same_offsets(clients, taken, group)


def test_some_topics_of_a_live_group_move_to_a_target_group(clients, world, old_group):
    """While the source group consumes its other topics, only the moved partitions are handed over."""
    group, (kept, *moved) = old_group
    world.join(group, kept)
    patterns = [TopicPattern(topic) for topic in moved]
    prove_stopped(clients[0], [group], CLOCK, Wait(settle=0.5), patterns=patterns)
    taken = select(take_snapshot(clients[0], [group], CLOCK), Selection(topics=tuple(patterns)))
    execution = move(clients, taken, f"{group}-part")
    assert (len(execution.changes), execution.failed) == (4, ())
    assert taken.topics() == sorted(moved)
    assert_same_offsets(clients, taken, f"{group}-part")
    assert describe_group(clients[0], group).state == "Stable"
