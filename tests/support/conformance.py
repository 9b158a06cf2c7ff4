"""The cases in the tables of tests/data/conformance.md, and the groups and topics that they need."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import confluent_kafka

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.text import counted
from tests.support.broker_world import BrokerWorld, until

CASES = Path(__file__).parents[1] / "data" / "conformance.md"
_T = 1_700_000_000_000  # 2023-11-14T22:13:20Z
_HOUR = 3_600_000
_PARTITIONS = {"orders": 2, "clicks": 1, "views": 2}
_COMMITTED = {("orders", 0): 4, ("orders", 1): 5, ("clicks", 0): 6}
_FILES = {
    "one.csv": "orders,0,1\norders,1,2\nclicks,0,7\n",
    "both.csv": "shop,orders,0,1\nshop,orders,1,2\nother,orders,0,3\n",
    "outside.csv": "orders,0,99\norders,1,2\nclicks,0,1\n",
    "cut.csv": "orders,0,1\norders,1\n",
    "unended.csv": "orders,0,1\norders,1,2",
    "twice.csv": "orders,0,1\norders,0,2\n",
    "negative.csv": "orders,0,-1\norders,1,2\n",
    "unknown.csv": "nowhere,0,1\norders,1,2\n",
    "windows.csv": "orders,0,1\r\norders,1,2\r\n",
    "spaces.csv": "orders, 0, 1\norders, 1, 2\n",
    "header.csv": "topic,partition,offset\norders,0,1\norders,1,2\n",
    "quoted.csv": '"orders","0","1"\n"orders","1","2"\n',
    "empty.csv": "",
}
_SUBSCRIBED = {
    "live": ("orders", "clicks"),
    "uncommitted": ("orders", "clicks"),
    "idle": ("clicks",),
    "on clicks": ("clicks",),
}


class Row(NamedTuple):
    """A row of conformance.md: a group, the commands and results of Kafka's tool and ours, and why they differ.

    area: the heading of the row's table.
    """

    area: str
    case: str
    group: str
    kafkas: Sequence[str]
    kafkas_result: str
    ours: Sequence[str]
    our_result: str
    verdict: str

    @property
    def reads(self) -> bool:
        """Whether the commands of both tools only read."""
        return re.search("--describe|--list", self.kafkas[0]) is not None


def rows() -> list[Row]:
    """Return the rows of all tables in conformance.md."""
    return [row for area in CASES.read_text().split("\n## ")[1:] for row in _rows_of(area)]


def _rows_of(area: str) -> Iterator[Row]:
    title, *lines = area.splitlines()
    for line in lines:
        case, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if line.count("|") == 8 and case != "case" and set(case) != {"-"}:
            group, kafkas, kafkas_result, ours, our_result, verdict = cells
            commands = re.findall("`(.*?)`", kafkas), re.findall("`(.*?)`", ours)
            yield Row(title, case, group, commands[0], kafkas_result, commands[1], our_result, verdict)


def make_topics(world: BrokerWorld, *, second_of_orders: int = 1) -> dict[str, str]:
    """Make the topics that conformance.md names. Return their names on the broker, by their names in conformance.md.

    second_of_orders: the id of the broker for ``orders-1``; all other partitions are on broker 1.
    """
    names = {name: world.name(name) for name in _PARTITIONS}
    for name, partitions in _PARTITIONS.items():
        brokers = [1, second_of_orders if name == "orders" else 1][:partitions]
        world.create_topic(partitions, topic=names[name], brokers=brokers, **{"retention.ms": "-1"})
    for name, partition in (("orders", 0), ("orders", 1), ("views", 0)):
        world.produce_in_order(names[name], partition, [(f"{each}", _T + 1000 * each) for each in range(10)])
    now = int(time.time() * 1000)
    clicks = [(f"{each}", now - _HOUR * (10 - each)) for each in range(10)]
    world.produce_in_order(names["clicks"], 0, clicks)
    world.delete_records(names["clicks"], 0, 3)
    return names


class Shop:
    """The groups of one row of conformance.md on a broker: ``shop``, and ``other`` if Kafka's command names it."""

    def __init__(self, world: BrokerWorld, topics: Mapping[str, str], row: Row) -> None:
        self._world = world
        self._names = {**topics, **{each: world.name(each) for each in ("shop", "other", "nobody", "nowhere")}}
        self._members: list[confluent_kafka.Consumer] = []
        names = ["shop", *(["other"] if "other" in row.kafkas[0] else [])]
        self.groups = [self._names[group] for group in names]
        *_, kind = row.group.removesuffix(", KIP-848").split(", ")
        protocol = "consumer" if "KIP-848" in row.group else "classic"
        if row.group in ("stopped, classic", "stopped, KIP-848"):
            topics_read = [topics["orders"], topics["clicks"]]
            world.leave(world.join(self.groups[0], *topics_read, **{"group.protocol": protocol}))
        if kind not in ("missing", "uncommitted", "share"):
            committed = {("orders", 0): 4} if kind == "partly committed" else _COMMITTED
            world.commit_all(self.groups[0], self._partitions(committed))
        if "other" in names:
            world.commit_all(self.groups[1], self._partitions({("orders", 0): 1, ("orders", 1): 1}))
        self._before = self.committed()
        if kind in _SUBSCRIBED:
            self._join(kind, protocol)

    def _partitions(self, offsets: Mapping[tuple[str, int], int]) -> dict[TopicPartition, int]:
        return {TopicPartition(self._names[topic], number): offset for (topic, number), offset in offsets.items()}

    def _join(self, kind: str, protocol: str) -> None:
        topics = [self._names[topic] for topic in _SUBSCRIBED[kind]]
        self._members = [self._world.join(self.groups[0], *topics, **{"group.protocol": protocol})]
        if kind == "idle":
            self._members.append(self._world.consumer(self.groups[0], *topics, **{"group.protocol": protocol}))
            until(lambda: sorted(map(len, self.poll())) == [0, 1])

    def poll(self) -> list[list[confluent_kafka.TopicPartition]]:
        """Let each member take part in a rebalance. Return the assignment of each member."""
        return [each.poll(0.05) or each.assignment() for each in self._members]

    def named(self, text: str) -> str:
        """Return a command or file of conformance.md with the groups' and topics' names on the broker."""
        return re.sub(r"\w+", lambda word: self._names.get(word[0], word[0]), text)

    def write_files(self, folder: Path) -> None:
        """Write the files that the commands in conformance.md read."""
        for file, text in _FILES.items():
            (folder / file).write_text(self.named(text))

    def committed(self) -> str:
        """Return the committed offsets of the groups, as conformance.md writes them."""
        return ", ".join(self._written(self._world.committed(group)) for group in self.groups)

    def shown(self, offsets: Iterable[Sequence[str]]) -> str:
        """Return offsets that a tool printed, as conformance.md writes them. Check that the tool wrote nothing.

        offsets: rows of topic, partition and offset.
        """
        assert self.committed() == self._before
        found = {TopicPartition(topic, int(number)): int(offset) for topic, number, offset in offsets}
        return f"shows {self._written(found)}" if found else self.committed()

    def _written(self, offsets: Mapping[TopicPartition, int]) -> str:
        partitions = [(topic, number) for topic, total in _PARTITIONS.items() for number in range(total)]
        cells = [str(offsets.get(TopicPartition(self._names[topic], number), "-")) for topic, number in partitions]
        return re.sub(r"( ?-)+$", "", " ".join(cells)) or "none"


