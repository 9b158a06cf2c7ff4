"""A scenario: a source group and its records, the command that meets the fault, and what must be true afterwards.

Every scenario has a source group ``old`` with committed offsets on the topics ``pay`` and ``find``. An application that
commits an offset has processed the records below it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.campaign.tool import PATIENCE, Tool
from tests.support.old_application import OldApplication
from tests.support.specs import split_spec
from tests.support.three_brokers import ThreeBrokers

Offsets = dict[tuple[str, TopicPartition], int | None]
"""A committed offset by group and partition; None: the group has none."""


class Scenario:
    """A source group, and a command that meets a fault.

    By default ``migrate`` hands each topic of a stopped source group over to a target group.

    - steps: the highest step number that is drawn for a fault.
    - waits: whether the command waits until the application of the source group has stopped.
    - lives_on: whether that application runs from `begin` to `finish`.
    - written: the groups that the command writes to.
    - positions: the offset in each partition below which the applications have processed all records.
    - only_on: the id of the only broker that has a replica of the topic ``pay``; None: all three brokers have one.
    """

    title: ClassVar[str] = "a whole group"
    steps: ClassVar[int] = 74
    protocol: ClassVar[str] = "classic"
    options: ClassVar[tuple[str, ...]] = ()
    waits: ClassVar[bool] = True
    lives_on: ClassVar[bool] = False

    def __init__(self, chance: random.Random, brokers: ThreeBrokers, tool: Tool, only_on: int | None) -> None:
        self.chance, self.brokers, self.tool, self.only_on = chance, brokers, tool, only_on
        self.source = brokers.name("old")
        self.pay = brokers.create_topic("pay", 1 if only_on else 2, only_on=only_on)
        self.find = brokers.create_topic("find")
        self.topics = [self.pay, self.find]
        self.targets = self.split()
        self.written = [*self.targets]
        self.partitions = brokers.partitions(self.topics)
        self.produced: Counter[TopicPartition] = Counter()
        self.positions: dict[TopicPartition, int] = {}
        self._applications: list[OldApplication] = []

    # What differs from scenario to scenario.

    def split(self) -> dict[str, str]:
        """Return the topic that each target group gets."""
        return {self.brokers.name("new"): topic for topic in self.topics}

    def begin(self) -> None:
        """Commit a random offset of the source group in each partition, and write the split spec."""
        self.produce()
        self.brokers.flush()
        self.positions = {each: self.chance.randint(0, self.produced[each]) for each in self.partitions}
        self.commit_as_source()
        self._write_spec()

    def commit_as_source(self) -> None:
        """Commit ``positions`` for the source group."""
        self.brokers.commit(self.source, self.positions)

    @property
    def command(self) -> list[str]:
        """The command that meets the fault."""
        return ["migrate", "split.toml", "--yes", "--wait", "60s", *self.options]

    @property
    def receipt(self) -> Path:
        """The path of the receipt."""
        return self.tool.folder / "split.toml.run" / "receipt.json"

    @property
    def receipts(self) -> Mapping[Path, Collection[str]]:
        """The groups that the command writes to, by the receipt that records it."""
        return {self.receipt: self.written}

    def expected(self) -> Offsets:
        """Return the offsets that must be committed once the command has succeeded."""
        return {
            (each, partition): self.positions[partition]
            for group, topic in self.targets.items()
            for partition in self.brokers.partitions([topic])
            for each in (group, self.source)
        }

    def carriers(self) -> Mapping[str, list[str]]:
        """Return, by group, the topics that the group's application must process once the command has succeeded."""
        return {group: [topic] for group, topic in self.targets.items()}

    def join(self) -> None:
        """Start the application for which the command waits, if there is one."""
        if self.waits:
            self.start_application(self.topics)

    def leave(self) -> None:
        """Stop the application for which the command waits, if it runs."""
        if not self.lives_on:
            self.end()

    def end(self) -> None:
        """Stop the applications of source groups that run. Each commits all that it has processed."""
        while self._applications:
            application = self._applications[-1]
            application.stop()
            self.positions.update(application.positions)
            self._applications.pop()

    def finish(self) -> tuple[set[str], Counter[str]]:
        """Let the applications process the remaining records.

        Return the values that must be processed once, and how often each value was processed.
        """
        self.end()
        self.produce()
        self.brokers.flush()
        processed = self.processed()
        for group, topics in self.carriers().items():
            reset = self.chance.choice(("earliest", "latest"))
            processed += self.brokers.drain(group, topics, reset=reset, protocol=self.protocol)
        return {value for each in self.partitions for value in values_of(each, self.produced[each])}, processed

    # What they share.

    def processed(self) -> Counter[str]:
        """Return how often each value was processed so far."""
        return Counter(value for each in self.partitions for value in values_of(each, self.positions[each]))

    def produce(self) -> None:
        more = {each: self.chance.randint(1, 20) for each in self.partitions}
        self.brokers.produce(
            {each: values_of(each, self.produced[each] + count)[self.produced[each] :] for each, count in more.items()}
        )
        self.produced.update(more)

    def _write_spec(self) -> None:
        settle, guard = self.chance.choice((0, 0, 300)), self.chance.choice((0, 0, 1))
        stay = [topic for topic in self.topics if topic not in self.targets.values()]
        spec = split_spec(self.source, self.targets, stay=stay, settle=f"{settle}ms", guard=f"{guard}s")
        (self.tool.folder / "split.toml").write_text(spec)

    def start_application(self, topics: list[str], group: str = "") -> None:
        """Start an application of a group, by default the source group, and return once it has an assignment."""
        begun = {each: self.positions[each] for each in self.brokers.partitions(topics)}
        application = OldApplication(self.brokers, group or self.source, topics, begun, protocol=self.protocol)
        self._applications.append(application)
        until(application.joined, seconds=PATIENCE)

    def committed(self, groups: Collection[str] = ()) -> Offsets:
        """Return the committed offsets of the groups and partitions in `expected`.

        groups: only these groups; empty: all groups.
        """
        keys = self.expected().keys()
        found: Offsets = {}
        for group in groups or sorted({group for group, _ in keys}):
            partitions = [partition for of, partition in keys if of == group]
            offsets = self.brokers.committed(group, partitions)
            found |= {(group, partition): offsets.get(partition) for partition in partitions}
        return found


def values_of(partition: TopicPartition, below: int) -> list[str]:
    return [f"{partition}-{number}" for number in range(below)]
