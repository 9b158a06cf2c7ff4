"""Each case of tests/data/conformance.md, run with Kafka's own tool and with this tool."""

from __future__ import annotations

import csv
import os
import re
import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import tenacity

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.broker_world import broker_world, until, wait_for_coordinators
from tests.support.cli import CliHere
from tests.support.conformance import Row, Shop, as_kafkas, lines_of, make_topics, rows, summary
from tests.support.kafka_tool import KafkaTool
from tests.support.three_brokers import persistently
from tests.support.versions import NEEDS_TOOL

pytestmark = NEEDS_TOOL

ROWS = rows()
IN_SHORT = [
    "a time with a UTC offset",
    "a duration",
    "shift below the log start",
    "one partition",
    "a file of several groups",
    "a live group",
    "a topic of a stopped group",
    "delete a stopped group",
    "describe a live group",
    "describe its members, of KIP-848",
    "list the groups in a state",
]
"""The cases that run without --long too."""
ADDED = {
    "rewind": ["-o", "new.csv"],
    "apply": ["--on-existing", "overwrite", "--settle", "0s", "--guard", "0s", "--yes"],
    "delete-offsets": ["--settle", "0s", "--yes"],
    "delete-group": ["--yes"],
}


class Result(NamedTuple):
    """The result of a case with Kafka's tool or with this tool.

    shown: the result as conformance.md writes it. lines: the cells of the lines about the groups. printed: all output.
    """

    shown: str
    lines: Sequence[Sequence[str]]
    printed: str


class Stage(NamedTuple):
    """A cluster on which cases run.

    servers: its bootstrap servers. topics: the names of its topics, by the names in conformance.md. tool: Kafka's tool.
    """

    servers: str
    topics: Mapping[str, str]
    tool: KafkaTool


@pytest.fixture(scope="module")
def shared(bootstrap_servers: str, kafka_tool: KafkaTool) -> Stage:
    """The shared broker, for cases to which the groups of other tests do not matter."""
    with broker_world(bootstrap_servers) as world:
        return Stage(bootstrap_servers, make_topics(world), kafka_tool)