def lines_of(groups: Sequence[str], printed: str) -> list[list[str]]:
    """Return the cells of each line that begins with one of the groups; the lines are sorted."""
    return sorted(cells for line in printed.splitlines() if (cells := line.split()) and cells[0] in groups)


def summary(row: Row, lines: Sequence[Sequence[str]]) -> str:
    """Return what the lines about a group contain, as conformance.md writes it."""
    if lines and re.search("--list --(state|type)", row.kafkas[0]):
        return lines[0][1]
    if lines and "--state" in row.kafkas[0]:
        _, state, members = lines[0]
        return f"{state}, {counted(int(members), 'member')}"
    return counted(len(lines), "line") if lines else "nothing"


def as_kafkas(row: Row, groups: Sequence[str], printed: str) -> list[list[str]]:
    """Convert our output to the lines that Kafka's tool prints if both agree. Each line is a list of cells."""
    lines = lines_of(groups, printed)
    if match := re.search("--list --(state|type)", row.kafkas[0]):
        return [[line[0], line[1] if match[1] == "state" else line[2].capitalize()] for line in lines]
    if "--list" in row.kafkas[0]:
        return [line[:1] for line in lines]
    if "--state" in row.kafkas[0]:
        return [list(found) for found in re.findall(r"^group (\S+)  (\w+), \w+, (\d+) member", printed, re.M)]
    if "--members" in row.kafkas[0]:
        partitions: Counter[tuple[str, ...]] = Counter()
        for group, topic, *_, member, host, client in lines:
            partitions[group, member, host, client] += topic != "-"
        return sorted([*key, str(number)] for key, number in partitions.items() if key[1] != "-")
    return lines
