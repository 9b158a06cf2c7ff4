"""Brokers that offer other APIs or versions than Apache Kafka: all works, or is refused with what to do.

What would be refused after the stop, a plan says before it. The proxies imitate offers of other vendors, not their
brokers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing

import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.reading.requests import read_all_committed
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from tests.support.cli import CliHere
from tests.support.offering import API_VERSIONS
from tests.support.old_group import Old

LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS = 2, 3, 8, 9, 10, 15
DESCRIBE_CONFIGS, OFFSET_DELETE, CONSUMER_GROUP_DESCRIBE = 32, 47, 69
NOW = ("--settle", "0s", "--guard", "0s", "--yes")
Versions = Mapping[int, tuple[int, int]]


@pytest.fixture
def old(offered, here: CliHere) -> Old:
    return Old(here, offered[1])


def the_whole_scenario(
    here: CliHere, old: Old, *, settle: Sequence[str] = ("--settle", "0s"), deletes: bool = True
) -> str:
    """Hand over, undo it, hand over, clean up, and hand back. Return the plan of the hand-over.

    deletes: whether the brokers can delete offsets. If not, deletions are refused by their plans.
    """
    now = (*settle, "--guard", "0s", "--yes")
    expected = old.world.committed(old.group)
    for command in (("list",), ("describe", old.group), ("snapshot", old.group, "-o", "before.csv")):
        here(*command)
    here("rewind", "--group", old.group, "--by-duration", "1h", "-o", "replay.csv")
    here("export", "before.csv", "-o", "exported.csv")
    here("advise", old.group)
    plan = here("migrate", "split.toml", *now, "--dry-run").stdout
    here("migrate", "split.toml", *now)
    if deletes:
        here("rollback", "split.toml.run", "--yes")
        assert old.world.committed(old.pay_group) == {}
        here("migrate", "split.toml", *now)
        here("delete-offsets", "split.toml.run", "--yes")
        assert old.world.committed(old.group) == {}
    else:
        for verb in ("rollback", "delete-offsets"):
            assert "deletion: the brokers do not offer" in here.fails(verb, "split.toml.run", "--yes", code=3)
        assert old.world.committed(old.group) == expected
    here("hand-back", "split.toml.run", "--wait", "0s", "--yes")
    assert old.world.committed(old.group) == expected
    return plan


@pytest.mark.parametrize(
    ("without", "versions", "said"),
    [
        ({DESCRIBE_CONFIGS}, {}, r"not known +retention"),
        (set(), {LIST_OFFSETS: (6, 9)}, ""),
        (set(), {OFFSET_COMMIT: (8, 9)}, ""),
        (set(), {DESCRIBE_GROUPS: (6, 6)}, ""),
        (set(), {FIND_COORDINATOR: (0, 3), OFFSET_FETCH: (1, 7)}, ""),
        (set(), {OFFSET_FETCH: (1, 6)}, r"warn +pending commits +the brokers do not say whether a transactional"),
        ({CONSUMER_GROUP_DESCRIBE}, {METADATA: (0, 9)}, ""),
    ],
    ids=[
        "no DescribeConfigs",
        "ListOffsets 6",
        "OffsetCommit 8",
        "DescribeGroups 6",
        "one by one",
        "unstable",
        "no id",
    ],
)
def test_other_offers_take_the_whole_scenario(offering, here, old, without, versions: Versions, said):
    """With other APIs or versions, each command does what it does with Apache Kafka.

    The plan says what is not known.
    """
    offering.without, offering.versions = frozenset(without), versions
    assert re.search(said, the_whole_scenario(here, old))


def test_a_server_that_closes_the_connection_at_the_latest_api_versions(offering, here, old):
    """If a broker closes the connection at version 4 of ApiVersions, an older version is tried, and all works.

    If it closes the connection at that one, too, the error names the server, exit code 5.
    """
    offering.most_api_versions, offering.versions = 3, {API_VERSIONS: (0, 3)}
    assert re.search(r"\d m?s$", here("describe", old.group, "--time-lag").stdout, re.MULTILINE)
    here("doctor")
    the_whole_scenario(here, old)
    offering.most_api_versions = 0
    error = here.fails("list", "--timeout", "5s", code=5)
    assert f"no bootstrap server can be reached ({offering.bootstrap_servers}: " in error


def test_requests_about_one_group_each_go_out_side_by_side(offering, offered, most):
    """If FindCoordinator and OffsetFetch take one group each, several wait for an answer at once, at most 16."""
    _, world = offered
    topic = world.create_topic()
    groups = [world.name("group") for _ in range(40)]
    for group in groups:
        world.commit(group, TopicPartition(topic, 0), 7)
    offering.versions = {FIND_COORDINATOR: (0, 3), OFFSET_FETCH: (1, 7)}
    config = ClientConfig(bootstrap_servers=offering.bootstrap_servers)
    with closing(KafkaPythonReader(config)) as reader:
        found = read_all_committed(reader, groups)
    assert {group: list(found[group]) for group in groups} == {group: [TopicPartition(topic, 0)] for group in groups}
    assert 1 < most["FindCoordinator"] <= 16
    assert 1 < most["OffsetFetch"] <= 16


def test_the_time_out_is_for_one_request(offering, offered):
    """A command may take longer than ``--timeout``, if each of its requests is answered within that time.

    Here 140 groups are read with a request for each, and brokers answer after 0.25 s. A request that is not answered
    ends the command.
    """
    _, world = offered
    place = TopicPartition(world.create_topic(), 0)
    groups = [world.name("group") for _ in range(140)]
    with closing(KafkaPythonWriter(ClientConfig(bootstrap_servers=world.bootstrap_servers))) as writer:
        writer.alter_offsets({group: {place: CommittedOffset(offset=7)} for group in groups})
    offering.versions = {FIND_COORDINATOR: (0, 3), OFFSET_FETCH: (1, 7)}
    config = ClientConfig(bootstrap_servers=offering.bootstrap_servers, timeout=2)
    with closing(KafkaPythonReader(config)) as reader:
        reader.cluster_id()
        offering.slow(0.25)
        found = read_all_committed(reader, groups)
        offering.slow(60)
        with pytest.raises(ClusterUnavailable, match="did not answer while reading the committed offsets of"):
            read_all_committed(reader, groups)
    assert {group: list(found[group]) for group in groups} == {group: [place] for group in groups}


def test_without_offset_delete_the_plan_says_so_before_the_stop(offering, here, old):
    """Without OffsetDelete, the plan warns, and rollback and delete-offsets are refused by their plans, exit code 3.

    Nothing is written then, and `delete-group` undoes the hand-over, as the messages say.
    """
    offering.without = frozenset({OFFSET_DELETE})
    plan = here("migrate", "split.toml", *NOW).stdout
    advice = rf"delete-group {old.find_group}, {old.pay_group} undoes the hand-over"
    assert re.search(rf"warn +deletion +the brokers do not offer to delete committed offsets .*{advice}", plan)
    written = old.world.committed(old.pay_group)
    for command in ("rollback", "delete-offsets"):
        for how in ("--dry-run", "--yes"):
            error = here.fails(command, "split.toml.run", how, code=3)
            assert "deletion: the brokers do not offer to delete committed offsets (OffsetDelete, KIP-496)" in error
    assert old.world.committed(old.pay_group) == written
    here("delete-group", old.pay_group, old.find_group, "--yes")
    assert old.world.committed(old.pay_group) == {}
    assert TopicPartition(old.pay, 0) in old.world.committed(old.group)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({OFFSET_FETCH: (9, 10)}, "the brokers are too new for reading the committed offsets of"),
        ({LIST_OFFSETS: (0, 0)}, "the brokers are too old for reading log end offsets"),
    ],
)
def test_versions_without_overlap_say_which_side_is_old(offering, here, old, versions: Versions, said):
    """If no version is common, the error says which side is too old, exit code 5. Nothing is written."""
    offering.versions = versions
    error = here.fails("migrate", "split.toml", *NOW, code=5)
    assert said in error
    assert ("upgrade migrate-groups" in error) == ("too new" in said)
    assert old.world.committed(old.pay_group) == {}
