"""A fleet on real brokers: groups that stop at any time are handed over side by side, also by a run that was killed.

Living applications write each record that they process to a ledger.
"""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_world import until
from tests.support.closed_consumers import close_consumer
from tests.support.versions import NEEDS_KIP_848

GROUPS, TOPICS, PARTITIONS, RECORDS = 12, 3, 4, 40


class Applications:
    """The applications of a fleet: one consumer for each group, in turns classic and KIP-848, and their ledgers."""

    def __init__(self, world, cli) -> None:
        self.world, self.cli = world, cli
        self.topics = [world.name(f"topic-{number}") for number in range(TOPICS)]
        for topic in self.topics:
            world.create_topic(PARTITIONS, topic=topic)
            for partition in range(PARTITIONS):
                world.produce(topic, partition, RECORDS)
        self.base = world.name("fleet")
        self.groups = [f"{self.base}-{number:02}" for number in range(GROUPS)]
        self.ledger = {group: Counter[tuple[int, int]]() for group in self.groups}
        (cli.folder / "fleet.toml").write_text(
            f'groups = ["{self.base}-*"]\nrename = ["*=new.*"]\n'
            '[options]\nsettle = "2s"\nguard = "2s"\non_uncommitted = "earliest"\n'
        )

    def consumer(self, group: str, number: int):
        protocol = {"group.protocol": "consumer"} if number % 2 else {}
        return self.world.consumer(group, self.topics[number % TOPICS], **{"enable.auto.commit": False, **protocol})

    def process(self, consumer, group: str, records: int) -> None:
        """Process so many records more, and commit each batch."""
        left = records
        while left > 0:
            messages = consumer.consume(min(left, 20), 5.0)
            for message in messages:
                assert not message.error(), message.error()
                self.ledger[group][message.partition(), message.offset()] += 1
            left -= len(messages)
            if messages:
                consumer.commit(asynchronous=False)

    def finish(self) -> None:
        """Let the new applications process what is left."""
        for number, group in enumerate(self.groups):
            left = PARTITIONS * RECORDS - self.ledger[group].total()
            consumer = self.consumer(f"new.{group}", number)
            self.process(consumer, group, left)
            assert consumer.poll(0.5) is None
            close_consumer(consumer)

    def check(self) -> None:
        """Check that each group's records were processed exactly once."""
        every = Counter((partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS))
        for group in self.groups:
            assert self.ledger[group] == every, group

    def events(self) -> list[dict[str, Any]]:
        path = self.cli.folder / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def of(self, event: str) -> set[str]:
        """Return the groups that had this event."""
        return {each["source_groups"][0] for each in self.events() if each["event"] == event}


@pytest.fixture
def applications(world, cli) -> Applications:
    return Applications(world, cli)


MIGRATE = ("migrate", "fleet.toml", "--yes", "--wait", "2m", "--events", "events.jsonl")


@NEEDS_KIP_848
def test_each_group_of_a_fleet_goes_on_exactly_where_it_stopped(applications):
    """Groups that stop one after the other are each handed over beside the others, before the last one has stopped.

    No record is skipped or processed twice.
    """
    with ExitStack() as stack:
        consumers = {group: applications.consumer(group, number) for number, group in enumerate(applications.groups)}
        for number, (group, consumer) in enumerate(consumers.items()):
            stack.callback(close_consumer, consumer)
            applications.process(consumer, group, 20 + 7 * number)
        running = stack.enter_context(applications.cli.start(*MIGRATE))
        until(lambda: len(applications.of("planned")) == GROUPS, seconds=60)
        last = applications.groups[-1]
        for group in applications.groups[:-1]:
            close_consumer(consumers[group])
        until(lambda: len(applications.of("START")) == GROUPS - 1, seconds=60)
        assert last not in applications.of("START")
        close_consumer(consumers[last])
        out, err = running.communicate(timeout=60)
        assert running.returncode == 0, err
    assert f"{GROUPS} groups: {GROUPS} moved" in out
    outages = [json.loads(path.read_text())["executions"][0]["outage"] for path in _receipts(applications)]
    assert [each for each in outages if not (each["ran_until"] and each["start_at"])] == []
    applications.finish()
    applications.check()


@NEEDS_KIP_848
@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_fleet_goes_on(applications, seed):
    """If the command is killed while it hands groups over, the same command again completes all of them.

    No record is skipped or processed twice.
    """
    for number, group in enumerate(applications.groups):
        consumer = applications.consumer(group, number)
        applications.process(consumer, group, 20 + 7 * number)
        close_consumer(consumer)
    chance = random.Random(seed)
    with applications.cli.start(*MIGRATE) as running:
        if seed % 2:
            until(lambda: _receipts(applications) or running.poll() is not None, seconds=60)
            assert running.poll() is None, running.communicate()
        else:
            most = chance.randrange(1, GROUPS)
            until(lambda: len(applications.of("START")) >= most, seconds=60)
        running.send_signal(signal.SIGKILL)
        running.wait(30)
    done = applications.cli(*MIGRATE)
    assert f"{GROUPS} groups: {GROUPS} moved" in done.stdout
    applications.finish()
    applications.check()


def _receipts(applications: Applications) -> list[Path]:
    return sorted(applications.cli.folder.glob("fleet.toml.run/*/receipt.json"))