@pytest.fixture(scope="module")
def broken(java: Java, kafka_jars: KafkaJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Three brokers for cases with a leaderless partition: the third broker is killed, so ``orders-1`` has no
    leader.
    """
    with (
        start_sandbox(kafka_jars, java=java, brokers=3) as sandbox,
        KafkaTool(sandbox, tmp_path_factory.mktemp("tool")) as tool,
        broker_world(sandbox.bootstrap_servers) as world,
    ):
        wait_for_coordinators(sandbox.bootstrap_servers)
        upgraded = sandbox.run_tool("org.apache.kafka.tools.FeatureCommand", "upgrade", "--feature", "share.version=1")
        assert upgraded.returncode == 0, upgraded.stdout
        topics = make_topics(world, second_of_orders=3)
        os.kill(sandbox.nodes[2].pid, signal.SIGKILL)
        until(lambda: persistently(lambda: world.leader(topics["orders"], 1)) == -1)
        persistently(lambda: wait_for_coordinators(sandbox.bootstrap_servers))
        yield Stage(sandbox.bootstrap_servers, topics, tool)


@pytest.fixture(scope="module")
def alone(broken: Stage) -> Stage:
    """The brokers of `broken`, without groups of other test modules, and with topics whose partitions all
    have leaders.
    """
    with broker_world(broken.servers) as world:
        return broken._replace(topics=make_topics(world))


@pytest.fixture(
    params=[pytest.param(row, id=row.case, marks=[] if row.case in IN_SHORT else pytest.mark.long) for row in ROWS]
)
def row(request: pytest.FixtureRequest) -> Row:
    """A case: one row of a table in conformance.md."""
    found: Row = request.param
    return found


@pytest.fixture
def stage(request: pytest.FixtureRequest, row: Row) -> Stage:
    """The cluster on which the case ``row`` runs."""
    needs_own = "--all-groups" in row.kafkas[0] or row.group == "share"
    name = "broken" if "leader" in row.group else "alone" if needs_own else "shared"
    found: Stage = request.getfixturevalue(name)
    return found


def run_kafkas(row: Row, shop: Shop, tool: KafkaTool, folder: Path) -> Result:
    """Run the case's command of Kafka's tool, and return the result."""
    shop.write_files(folder)
    words = shlex.split(re.sub(r"(\w+\.csv)", rf"{folder}/\1", shop.named(row.kafkas[0])))
    done = tool(*words)
    lines = lines_of(shop.groups, done.stdout)
    if "--describe" in words and "--state" in words:
        lines = [[line[0], *line[-2:]] for line in lines]
    if row.reads:
        shown = summary(row, lines)
    elif "--reset-offsets" in words and "--execute" not in words:
        exported = [line.split(",") for line in done.stdout.splitlines()] if "--export" in words else lines
        shown = shop.shown(line[-3:] for line in exported if len(line) > 2)
    else:
        shown = shop.committed()
    return Result(f"{done.returncode}: {shown}", lines, done.stdout + done.stderr)


def our_words(command: str, shop: Shop) -> list[str]:
    """Return the arguments for this tool's command, including the arguments that conformance.md does not show."""
    verb, *words = shlex.split(shop.named(command))
    if verb == "apply" and not (words and words[0].endswith(".csv")):
        words = ["new.csv", *words, *([] if "--to-group" in words else ["--to-group", shop.groups[0]])]
    return [verb, *words, *ADDED.get(verb, [])]


def run_ours(row: Row, shop: Shop, cli: CliHere) -> Result:
    """Run the case's commands of this tool one after the other, until one fails, and return the result."""
    shop.write_files(cli.folder)
    new = cli.folder / "new.csv"
    code, printed = 0, ""
    for command in row.ours:
        if code == 0:
            code, out, err = cli.outcome(*our_words(command, shop))
            printed += out + err
    lines = as_kafkas(row, shop.groups, printed)
    if row.reads:
        shown = summary(row, lines)
    elif "--dry-run" in row.ours[-1]:
        shown = shop.shown((line[1], line[2], line[4]) for line in lines)
    elif row.ours[-1].startswith("apply") or not new.exists():
        shown = shop.committed()
    else:
        with new.open() as file:
            shown = shop.shown((each["topic"], each["partition"], each["offset"]) for each in csv.DictReader(file))
    return Result(f"{code}: {shown}", lines, printed)


def test_case(row, stage, tmp_path):
    """Kafka's tool and this tool have the results of conformance.md, and equal results exactly if its row
    says ``same``.
    """
    results: list[Result] = []

    def make() -> Shop:
        """Create the groups that the case needs."""
        made = Shop(world, stage.topics, row)
        if row.group == "share":
            group = made.groups[0]
            stage.tool.make_share_group(group, stage.topics["orders"], exists=lambda: group in world.groups())
        return made

    def look() -> bool:
        """Run the commands of Kafka's tool and of this tool.

        Return False if they only read, and a result differs from conformance.md.
        """
        shop.poll()
        results[:] = [run_kafkas(row, shop, stage.tool, tmp_path)]
        results.append(run_ours(row, shop if row.reads else make(), CliHere(tmp_path, stage.servers)))
        return not row.reads or [each.shown for each in results] == [row.kafkas_result, row.our_result]

    with broker_world(stage.servers) as world:
        shop = make()
        with suppress(tenacity.RetryError):
            until(look)
    kafkas, ours = results
    assert (kafkas.shown, ours.shown) == (row.kafkas_result, row.our_result), kafkas.printed + ours.printed
    assert (kafkas.shown == ours.shown) == (row.verdict == "same")
    if row.reads and row.verdict == "same":
        assert kafkas.lines == ours.lines


def test_each_case_has_a_name_of_its_own():
    """No two cases in conformance.md have the same name, and all cases that run without ``--long`` are there."""
    cases = {row.case for row in ROWS}
    assert len(cases) == len(ROWS)
    assert set(IN_SHORT) <= cases


@pytest.mark.long
def test_odd_names_go_to_kafkas_tool_and_back(cli, world, kafka_tool):
    """Files with unusual group and topic names pass from ``export`` to Kafka's tool, and from Kafka's tool to
    ``apply``.
    """
    topics = ["null", "NaN", "123", "00", "1e5", "0x10", "-dash", "__x", "topic", "partition", "a.b-c_d", "A" * 249]
    odd = ('one, "two"', "größe 群", "-o", "=1+1", "null", "two  blanks", "a\tb")
    groups = [*(f"{each}{world.name('')}" for each in odd), "partition", "offset"]
    offsets = {TopicPartition(topic, 0): number for number, topic in enumerate(topics)}
    for topic in topics:
        world.create_topic(topic=topic)
        world.produce(topic, 0, len(topics))
    for group in groups:
        world.commit_all(group, offsets)
    named = [argument for group in groups for argument in ("--group", group)]
    cli("snapshot", *named, "-o", "before.csv")
    cli("export", "before.csv", "-o", "ours.csv")

    def cleared() -> None:
        for group in groups:
            world.delete_group(group)

    cleared()
    kafka_tool("--reset-offsets", "--from-file", str(cli.folder / "ours.csv"), "--execute", *named)
    assert {group: world.committed(group) for group in groups} == dict.fromkeys(groups, offsets)
    exported = kafka_tool("--reset-offsets", "--to-current", "--all-topics", "--export", *named).stdout
    (cli.folder / "kafkas.csv").write_text(exported, encoding="utf-8")
    cleared()
    cli("apply", "kafkas.csv", "--no-source-group", "--yes")
    assert {group: world.committed(group) for group in groups} == dict.fromkeys(groups, offsets)
