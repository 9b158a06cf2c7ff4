"""The whole scenario through proxies that offer what Kafkas of other vendors do: right, or refused before the stop.

This imitates their offers, and proves nothing about their brokers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.planning.trial import THROWAWAY
from migrate_groups.sandbox.broker import start_sandbox
from tests.broker.test_offers import the_whole_scenario
from tests.broker.test_permissions import Admin
from tests.support.broker_world import BrokerWorld, broker_world, wait_for_coordinators
from tests.support.cli import CliHere
from tests.support.offering import Offering
from tests.support.old_group import Old
from tests.support.profiles import PROFILES, Profile
from tests.support.proxy import LISTENER, put_before
from tests.support.versions import NEEDS_AUTHORIZER

pytestmark = NEEDS_AUTHORIZER
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def running(kafka_jars, java) -> Iterator[tuple[Offering, BrokerWorld, Admin]]:
    with start_sandbox(kafka_jars, java=java, settings=SETTINGS, listeners={LISTENER: "PLAINTEXT"}) as sandbox:
        proxies = put_before(sandbox, Offering)
        sandbox.node.await_answer()
        wait_for_coordinators(sandbox.bootstrap_servers)
        with broker_world(sandbox.bootstrap_servers) as world, closing(Admin(world)) as admin:
            yield proxies, world, admin


@pytest.fixture(params=list(PROFILES.values()), ids=list(PROFILES))
def profile(request, running, here: CliHere, monkeypatch) -> Iterator[Profile]:
    """A profile, which the commands of ``here`` meet."""
    wanted: Profile = request.param
    proxies, _, admin = running
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_BOOTSTRAP_SERVER", proxies.bootstrap_servers)
    proxies.versions, proxies.only = wanted.versions, True
    if wanted.hides_offsets_topic:
        admin.allow("TOPIC", OFFSETS_TOPIC)  # only for a principal that does not exist
    yield wanted
    proxies.versions, proxies.only = {}, False
    admin.delete_all()


def test_each_profile_is_right_or_refused_before_the_stop(profile: Profile, running, here: CliHere):
    """`doctor` and the dry run say what can't be done. If ``__consumer_offsets`` is hidden, settle 0 is refused."""
    old = Old(here, running[1])
    found = json.loads(here("doctor", "--format", "json").stdout)
    answers = {each["what"]: each["answer"] for each in found["capabilities"]}
    assert answers["migrate, apply, hand-back"] == "yes"
    assert (answers["rollback of a new group, delete-offsets"] == "yes") is profile.deletes_offsets
    assert (answers["audit, history, advise --log"] == "yes") is not profile.hides_offsets_topic
    before = old.world.committed(old.group)
    plan = here("migrate", "split.toml", "--settle", "10s", "--dry-run").stdout
    assert bool(re.search(r"warn +deletion ", plan)) is not profile.deletes_offsets
    assert ("audit can't prove this run later" in plan) is profile.hides_offsets_topic
    if profile.hides_offsets_topic:
        error = here.fails("migrate", "split.toml", "--settle", "0s", "--guard", "0s", "--yes", code=3)
        assert "barrier" in error
        assert "--settle 10s" in error
    assert (old.world.committed(old.group), old.world.committed(old.pay_group)) == (before, {})


@pytest.mark.long
def test_each_profile_hands_over_a_living_group(profile: Profile, running, here: CliHere):
    """`migrate` waits while a consumer of the group lives. When it has left, its offsets are handed over."""
    _, world, _ = running
    old = Old(here, world)
    expected, member = old.offsets(old.pay), world.join(old.group, old.pay, old.find)
    settle = "10s" if profile.hides_offsets_topic else "0s"
    process = here.start("migrate", "split.toml", "--settle", settle, "--guard", "0s", "--yes")
    assert any(f" s  {old.group} " in line for line in process.stderr)  # it waits
    world.leave(member)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert world.committed(old.pay_group) == expected


@pytest.mark.long
def test_each_profile_takes_the_whole_scenario(profile: Profile, running, here: CliHere):
    """Each command does what it does with Apache Kafka, or is refused by its plan, as in the trial of `doctor`."""
    _, world, _ = running
    settle = ("--settle", "10s" if profile.hides_offsets_topic else "0s")
    the_whole_scenario(here, Old(here, world), settle=settle, deletes=profile.deletes_offsets)
    trial = json.loads(here("doctor", "--write", "--yes", *settle, "--format", "json").stdout)["trial"]
    refused = {step["what"] for step in trial["steps"] if step["outcome"] != "done"}
    assert refused == (set() if profile.deletes_offsets else {"rollback"})
    assert not [name for name in world.topics() | world.groups() if THROWAWAY in name]
