"""Run three applications in one group, split the group, and measure by rebalance callbacks what ``advise`` predicts."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.broker_world import broker_world, until, wait_for_coordinators
from tests.support.cli import CliHere
from tests.support.documents import parsed
from tests.support.sharing import Application, produced, progress

GROUP = "shared"
SIZES = [("web", 1), ("billing", 1), ("shop", 2)]


class Split(NamedTuple):
    """The results of `split`.

    - topics: the topics of each application.
    - before: for each application the seconds in which a partition had no owner in the shared group, as measured by
      rebalance callbacks. after: the same in the application's new group.
    - costs: the JSON document of ``advise --log`` from before the split.
    - found: for each application its entry in the document of ``advise --after``.

    The two commands wrote their files to the folders ``costs`` and ``out``.
    """

    topics: dict[str, list[str]]
    before: dict[str, float]
    after: dict[str, float]
    costs: dict[str, Any]
    found: dict[str, Any]


def split(cli: CliHere, java: Java, kafka_jars: KafkaJars, protocol: str, restarts: int, delay: int) -> Split:
    """Run three applications in one group and, after a split, in a group each. Run ``advise`` both times.

    The broker is a new sandbox. The application ``billing`` restarts before and after the split. ``web`` processes each
    record slowly. ``shop`` uses kafka-python if the protocol is eager; the others use confluent-kafka.

    restarts: the number of restarts before the split, and again after it. delay: ``group.initial.rebalance.delay.ms``
    of the broker.
    """
    group, heartbeat = GROUP, 3000 if delay == 3000 else 300
    settings = {"group.initial.rebalance.delay.ms": str(delay)}
    with ExitStack() as running:
        kafka = running.enter_context(start_sandbox(kafka_jars, java=java, settings=settings))
        wait_for_coordinators(kafka.bootstrap_servers)
        world = running.enter_context(broker_world(kafka.bootstrap_servers))
        cli = CliHere(cli.folder, kafka.bootstrap_servers)
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
        costs = parsed(
            cli("advise", group, "--log", "log", "--report", cli.folder / "costs", "--format", "json").stdout
        )
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
        shown = cli(
            "advise", "--after", "split.toml.run", "--log", "log", "--report", cli.folder / "out", "--format", "json"
        )
    found = {each["application"]: each for each in parsed(shown.stdout)["applications"]}
    return Split(topics, before, after, costs, found)


def near(found: float, truth: float) -> bool:
    """Return whether two numbers of seconds differ by at most 20 % of ``truth``, or by at most 2 s."""
    return abs(found - truth) <= max(2.0, 0.2 * truth)


def holds(found: dict[str, Any], truth: float) -> bool:
    """Return whether the true number of seconds is in the range that ``advise`` predicts, or near it."""
    low, high = found["predicted"]["low"], found["predicted"]["high"]
    return near(min(max(truth, low), high), truth)
