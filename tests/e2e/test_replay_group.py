"""A replay group whose offsets are set once, in the coordinator, before any member joins.

The tests compare it with a published Go service, which resets its offsets to a timestamp whenever partitions are
assigned to it, so that every rebalance replays all records again.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import confluent_kafka
import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import BrokerWorld, until

T = 1_700_000_000_000
FROM = "2023-11-14T22:13:20Z"
PARTITIONS, RECORDS = 4, 150
_A_FEW = 10

OnAssign = Callable[[confluent_kafka.Consumer, list[confluent_kafka.TopicPartition]], None]


def as_committed(consumer: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
    """Start at the committed offsets, as every client does by default."""
    consumer.assign(partitions)


def reset_to_timestamp(consumer: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
    """Start at timestamp `T`, as the Go service does whenever partitions are assigned to it."""
    asked = [confluent_kafka.TopicPartition(each.topic, each.partition, T) for each in partitions]
    consumer.assign(consumer.offsets_for_times(asked, 30))


@dataclass
class Replay:
    """A group whose members join and leave, and commit each record before the next one. It counts deliveries."""

    world: BrokerWorld
    group: str
    topic: str
    on_assign: OnAssign
    members: list[confluent_kafka.Consumer] = field(default_factory=list)
    delivered: Counter[str] = field(default_factory=Counter)
    rebalances: int = 0

    def join(self) -> None:
        """Add a member, and poll until every member has partitions."""
        self.members.append(self.world.consumer(self.group, **{"heartbeat.interval.ms": 200}))
        rebalances = self.rebalances
        self.members[-1].subscribe([self.topic], on_assign=self._assigned)
        self._step_until(lambda: self.rebalances > rebalances and self._settled())

    def leave(self, number: int) -> None:
        """Remove a member, and poll until the others have its partitions."""
        self.world.leave(self.members.pop(number))
        self._step_until(self._settled)

    def step(self) -> None:
        """Let every member poll and process a few records."""
        for member in self.members:
            for _ in range(_A_FEW):
                message = member.poll(0.01)
                if message is None or message.error() is not None:
                    break
                self.delivered[message.value().decode()] += 1
                member.commit(message=message, asynchronous=False)

    def deliver(self, records: int) -> None:
        """Poll until ``records`` more records have been delivered."""
        wanted = self.delivered.total() + records
        self._step_until(lambda: self.delivered.total() >= wanted)

    def finish(self, ends: dict[TopicPartition, int]) -> None:
        """Poll until the group has committed these log end offsets."""
        self._step_until(lambda: self.world.committed(self.group) == ends, seconds=60)

    @property
    def repeated(self) -> int:
        """Return the number of records that were delivered more than once."""
        return sum(times > 1 for times in self.delivered.values())

    def _assigned(self, consumer: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.rebalances += consumer is self.members[0]
        self.on_assign(consumer, partitions)

    def _step_until(self, condition: Callable[[], bool], *, seconds: float = 30) -> None:
        def stepped() -> bool:
            self.step()
            return condition()

        until(stepped, seconds=seconds)

    def _settled(self) -> bool:
        held = list(itertools.chain.from_iterable(member.assignment() for member in self.members))
        return len(held) == PARTITIONS and all(member.assignment() for member in self.members)


@pytest.fixture
def topic(world) -> str:
    """A topic with older records in each partition, and 150 records from timestamp `T` on."""
    name = world.create_topic(PARTITIONS, **{"retention.ms": "-1"})
    for partition in range(PARTITIONS):
        world.produce(name, partition, 50, prefix="old-", timestamp=T - 1)
        world.produce(name, partition, RECORDS, timestamp=T)
    return name


def play(replay: Replay) -> None:
    """Let three members join, one after another, and then one of them leave, during the replay."""
    replay.join()
    replay.deliver(50)
    replay.join()
    replay.deliver(50)
    replay.join()
    replay.deliver(50)
    replay.leave(1)
    replay.finish({TopicPartition(replay.topic, number): 50 + RECORDS for number in range(PARTITIONS)})


def test_rebalances_do_not_repeat_a_replay(cli, world, topic, capsys):
    """If a replay group's offsets are committed once, before any member joins, each record is delivered once.

    If the consumers instead reset their offsets at each assignment, some records are delivered again.
    """
    expected = {f"{topic}-{partition}-{number}" for partition in range(PARTITIONS) for number in range(RECORDS)}
    ours = Replay(world, world.name("replay"), topic, as_committed)
    cli("rewind", "--topic", topic, "--to-datetime", FROM, "-o", "replay.csv")
    cli("apply", "replay.csv", "--to-group", ours.group, "--yes")
    play(ours)
    cli("watch", ours.group, "--until", "replay.csv", "--wait", "30s")
    theirs = Replay(world, world.name("go-style"), topic, reset_to_timestamp)
    play(theirs)
    with capsys.disabled():
        print(  # noqa: T201  shows both counts
            f"\ndelivered again because of a rebalance: ours {ours.repeated}, reset at assignment {theirs.repeated}"
        )
    assert ours.rebalances >= 4
    assert theirs.rebalances >= 4
    assert set(ours.delivered) == set(theirs.delivered) == expected
    assert ours.repeated == 0
    assert theirs.repeated > 0
