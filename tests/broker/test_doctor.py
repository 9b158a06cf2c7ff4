"""``doctor`` on real brokers: it says what is possible, and ``--write`` leaves nothing behind."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

import pytest

import migrate_groups as mg
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.trial import THROWAWAY
from tests.support.broker_world import BrokerWorld
from tests.support.cli import Cli, CliHere
from tests.support.old_group import Old
from tests.support.secured import SECRETS, Secured, properties_text
from tests.support.versions import NEEDS_SCRAM

OFFSET_DELETE, LIST_GROUPS, OFFSET_FETCH, DESCRIBE_CONFIGS = 47, 16, 9, 32
# The APIs that the tool uses, but Metadata, without which no client can connect.
USED = {
    **{"ListOffsets": 2, "OffsetCommit": 8, "OffsetFetch": OFFSET_FETCH, "FindCoordinator": 10, "JoinGroup": 11},
    **{"Heartbeat": 12, "LeaveGroup": 13, "SyncGroup": 14, "DescribeGroups": 15, "ListGroups": LIST_GROUPS},
    **{"OffsetForLeaderEpoch": 23, "Fetch": 1, "DescribeConfigs": DESCRIBE_CONFIGS, "DeleteGroups": 42},
    **{"OffsetDelete": OFFSET_DELETE, "ConsumerGroupDescribe": 69},
}
STEPS = (
    *("create the topic", "produce 30 records", "consume with the old group", "migrate", "rollback", "migrate again"),
    *("consume with the new group", "hand-back", "consume with the old group again", "clean up"),
)


def document(here: Cli, *arguments: str, code: int = 0) -> dict[str, Any]:
    return json.loads(here("doctor", *arguments, "--format", "json", code=code).stdout)


def answers(found: dict[str, Any]) -> dict[str, str]:
    return {each["what"]: each["answer"] for each in found["capabilities"]}


def made(world: BrokerWorld) -> set[str]:
    """Return the names of the topics and groups that a trial makes."""
    return {name for name in world.topics() | world.groups() if THROWAWAY in name}


def test_doctor_reads_only_and_says_what_is_possible(cli, world):
    """On Apache Kafka everything is possible. Nothing is written, and each API has the versions offered and used."""
    world.commit(world.name("group"), TopicPartition(world.create_topic(), 0), 1)  # a record in __consumer_offsets
    before = world.topics(), world.groups()
    found = document(cli)
    assert set(answers(found).values()) == {"yes"}
    assert (found["second_client"], found["trial"], len(found["brokers"])) == (None, None, 1)
    assert found["cluster_id"] == mg.connect(world.bootstrap_servers).doctor().cluster_id
    apis = {api["name"]: api for api in found["apis"]}
    assert all(api["lowest_offered"] <= api["used"] <= api["highest_offered"] for api in apis.values())
    assert apis["OffsetFetch"]["key"] == OFFSET_FETCH
    assert found["retention_minutes"] == 10080
    assert new_since(world, before) == set()
    said = cli("doctor").stdout
    assert "all that this tool does is possible here, as far as the brokers show it" in said
    assert not re.search(r"127\.0\.0\.1|localhost", said)


def mg_partition(world: BrokerWorld):
    from migrate_groups.model.partitions import TopicPartition

    return TopicPartition(world.create_topic(), 0)


def new_since(world: BrokerWorld, before: tuple[set[str], set[str]]) -> set[str]:
    """Return the topics and groups that are new. Brokers delete groups of other tests at any time."""
    topics, groups = before
    return (world.topics() - topics) | (world.groups() - groups)


def test_the_trial_does_each_step_and_cleans_up(cli, world):
    """With ``--write``, offsets are handed over, rolled back and handed back. Each step has its time. Nothing stays."""
    before = world.topics(), world.groups()
    found = document(cli, "--write", "--yes", "--settle", "0s")["trial"]
    assert tuple(step["what"] for step in found["steps"]) == STEPS
    assert {step["outcome"] for step in found["steps"]} == {"done"}
    assert all(step["seconds"] >= 0 for step in found["steps"])
    assert found["left"] == []
    assert new_since(world, before) == set()


@pytest.mark.parametrize("at", ["produce 30 records", "consume with the old group", "migrate", "hand-back"])
def test_an_interrupted_trial_cleans_up(cli: Cli, world, at):
    """After Ctrl-C in any step, the topic and the groups are deleted. The exit code is 130."""
    process = cli.start("doctor", "--write", "--yes", "--settle", "1s")
    for line in process.stderr:
        if line.strip() == at:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "all that was made is deleted" in err
    assert "Traceback" not in err
    assert made(world) == set()


def test_without_an_answer_nothing_is_made(cli, world):
    """Without ``--yes`` and without a terminal, ``--write`` is refused, exit code 2."""
    assert "stdin is not a terminal: pass --yes to write, or leave out" in cli.fails("doctor", "--write", code=2)
    assert made(world) == set()


@NEEDS_SCRAM
@pytest.mark.parametrize(
    "mode",
    [
        *("mutual TLS, inline", "SASL_SSL OAUTHBEARER"),
        *(pytest.param(mode, marks=pytest.mark.long) for mode in ("SSL", "mutual TLS, JKS", "SASL_SSL SCRAM-SHA-512")),
    ],
)
def test_the_trial_logs_in_like_every_command(secured: Secured, here, mode):
    """With TLS or SASL, ``doctor --write`` does each step with the login of both clients, and shows no secret."""
    listener, properties = secured.modes()[mode]
    (here.folder / "client.properties").write_text(properties_text(**properties))
    done = here(
        *("doctor", "--write", "--yes", "--settle", "0s", "--format", "json"),
        *("--bootstrap-server", secured.address(listener), "--command-config", "client.properties"),
    )
    found = json.loads(done.stdout)
    assert found["second_client"] is None
    assert {step["outcome"] for step in found["trial"]["steps"]} == {"done"}
    assert [secret for secret in SECRETS.values() if secret in done.stdout + done.stderr] == []


def test_what_brokers_do_not_offer_is_told_and_no_failure(offered, offering, here):
    """Without OffsetDelete, doctor says what can't be done because of it. The trial's rollback is refused, exit code 0.

    The hand-back is done, and nothing stays.
    """
    offering.without = frozenset({OFFSET_DELETE, DESCRIBE_CONFIGS})
    found = document(here, "--write", "--yes", "--settle", "0s")
    lacking = {each["what"]: each["reason"] for each in found["capabilities"] if each["answer"] == "no"}
    assert "OffsetDelete, KIP-496" in lacking["rollback of a new group, delete-offsets"]
    assert "do not offer DescribeConfigs" in lacking["know when offsets expire"]
    outcomes = {step["what"]: step["outcome"] for step in found["trial"]["steps"]}
    assert outcomes["rollback"] == "refused"
    assert "migrate again" not in outcomes
    assert (outcomes["hand-back"], outcomes["clean up"]) == ("done", "done")
    assert made(offered[1]) == set()


@pytest.mark.parametrize(
    ("without", "versions", "lacking"),
    [
        ({LIST_GROUPS}, {}, {"list, advise", "migrate, apply, hand-back"}),
        (set(), {OFFSET_FETCH: (1, 6)}, {"see pending transactional commits"}),
        (set(), {OFFSET_FETCH: (9, 10)}, {"describe, snapshot, rewind, watch, export", "migrate, apply, hand-back"}),
    ],
    ids=["no ListGroups", "OffsetFetch 6", "OffsetFetch 9"],
)
def test_each_missing_api_limits_what_needs_it(offering, here, without, versions, lacking):
    """An API that is missing, or offered in other versions only, limits what needs it. The exit code is 0."""
    offering.without, offering.versions = frozenset(without), versions
    found = answers(document(here))
    assert {what for what, answer in found.items() if answer != "yes"} >= lacking
    assert found["know when offsets expire"] == "yes"


def succeed(here: CliHere, *commands: tuple[str, ...]) -> bool:
    """Run commands until one fails, and return whether none has."""
    return all(here.outcome(*command)[0] == 0 for command in commands)


@pytest.mark.long
@pytest.mark.parametrize("key", USED.values(), ids=USED)
def test_a_capability_is_no_if_and_only_if_its_commands_fail(offered, offering, here, monkeypatch, key):
    """Without any one API, a capability is ``no`` exactly if the commands that it names fail."""
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_TIMEOUT", "5s")
    old, doomed = Old(here, offered[1]), offered[1].name("doomed")
    old.world.commit(doomed, TopicPartition(old.pay, 0), 1)
    offering.without = frozenset({key})
    found = answers(document(here))
    migrate = ("migrate", "split.toml", "--settle", "0s", "--guard", "0s", "--yes")
    done = {
        "list, advise": succeed(here, ("list",)),
        "describe, snapshot, rewind, watch, export": succeed(here, ("snapshot", old.group, "-o", "before.csv")),
        "rollback of a new group, delete-offsets": succeed(here, migrate, ("rollback", "split.toml.run", "--yes")),
        "migrate, apply, hand-back": succeed(here, migrate, ("hand-back", "split.toml.run", "--wait", "0s", "--yes")),
        "delete-group": succeed(here, ("delete-group", doomed, "--yes")),
    }
    assert {what: found[what] for what in done} == {what: "yes" if did else "no" for what, did in done.items()}
