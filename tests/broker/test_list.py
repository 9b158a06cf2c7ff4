"""``list`` on a real broker: many groups, groups of every kind, and groups that are created and deleted at the same
time.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing, suppress
from threading import Event, Thread

import kafka.errors
import pytest

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.reading.groups import describe, list_groups
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.selection import TopicPattern
from tests.support.documents import parsed
from tests.support.raw_member import raw_member
from tests.support.versions import NEEDS_KIP_848, NEEDS_MANY_GROUPS


@pytest.fixture
def reader(bootstrap_servers):
    """The client that ``list`` uses."""
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)
    with closing(KafkaPythonReader(config)) as opened:
        yield opened


@NEEDS_MANY_GROUPS
def test_the_number_of_requests_does_not_grow_with_groups(world, reader, sent):
    """With 200 more groups, `list` and ``describe --all-groups`` send no more requests than with one group."""
    topic, prefix = world.create_topic(3), world.name("many")
    for partition in range(3):
        world.produce(topic, partition, 10)

    def groups(number: int) -> list[str]:
        return [f"{prefix}-{each:03}" for each in range(number)]

    def requests(number: int):
        sent.clear()
        listed = list_groups(reader, SystemClock(), topics=[TopicPattern(topic)])
        assert [each.group for each in listed] == groups(number)
        counts = [sent.copy()]
        for look in (
            lambda: list_groups(reader, SystemClock()),
            lambda: describe(reader, groups(number), SystemClock()),
        ):
            sent.clear()
            assert len(look()) >= number
            counts.append(sent.copy())
        return listed, counts

    world.commit(groups(1)[0], TopicPartition(topic, 0), 4)
    _, one = requests(1)
    for number, group in enumerate(groups(201)[1:], start=1):
        world.commit(group, TopicPartition(topic, number % 3), 4)
    listed, many = requests(201)
    # Not equal: under load ListGroups was once sent twice for the one group.
    assert [after for before, after in zip(one, many, strict=True) if not after <= before] == []
    assert {"ListGroups", "DescribeGroups", "OffsetFetch", "ListOffsets"} <= many[0].keys()
    assert max(sum(each.values()) for each in many) < 12
    assert [each.lag for each in listed] == [6] * 201


@NEEDS_KIP_848
def test_groups_of_every_kind_are_listed(cli, world):
    """`list` shows groups of every protocol with state, type, members and lag; ``--topic`` and ``--state`` select
    groups.
    """
    topic, groups = world.create_topic(2), [world.name(each) for each in ("a", "b", "c", "d")]
    for partition in (0, 1):
        world.produce(topic, partition, 10)
    for group, protocol in zip(groups, ("classic", "consumer"), strict=False):
        world.join(group, topic, **{"group.protocol": protocol})
    world.commit(groups[2], TopicPartition(topic, 0), 4)
    with raw_member(world.bootstrap_servers, groups[3], protocol_type="connect"):
        shown = [line.split() for line in cli("list").stdout.splitlines()]
        document = parsed(cli("list", "--topic", topic, "--state", "stable", "--format", "json").stdout)
    lines = {line[0]: line[1:7] for line in shown if line[0] in groups}
    assert lines == {
        groups[0]: ["Stable", "classic", "1", "1", "-", "no"],
        groups[1]: ["Stable", "consumer", "1", "1", "-", "no"],
        groups[2]: ["Empty", "classic", "0", "1", "6", "no"],
        groups[3]: ["Stable", "classic", "1", "0", "-", "workers"],
    }
    assert [each["group"] for each in document["groups"]] == groups[:2]
    assert document["groups"][1] == {
        "group": groups[1],
        "state": "Stable",
        "type": "consumer",
        "members": 1,
        "topics": [topic],
        "partitions": 2,
        "lag": None,
        "partitions_without_lag": 2,
        "remarks": ["no committed offset for 2 partitions"],
    }


def test_malformed_metadata_does_not_hide_other_groups(cli, world):
    """If a member sends malformed metadata, `list` and `describe` show ``-`` as its group's number of members.

    They still show the other groups.
    """
    partition, group, other = TopicPartition(world.create_topic(), 0), world.name("garbled"), world.name("other")
    for each in (group, other):
        world.commit(each, partition, 0)
    with raw_member(world.bootstrap_servers, group, metadata=b"\0"):
        shown = cli("list", "--topic", partition.topic).stdout
        assert re.search(rf"^{group} +Stable +classic +- +1 +0 +group '{group}': .*member", shown, re.M)
        assert re.search(rf"^{other} +Empty +classic +0 +1 +0", shown, re.M)
        described = cli("describe", "--all-groups").stdout
        assert f"group {group}  Stable, classic, - members" in described
        assert f"group {other}  Empty, classic, 0 members" in described


def test_list_while_groups_are_made_and_deleted(world, reader):
    """If groups are created and deleted while `list` runs, `list` does not fail, and shows the groups that stay."""
    partition, over = TopicPartition(world.create_topic(), 0), Event()
    stays = world.name("stays")
    world.commit(stays, partition, 0)

    def come_and_go() -> None:
        while not over.is_set():
            group = world.name("brief")
            world.commit(group, partition, 0)
            with suppress(kafka.errors.KafkaError):
                world.delete_group(group)

    thread = Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(30):
            assert stays in {each.group for each in list_groups(reader, SystemClock())}
    finally:
        over.set()
        thread.join()


@NEEDS_KIP_848
def test_kip_848_groups_are_described_at_once(world, reader, sent):
    """The members of several KIP-848 groups are read with one ConsumerGroupDescribe request.

    A group that was deleted in the meantime is shown as Dead.
    """
    topic, groups = world.create_topic(), [world.name("kip-848") for _ in range(3)]
    members = {group: world.join(group, topic, **{"group.protocol": "consumer"}).memberid() for group in groups}
    sent.clear()
    described, gone = reader.describe_groups(groups), world.name("gone")
    assert {group: [each.member_id for each in described[group].members] for group in groups} == {
        group: [member] for group, member in members.items()
    }
    assert sent == Counter(FindCoordinator=1, DescribeGroups=1, ListGroups=1, ConsumerGroupDescribe=1)
    assert [reader._descriptions.of_consumers([*groups, gone])[each].state for each in (groups[0], gone)] == [
        "Stable",
        "Dead",
    ]
