"""Kafka's kafka-consumer-groups reads the files and the offsets that this tool writes, and the other way round."""

from __future__ import annotations

import re

import confluent_kafka
import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.versions import CONSUMER, NEEDS_TOOL, NEEDS_TOOL_NAMES

pytestmark = NEEDS_TOOL_NAMES

NOW = ("--settle", "0s", "--guard", "0s", "--yes")


@pytest.fixture
def exported(cli, world):
    """A source group whose offsets are exported to two files.

    offsets.csv has four columns, with the offsets split into two groups; one.csv has three columns, without a group.
    """
    group = world.name("old")
    topics = [world.create_topic(2, topic=world.name(what)) for what in ("a", "b")]
    for number, topic in enumerate(topics):
        for partition in (0, 1):
            world.produce(topic, partition, 10)
            world.commit(
                group, TopicPartition(topic, partition), 2 + number + partition, metadata='with "quotes", commas'
            )
    cli("snapshot", group, "-o", "before.csv")
    cli("split", "before.csv", "--to", f"{group}-x=a-*", "--to", f"{group}-y=b-*", "-o", "split.csv")
    cli("export", "split.csv", "-o", "offsets.csv")
    cli("export", "before.csv", "-o", "one.csv")
    return group


@NEEDS_TOOL
@pytest.mark.parametrize("mode", ["--dry-run", "--execute"])
def test_kafkas_tool_applies_an_exported_file_of_several_groups(cli, world, kafka_tool, exported, mode):
    """Kafka's ``--from-file`` writes the same offsets from an exported file with four columns as this tool's `apply`.

    With ``--dry-run`` it shows the same offsets.
    """
    groups = [f"{exported}-x", f"{exported}-y"]
    arguments = [argument for group in groups for argument in ("--group", group)]
    done = kafka_tool("--reset-offsets", "--from-file", str(cli.folder / "offsets.csv"), mode, *arguments)
    shown = {
        (group, TopicPartition(topic, int(partition))): int(offset)
        for group, topic, partition, offset in re.findall(r"^(\S+) +(\S+) +(\d+) +(\d+)", done.stdout, re.MULTILINE)
    }
    by_kafka = {group: world.committed(group) for group in groups}
    assert [len(offsets) for offsets in by_kafka.values()] == ([0, 0] if mode == "--dry-run" else [2, 2])
    cli("apply", "split.csv", *NOW)
    ours = {(group, tp): offset for group in groups for tp, offset in world.committed(group).items()}
    assert len(ours) == 4
    assert shown == ours
    if mode == "--execute":
        assert {(group, tp): offset for group in groups for tp, offset in by_kafka[group].items()} == ours


def test_kafkas_tool_applies_an_exported_file_of_one_group(cli, world, kafka_tool, exported):
    """Kafka's ``--from-file --group`` writes the same offsets from an exported file with three columns as ``apply
    --to-group``.
    """
    file, by_kafka, by_us = str(cli.folder / "one.csv"), f"{exported}-kafka", f"{exported}-us"
    kafka_tool("--reset-offsets", "--from-file", file, "--execute", "--group", by_kafka)
    cli("apply", "before.csv", "--to-group", by_us, *NOW)
    assert len(world.committed(by_us)) == 4
    assert world.committed(by_kafka) == world.committed(by_us) == world.committed(exported)


def described(group: str, shown: str) -> list[list[str]]:
    """Return the cells of the header and of a group's lines in the output of --describe; the group's lines
    are sorted.
    """
    lines = [line.split() for line in shown.splitlines()]
    return [line for line in lines if line[:1] == ["GROUP"]] + sorted(line for line in lines if line[:1] == [group])


def test_kafkas_tool_describes_a_group_that_apply_wrote(cli, world, kafka_tool, exported):
    """For an Empty group to which `apply` has written, `describe` shows the same header and lines as Kafka's
    ``--describe``.
    """
    group = f"{exported}-x"
    cli("apply", "split.csv", *NOW)
    ours = cli("describe", group).stdout
    kafkas = kafka_tool("--describe", "--group", group).stdout
    assert described(group, ours) == described(group, kafkas)
    assert len(described(group, ours)) == 3
    assert ours.startswith(f"group {group}  Empty, classic, 0 members\n")
    assert re.search(rf"{group} .*Empty +0", kafka_tool("--describe", "--state", "--group", group).stdout)


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_a_live_group_is_described_as_kafkas_tool_does(cli, world, kafka_tool, protocol):
    """For a live group, `describe` shows the same lines as Kafka's tool, and one more for each member without
    partitions.
    """
    topic, other, group = world.create_topic(2), world.create_topic(1), world.name("live")
    for partition in (0, 1):
        world.produce(topic, partition, 10)
    first = world.join(group, topic, **{"group.protocol": protocol})
    first.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 4)], asynchronous=False)
    rest = [world.consumer(group, topic, **{"group.protocol": protocol}) for _ in range(2)]
    rest.append(world.consumer(group, other, **{"group.protocol": protocol}))

    def balanced() -> bool:
        held = [each.poll(0.05) or each.assignment() for each in (first, *rest)]
        return sorted(map(len, held)) == [0, 1, 1, 1]

    until(balanced)

    def same() -> bool:
        """Return whether both tools show the same lines. During a rebalance they may differ."""
        kafkas = described(group, kafka_tool("--describe", "--group", group).stdout)
        ours = described(group, cli("describe", group).stdout)
        idle = [line for line in ours if line[1] == "-"]
        shown[:] = [kafkas, ours, idle]
        return [line for line in ours if line not in idle] == kafkas

    shown: list[list[list[str]]] = []
    until(same)
    kafkas, _, idle = shown
    assert len(kafkas) == 4
    assert [line[1:6] for line in idle] == [["-"] * 5]
    assert [line[3:6] for line in kafkas if line[1] == topic] == [["4", "10", "6"], ["-", "10", "-"]]
    assert cli("describe", group).stdout.startswith(f"group {group}  Stable, {protocol}, 4 members\n")


def test_apply_reads_a_file_that_kafkas_tool_exported(cli, world, kafka_tool, exported):
    """`apply` writes the same offsets from the file that Kafka's ``--reset-offsets --to-current --export`` prints."""
    done = kafka_tool("--reset-offsets", "--to-current", "--all-topics", "--export", "--dry-run", "--group", exported)
    (cli.folder / "kafkas.csv").write_text(done.stdout)
    cli("apply", "kafkas.csv", "--no-source-group", "--to-group", f"{exported}-z", *NOW)
    assert world.committed(f"{exported}-z") == world.committed(exported)
