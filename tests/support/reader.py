"""Types the command lines of the docs into a terminal, on a Kafka with the groups that the pages assume."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import confluent_kafka

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.broker_world import BrokerWorld, broker_world, wait_for_coordinators
from tests.support.pages import commands, not_printed, text_of
from tests.support.shell import Prompting, Shell

# So that a cut-over takes seconds.
_BRIEFLY = {"migrate": "--settle 1s --guard 1s", "apply": "--settle 1s --guard 1s", "verify": "--settle 1s"}
_HERE = ("kafka:9092", "kafka:9093", "source:9092", "a:9092", "127.0.0.1:44485")
_THERE = ("target:9092", "b:9092")


class Reader:
    """Types the command lines of the docs into a terminal, on clusters that only this reader uses.

    parts: all parts of the docs that are typed. elsewhere: the command lines in them that are not typed.
    """

    def __init__(
        self, folder: Path, jars: KafkaJars, java: Java, parts: Iterable[str], elsewhere: Iterable[str]
    ) -> None:
        self.folder, self._jars, self._java = folder, jars, java
        self._parts, self._elsewhere = [*parts], {*elsewhere}
        self._running = ExitStack()
        self.names: dict[str, str] = {}
        """Words of the pages, and what is typed in their place."""
        self.read: list[str] = []
        """The parts whose command lines were typed."""
        self.missing: list[str] = []
        """Lines of output that these parts show, and that were not printed."""
        self.kafka: list[Sandbox] = []
        """The running clusters."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._running.close()

    def starts(self, **settings: str) -> BrokerWorld:
        """Start the terminal and the first cluster that the pages name, and return other clients on this cluster."""
        world = self._cluster(_HERE, settings)
        self._starts_terminal(world)
        return world

    def starts_mirrored(self, pid: str) -> tuple[BrokerWorld, BrokerWorld, Shell]:
        """Start the terminal, and ``sandbox --mirror`` in another one.

        Return other clients on both clusters, and the other terminal. pid: what the pages write for the process id of
        the first cluster.
        """
        sandbox = self._running.enter_context(Shell(self.folder))
        sandbox.type("migrate-groups sandbox --mirror\n")
        sandbox.wait_for(r"\n127\.0\.0\.1:\d+\r\n127\.0\.0\.1:\d+\r")
        worlds = [self._named(of, at) for of, at in zip((_HERE, _THERE), sandbox.shown.split()[-2:], strict=True)]
        [self.names[pid]] = re.findall(r"cluster A is .*, process (\d+)", sandbox.shown)
        self._starts_terminal(worlds[0])
        return worlds[0], worlds[1], sandbox

    def _starts_terminal(self, world: BrokerWorld) -> None:
        shell = Prompting(self.folder, MIGRATE_GROUPS_BOOTSTRAP_SERVER=world.bootstrap_servers)
        self._shell = self._running.enter_context(shell)
        self.type("set -o pipefail")

    def starts_another(self) -> BrokerWorld:
        """Start the second cluster that the pages name, and return other clients on this cluster."""
        return self._cluster(_THERE, {})

    def reads(
        self,
        part: str,
        *,
        before: Mapping[str, Callable[[], object]] | None = None,
        codes: Mapping[str, int] | None = None,
        when: Mapping[str, Mapping[str, Callable[[], object]]] | None = None,
    ) -> None:
        """Type the command lines of a part, and check their exit codes. Add output that was not printed to `missing`.

        before: actions, by a regular expression that matches the command line before which they are done. codes: the
        exit codes other than 0, by such expressions. when: by such expressions, the actions during a command (`type`).
        """
        self.read.append(part)
        text = text_of(part, self._parts)
        lines = [line for line in commands(text) if line not in self._elsewhere]
        for line in lines:
            for action in _for(line, before or {}):
                action()
            during = next(iter(_for(line, when or {})), None)
            self.type(line, code=next(iter(_for(line, codes or {})), 0), when=during)
        for pattern in (*(before or {}), *(codes or {}), *(when or {})):
            assert any(re.search(pattern, line) for line in lines), f"{part} has no {pattern}"
        # The command to type next has the options that `type` has added, and the addresses that it has replaced.
        shown = re.sub(r"(?m)(?<=^next: )migrate-groups .*", _without_brief_options, self._shell.shown)
        for name, address in self.names.items():
            shown = shown.replace(f"-server {address}", f"-server {name}") if name in text else shown
        self.missing += not_printed(text, shown)

    def type(self, line: str, *, code: int = 0, when: Mapping[str, Callable[[], object]] | None = None) -> None:
        """Type a command line with this reader's addresses, answer its prompts with ``y``, and check its exit code.

        when: actions, by a regular expression. An action is done once the output matches.
        """
        line = re.sub(rf"\b(?:{'|'.join(map(re.escape, self.names))})\b", lambda found: self.names[found[0]], line)
        for verb, options in _BRIEFLY.items():
            line = re.sub(rf"^(migrate-groups {verb}) ", rf"\1 {options} ", line)
        if line.startswith("migrate-groups watch "):
            line += " 2>&1 | cat"  # because a terminal gets progress bars
        found = self._shell.answered(line, when or {})
        assert found == code, f"{line}\nexit code {found}, expected {code}\n{self._shell.shown[-5000:]}"

    def _cluster(self, names: Iterable[str], settings: Mapping[str, str]) -> BrokerWorld:
        kafka = self._running.enter_context(start_sandbox(self._jars, java=self._java, settings=settings))
        self.kafka.append(kafka)
        return self._named(names, kafka.bootstrap_servers)

    def _named(self, names: Iterable[str], address: str) -> BrokerWorld:
        wait_for_coordinators(address)
        self.names.update(dict.fromkeys(names, address))
        return self._running.enter_context(broker_world(address))


def _without_brief_options(found: re.Match[str]) -> str:
    return re.sub(r" --(?:settle|guard) \S+", "", found[0])


def _for(line: str, by_pattern: Mapping[str, Any]) -> list[Any]:
    return [each for pattern, each in by_pattern.items() if re.search(pattern, line)]


def committed(world: BrokerWorld, group: str, offsets: Mapping[str, list[int]], unread: int = 5) -> None:
    """Commit offsets for a group without members. offsets: for each topic the offsets of its partitions.

    Topics that do not exist are created. unread: the number of their records beyond each committed offset.
    """
    for topic, places in offsets.items():
        if topic not in world.topics():
            world.create_topic(len(places), topic=topic)
            for number, offset in enumerate(places):
                world.produce(topic, number, offset + unread)
    world.commit_all(
        group,
        {TopicPartition(topic, number): at for topic, places in offsets.items() for number, at in enumerate(places)},
    )


def commits_as_member(world: BrokerWorld, group: str, *offsets: Mapping[str, list[int | None]]) -> None:
    """Make a consumer join a group, commit these offsets one after the other, and leave.

    offsets: for each topic the offsets of its partitions; None: it does not commit for the partition.
    """
    member = world.join(group, *{topic for each in offsets for topic in each})
    for each in offsets:
        places = [
            confluent_kafka.TopicPartition(topic, number, at)
            for topic, places in each.items()
            for number, at in enumerate(places)
            if at is not None
        ]
        member.commit(offsets=places, asynchronous=False)
    world.leave(member)
