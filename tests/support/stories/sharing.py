"""Type docs/advise.md, the page about groups that several applications share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

import confluent_kafka

from tests.support.broker_world import BrokerWorld, until
from tests.support.cli import Cli
from tests.support.documents import parsed
from tests.support.pages import PAGES, blocks
from tests.support.reader import Reader, committed
from tests.support.sharing import Application, produced, progress

PROTOCOLS = {
    "big-classic": {},
    "big-coop": {"partition.assignment.strategy": "cooperative-sticky"},
    "big-consumer": {"group.protocol": "consumer"},
}
TOPICS = {
    "billing": {"invoices": 1},
    "shop": {"orders": 2, "payments": 2},
    "web": {"clicks": 2, "search": 2, "views": 2},
}
RESTARTS = 2


def at_one_look(reader: Reader) -> None:
    """Type the commands of docs/advise.md. Each of three groups has three applications of two members."""
    world = reader.starts(**{"group.initial.rebalance.delay.ms": "3000"})
    with ExitStack() as running:
        for group, settings in PROTOCOLS.items():
            topics = {f"{group}.{topic}": [0] * many for own in TOPICS.values() for topic, many in own.items()}
            committed(world, group, topics, unread=0)
            running.enter_context(_members(world, group, settings))
        cli = Cli(reader.folder, world.bootstrap_servers)

        def is_shared() -> bool:
            found = parsed(cli("advise", "--format", "json").stdout)["groups"]
            return [(each["finding"], each["idle_members"]) for each in found] == [("shared", 1)] * len(PROTOCOLS)

        until(is_shared, seconds=60)
        reader.reads("docs/advise.md")
    [proposed] = blocks(PAGES["docs/advise.md"].read_text(), "toml")
    written = (reader.folder / "split.toml").read_text()
    reader.missing += [line for line in proposed.splitlines() if line not in {*written.splitlines(), "…"}]


@contextmanager
def _members(world: BrokerWorld, group: str, settings: dict[str, str]) -> Iterator[None]:
    """Run two members of each application for the length of a ``with`` block."""
    consumers: list[confluent_kafka.Consumer] = []
    for name, own in TOPICS.items():
        topics = [f"{group}.{topic}" for topic in own]
        consumers += [world.consumer(group, *topics, **settings, **{"client.id": f"{name}-{n}"}) for n in (1, 2)]
    over = Event()

    def poll() -> None:
        while not over.is_set():
            for consumer in consumers:
                consumer.poll(0.01)

    polling = Thread(target=poll)
    polling.start()
    try:
        yield
    finally:
        over.set()
        polling.join()


def over_time(reader: Reader) -> None:
    """Type the commands of docs/advise.md about costs, after one of three applications has restarted twice."""
    world = reader.starts(**{"group.initial.rebalance.delay.ms": "1000"})
    topics = {"billing": ["invoices"], "shop": ["orders"], "web": ["clicks"]}
    every = [world.create_topic(2, topic=topic) for own in topics.values() for topic in own]
    applications = [Application(world, name, own, heartbeat=300) for name, own in topics.items()]
    with ExitStack() as running:
        running.enter_context(produced(world, every))
        for each in applications:
            running.callback(each.stop)
            each.start("flap")
        for _ in range(RESTARTS):
            progress(world, "flap", every)
            applications[0].stop()
            applications[0].start("flap")
        progress(world, "flap", every)
    reader.reads("docs/advise.md#Measure what sharing costs")
