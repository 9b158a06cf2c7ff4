"""Calls from Python on a real broker: a group's topics are handed over, and the log of commits is judged."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from typing import Any

import msgspec
import pytest

import migrate_groups as mg
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.make_plan import make_plan, plan_at_the_write, refuse_forbidden
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.stop import Wait, prove_stopped
from migrate_groups.migration.write import write
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.show import after_split, audit, costs, history
from migrate_groups.show.result import Result
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.selection import Selection, TopicPattern, select
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.documents import parsed

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
    return write(Clients(writer, second_client), Execution.of(plan, CLOCK.now()), executions.append)


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


@pytest.mark.long
@pytest.mark.timeout(1000)
def test_calls_on_the_log_return_what_the_commands_print(world, bootstrap_servers, old_group, here, tmp_path):
    """Audit, history and costs return what the commands print, for a group that handed over its topics.

    The short form is in test_python_docs.py.
    """
    group, topics = old_group
    world.leave(world.join(group, *topics))
    new, run = f"{group}-new", tmp_path / "run"
    split, options = mg.Split(source=group, targets={new: ["*"]}), mg.WriteOptions(settle=0, guard=0)
    with mg.connect(bootstrap_servers, timeout=20) as cluster:
        cluster.migrate(split, run_dir=run, options=options)
        started = world.join(new, *topics)
        world.consume(started, 81)
        started.commit(asynchronous=False)
        world.leave(started)

        proof = cluster.audit(run, log=tmp_path / "audit-log")
        proof.check()
        shown = here("audit", run, "--log", tmp_path / "audit-log", "--format", "json")
        assert printed(audit.result(proof)) == parsed(shown.stdout)

        named = ("--log", tmp_path / "log", "--format", "json")
        past = cluster.history(group, new, log=tmp_path / "log", output=tmp_path / "1")
        shown = here("history", group, new, *named, "-o", tmp_path / "2")
        assert printed(history.result(past, tmp_path / "log"))["groups"] == parsed(shown.stdout)["groups"]
        assert [path.name for path in (tmp_path / "1").iterdir()] == ["history.parquet"]

        measured = cluster.costs(group, new, log=tmp_path / "log", output=tmp_path / "3", since=timedelta(days=1))
        shown = here("advise", group, new, "--since", "1d", *named, "--report", tmp_path / "4")
        assert printed(costs.result(measured.costs, measured.groups)) == parsed(shown.stdout)
        after = cluster.costs_after(run, log=tmp_path / "log", output=tmp_path / "5")
        shown = here("advise", "--after", run, *named, "--report", tmp_path / "6")
        assert printed(after_split.result(after)) == parsed(shown.stdout)


def printed(shown: Result) -> dict[str, Any]:
    """Return the JSON document of a result, as a command prints it."""
    return parsed(json.dumps(msgspec.to_builtins(shown.document)))
