"""What sharing a group costs, from a real broker's offsets topic, compared with the callbacks of the clients."""

from __future__ import annotations

import time
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest

from tests.support.broker_world import BrokerWorld, until
from tests.support.documents import parsed


class Application:
    """Two members that poll in a thread each, and note for how long they had no partitions in rebalances.

    pause: the seconds between two polls. The application named shop commits by itself, the others each record.
    """

    def __init__(self, world: BrokerWorld, group: str, name: str, topics: list[str], pause: float) -> None:
        self.pause, self.auto = pause, name == "shop"
        self.world, self.group, self.name, self.topics = world, group, name, topics
        self.without = {1: 0.0, 2: 0.0}
        self.assigned: set[int] = set()
        self._over = Event()
        self._threads: list[Thread] = []

    def start(self) -> None:
        self._over.clear()
        self._threads = [Thread(target=self._run, args=(number,)) for number in (1, 2)]
        for thread in self._threads:
            thread.start()
        until(lambda: self.assigned == {1, 2})

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self.assigned.clear()

    def _run(self, number: int) -> None:
        config = {"client.id": f"{self.name}-{number}", "enable.auto.commit": self.auto}
        consumer = self.world.consumer(self.group, **config)
        revoked = 0.0

        def on_revoke(consumer, partitions) -> None:
            nonlocal revoked
            revoked = time.time()

        def on_assign(consumer, partitions) -> None:
            if revoked:
                self.without[number] += time.time() - revoked
            self.assigned.add(number)

        consumer.subscribe(self.topics, on_assign=on_assign, on_revoke=on_revoke)
        while not self._over.wait(self.pause):
            message = consumer.poll(0.05)
            if message is not None and not message.error() and not self.auto:
                consumer.commit(message, asynchronous=False)
        self.world.leave(consumer)


@pytest.mark.parametrize("restarts", [pytest.param(6, marks=pytest.mark.long)])
def test_the_log_says_what_the_clients_saw(here, world, tmp_path, restarts):
    """The applications are found, who began the rebalances, and for how long the others waited, at most."""
    group, over = world.name("shared"), Event()
    topics = {name: [world.create_topic(2)] for name in ("shop", "web", "billing")}

    def produce() -> None:
        while not over.is_set():
            for (topic,) in topics.values():
                for partition in (0, 1):
                    world.produce(topic, partition, 1)
            over.wait(0.05)

    producer = Thread(target=produce)
    producer.start()
    applications = {
        name: Application(world, group, name, own, 2 if name == "web" else 0) for name, own in topics.items()
    }
    try:
        for each in applications.values():
            each.start()
        for _ in range(restarts):
            time_before = sum(world.committed(group).values())
            until(lambda before=time_before: sum(world.committed(group).values()) > before + 6)
            applications["billing"].stop()
            applications["billing"].start()
    finally:
        over.set()
        producer.join()
        for each in reversed(applications.values()):
            each.stop()
    shown = here("advise", group, "--log", "log", "-o", tmp_path / "out", "--format", "json")
    (found,) = parsed(shown.stdout)["groups"]
    by_name = {each["application"]: each for each in found["applications"]}
    assert {name: each["topics"] for name, each in by_name.items()} == topics
    assert by_name["billing"]["caused"] >= restarts  # members that leave or join together begin one rebalance
    # web commits each record, and not when its partitions are revoked: the log can only say at most for how long.
    truth = {name: max(each.without.values()) for name, each in applications.items()}
    assert abs((by_name["shop"]["stood_still"] or 0) - truth["shop"]) <= max(0.5, 0.2 * truth["shop"])
    assert by_name["web"]["stood_still"] >= truth["web"] - 0.5
    names = ("advice", "generations", "stood_still", "subscriptions")
    tables = {name: pq.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist() for name in names}
    assert {row["application"] for row in tables["subscriptions"]} == {*topics}
    assert {row["group"] for table in tables.values() for row in table} == {group}
    page = (tmp_path / "out" / "advice.html").read_text()
    assert page.count("<rect") > 3
    assert f"<code>{group}</code>" in page
    assert f"`{group}`" in (tmp_path / "out" / "advice.md").read_text()


def test_a_group_without_records_of_members_is_undetermined(here, world):
    """A simple consumer's group has commits and no members, so the log can't say who shares it; a wrong use is said."""
    group = world.name("simple")
    world.commit_all(group, {})
    assert "no record of the members" in here.fails("advise", group, "--log", "log", "-o", "out", code=7)
    assert "needs -o OUT" in here.fails("advise", group, "--log", "log", code=2)
    assert "--since with --log" in here.fails("advise", group, "--since", "7d", code=2)
