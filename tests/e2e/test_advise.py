"""What sharing a group costs, and what a split does, from a real broker's offsets topic and the clients' callbacks."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pyarrow.parquet as pq
import pytest

from migrate_groups.sandbox.broker import start_sandbox
from tests.support.broker_world import broker_world, until, wait_for_coordinators
from tests.support.cli import CliHere
from tests.support.documents import parsed
from tests.support.sharing import Application, produced, progress
from tests.support.versions import NEEDS_KIP_848

LONG = pytest.mark.long
RUNS = [
    pytest.param("eager", 2, 1000, id="short"),
    pytest.param("eager", 5, 3000, id="eager", marks=LONG),
    pytest.param("cooperative", 5, 3000, id="cooperative", marks=LONG),
    pytest.param("consumer", 5, 3000, id="consumer", marks=[LONG, NEEDS_KIP_848]),
]


def near(found: float, truth: float) -> bool:
    """Whether a number of seconds is within 20 % of the truth, or within 2 s."""
    return abs(found - truth) <= max(2.0, 0.2 * truth)


@pytest.mark.parametrize(("protocol", "restarts", "delay"), RUNS)
def test_a_split_costs_what_was_predicted(spark, java, kafka_jars, tmp_path, protocol, restarts, delay):
    """Three applications share a group, then each has its own: the log and the predictions agree with the callbacks.

    billing restarts again and again, and has a longer outage after the split; web polls slowly; shop is
    kafka-python's if the protocol is eager. In a KIP-848 group a restart may or may not wait for a heartbeat, so the
    prediction is a range.
    """
    group, heartbeat = "shared", 3000 if delay == 3000 else 300
    settings = {"group.initial.rebalance.delay.ms": str(delay)}
    with ExitStack() as running:
        kafka = running.enter_context(start_sandbox(kafka_jars, java=java, settings=settings))
        wait_for_coordinators(kafka.bootstrap_servers)
        world = running.enter_context(broker_world(kafka.bootstrap_servers))
        cli = CliHere(tmp_path, kafka.bootstrap_servers)
        topics = {name: [world.create_topic(2, topic=f"{name}.{n}") for n in range(many)] for name, many in SIZES}
        applications = {
            name: Application(
                world,
                name,
                own,
                protocol,
                client="python" if name == "shop" and protocol == "eager" else "confluent",
                pause=delay / 1500 if name == "web" else 0.0,
                heartbeat=heartbeat,
            )
            for name, own in topics.items()
        }
        every = [topic for own in topics.values() for topic in own]
        running.enter_context(produced(world, every))
        for each in applications.values():
            running.callback(each.stop)
        for each in applications.values():
            each.start(group)
        for _ in range(restarts):
            progress(world, group, every)
            applications["billing"].stop()
            applications["billing"].start(group)
        progress(world, group, every)
        until(lambda: cli.outcome("advise", "--spec-for", group, "-o", "split.toml")[0] == 0)
        costs = parsed(cli("advise", group, "--log", "log", "-o", tmp_path / "costs", "--format", "json").stdout)
        for each in applications.values():
            each.stop()
        before = {name: each.without() for name, each in applications.items()}
        cli("migrate", "split.toml", "--yes", "--settle", "0s", "--guard", "0s")
        for each in applications.values():
            each.changes.clear()
            each.start(f"{group}-{each.name}")
        for _ in range(restarts):
            progress(world, f"{group}-billing", topics["billing"])
            applications["billing"].stop()
            applications["billing"].start(f"{group}-billing")
        progress(world, f"{group}-billing", topics["billing"])
        after = {name: each.without() for name, each in applications.items()}
        shown = cli("advise", "--after", "split.toml.run", "--log", "log", "-o", tmp_path / "out", "--format", "json")
    found = {each["application"]: each for each in parsed(shown.stdout)["applications"]}
    subscribed = pq.read_table(tmp_path / "out" / "before" / "advice.parquet").to_pylist()
    assert {row["application"]: row["topics"] for row in subscribed} == topics
    assert {name: each["groups"] for name, each in found.items()} == {name: [f"{group}-{name}"] for name in topics}
    assert found["billing"]["restarts_before"] == found["billing"]["restarts"] == restarts
    for name in topics:
        assert near(found[name]["measured"], after[name]), name
        assert holds(found[name], after[name]), name
    assert near(found["billing"]["outage_before"], before["billing"])
    if protocol == "eager":
        assert after["billing"] > before["billing"] * 1.2  # the flapping application gets worse, as predicted
        assert near(found["shop"]["waited_before"], before["shop"])
        assert found["web"]["waited_before"] >= before["web"] - 0.5
    assert "billing" in costs["groups"][0]["predicted"]
    whole = (tmp_path / "costs" / "advice.html").read_text()
    parts = ["Members and topics", "Seconds without an owner", "Lag over time", "[[target]]"]
    parts += ["generation 1"] if protocol != "consumer" else []
    assert [part for part in parts if part not in whole] == []
    assert f"`{group}`" in (tmp_path / "costs" / "advice.md").read_text()
    page = (tmp_path / "out" / "after.html").read_text()
    assert all(f"<code>{group}-{name}</code>" in page for name in topics)


SIZES = [("web", 1), ("billing", 1), ("shop", 2)]


def holds(found: dict[str, Any], truth: float) -> bool:
    """Whether the prediction says the truth; for a KIP-848 group, whether it has it in its range."""
    seconds, at_most = found["predicted"]["seconds"], found["predicted"]["at_most"]
    return near(seconds, truth) or (found["assignor"] == "consumer" and near(min(max(truth, seconds), at_most), truth))


def test_a_group_without_records_of_members_is_undetermined(here, world):
    """A simple consumer's group has commits and no members, so the log can't say who shares it; a wrong use is said."""
    group = world.name("simple")
    world.commit_all(group, {})
    assert "no record of the members" in here.fails("advise", group, "--log", "log", "-o", "out", code=7)
    assert "needs -o OUT" in here.fails("advise", group, "--log", "log", code=2)
    assert "--since with --log" in here.fails("advise", group, "--since", "7d", code=2)
