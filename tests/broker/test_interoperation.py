"""Kafka's own kafka-consumer-groups takes files that the tool exports, and sees offsets that the tool writes."""

from __future__ import annotations

import re

import pytest

from migrate_groups.model.partitions import TopicPartition
from tests.support.versions import NEEDS_TOOL, NEEDS_TOOL_NAMES

pytestmark = NEEDS_TOOL_NAMES

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
NOW = ("--settle", "0s", "--guard", "0s", "--yes")


@pytest.fixture
def exported(cli, world):
    """Two topics split into two groups: offsets.csv with four columns, and one.csv with three columns for all."""
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
def test_kafkas_tool_takes_the_file_of_several_groups(cli, world, sandbox, exported, mode):
    """--from-file with four columns gives every group the offsets that apply gives it; its dry run shows the same."""
    groups = [f"{exported}-x", f"{exported}-y"]
    arguments = [argument for group in groups for argument in ("--group", group)]
    done = sandbox.run_tool(TOOL, "--reset-offsets", "--from-file", str(cli.folder / "offsets.csv"), mode, *arguments)
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


def test_kafkas_tool_takes_the_file_of_one_group(cli, world, sandbox, exported):
    """--from-file with three columns for one --group has the same result as apply --to-group."""
    file, by_kafka, by_us = str(cli.folder / "one.csv"), f"{exported}-kafka", f"{exported}-us"
    sandbox.run_tool(TOOL, "--reset-offsets", "--from-file", file, "--execute", "--group", by_kafka)
    cli("apply", "before.csv", "--to-group", by_us, *NOW)
    assert len(world.committed(by_us)) == 4
    assert world.committed(by_kafka) == world.committed(by_us) == world.committed(exported)


def test_kafkas_tool_describes_a_group_that_we_wrote(cli, world, sandbox, exported):
    """--describe shows the same offsets, log ends and lag as the snapshot; --state shows Empty."""
    group = f"{exported}-x"
    cli("apply", "split.csv", *NOW)
    described = sandbox.run_tool(TOOL, "--describe", "--group", group)
    seen = re.findall(rf"^{group} +(\S+) +(\d+) +(\d+) +(\d+) +(\d+) ", described.stdout, re.MULTILINE)
    ours = [line.split() for line in cli("describe", group).stdout.splitlines() if line.startswith("a-")]
    assert sorted(seen) == sorted((t, p, offset, end, lag) for t, p, offset, start, end, lag in ours)
    assert len(seen) == 2
    assert re.search(rf"{group} .*Empty +0", sandbox.run_tool(TOOL, "--describe", "--state", "--group", group).stdout)


def test_a_file_that_kafkas_tool_exported_is_applied(cli, world, sandbox, exported):
    """Apply takes the file that Kafka's --reset-offsets --to-current --export prints."""
    done = sandbox.run_tool(
        TOOL, "--reset-offsets", "--to-current", "--all-topics", "--export", "--dry-run", "--group", exported
    )
    (cli.folder / "kafkas.csv").write_text(done.stdout)
    cli("apply", "kafkas.csv", "--to-group", f"{exported}-z", *NOW)
    assert world.committed(f"{exported}-z") == world.committed(exported)
