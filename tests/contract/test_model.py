"""Random sequences of writes and migrations have the same results on the in-memory cluster and on a real broker."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.reading.requests import read_committed
from migrate_groups.migration.ways_back.delete_source_offsets import delete_source_offsets
from migrate_groups.migration.ways_back.hand_back import plan_hand_back
from migrate_groups.migration.ways_back.rollback import plan_rollback
from migrate_groups.migration.write import write
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import Receipt
from tests.support.broker_world import broker_world
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import handed_over
from tests.support.versions import NEEDS_MODEL

STEPS = 60


class Side:
    """One of the two clusters: the in-memory cluster or the real one. Groups and topics have the same names on both."""

    def __init__(self, writer, topics: list[str], groups: list[str]) -> None:
        self.writer, self.topics, self.groups = writer, topics, groups
        self.receipts: list[Receipt] = []

    def partition(self, dice: random.Random) -> TopicPartition:
        return TopicPartition(dice.choice(self.topics), dice.randrange(2))

    def alter(self, dice: random.Random) -> object:
        wanted = {self.partition(dice): CommittedOffset(offset=dice.randrange(11), leader_epoch=0) for _ in range(2)}
        (answers,) = self.writer.alter_offsets({dice.choice(self.groups): wanted}).values()
        return sorted((tp, str(answer.answer), answer.error) for tp, answer in answers.items())

    def delete(self, dice: random.Random) -> object:
        (answers,) = self.writer.delete_offsets({dice.choice(self.groups): [self.partition(dice)]}).values()
        return sorted((tp, str(answer.answer), answer.error) for tp, answer in answers.items())

    def migrate(self, dice: random.Random) -> object:
        source, target = dice.sample(self.groups, 2)
        options = WriteOptions(
            on_existing=dice.choice(["refuse", "forward", "overwrite"]),
            on_uncommitted=dice.choice(["refuse", "earliest", "leave"]),
        )
        return self._write(make_plan(self.writer, handed_over(self.writer, source, target), options))

    def roll_back(self, dice: random.Random) -> object:
        return self._write(plan_rollback(self.writer, dice.choice(self.receipts))) if self.receipts else None

    def give_back(self, dice: random.Random) -> object:
        if not self.receipts:
            return None
        return self._write(plan_hand_back(self.writer, dice.choice(self.receipts), FakeClock()))

    def clean_up(self, dice: random.Random) -> object:
        return (
            self._write(delete_source_offsets(one_cluster(self.writer), dice.choice(self.receipts)))
            if self.receipts
            else None
        )

    def _write(self, plan) -> object:
        verdicts = {
            check.name: str(check.verdict) for check in plan.checks if check.name not in ("retention", "permission")
        }
        if plan.refusals(at_the_write=True):
            return verdicts
        receipt = write(Clients(self.writer, self.writer), Execution.of(plan, FakeClock().now()), lambda state: None)
        self.receipts.append(Receipt((receipt,)))
        return verdicts, [str(entry.outcome) for entry in receipt.changes], [str(c.action) for c in plan.changes]

    def state(self) -> object:
        partitions = [TopicPartition(topic, number) for topic in self.topics for number in (0, 1)]
        return read_committed(self.writer, dict.fromkeys(self.groups, partitions))


def attempt(side: Side, method: str, seed: float) -> object:
    try:
        return getattr(side, method)(random.Random(seed))
    except MigrateGroupsError as error:
        return type(error).__name__


@NEEDS_MODEL
@pytest.mark.parametrize("seed", range(4))
def test_random_steps_have_the_same_results_in_memory_and_on_a_broker(bootstrap_servers, seed):
    """Random writes, migrations and rollbacks have the same results on the in-memory cluster as on a real broker.

    After each step, answers, verdicts, outcomes and committed offsets are compared.
    """
    dice = random.Random(seed)
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)
    with broker_world(bootstrap_servers) as world, closing(KafkaPythonWriter(config)) as writer:
        topics, groups = [world.name("t") for _ in range(2)], [world.name("g") for _ in range(3)]
        memory = InMemoryCluster()
        for topic in topics:
            memory.create_topic(topic, 2)
            world.create_topic(2, topic=topic)
            for number in (0, 1):
                memory.produce(topic, number, 10)
                world.produce(topic, number, 10)
        sides = [Side(memory, topics, groups), Side(writer, topics, groups)]
        history = []
        for _ in range(STEPS):
            method = dice.choice(
                ["alter", "alter", "delete", "migrate", "migrate", "roll_back", "give_back", "clean_up"]
            )
            step = dice.random()
            in_memory, real = (attempt(side, method, step) for side in sides)
            history.append((method, real))
            assert in_memory == real, history
            assert sides[0].state() == sides[1].state(), history
        assert any(method == "migrate" and isinstance(end, tuple) for method, end in history)
