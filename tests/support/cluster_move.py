"""An application that moves to another cluster behind a real MirrorMaker 2, with a ledger of what it has processed."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import confluent_kafka

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.mirror_maker import MirrorMaker
from tests.support.broker_world import BrokerWorld, until
from tests.support.cli import Cli

PARTITIONS = 4
_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What the ledger says after a move.

    skipped: records that were produced, and processed on neither cluster. again: records that were processed on both.
    kills: how often MirrorMaker 2 was killed before the applications stopped. seconds: from the stop of the last
    consumer on the source cluster to the notice that the applications may start on the target cluster.
    """

    produced: int
    skipped: int
    again: int
    kills: int
    seconds: float


class _Producing:
    """Produces records with values of their own, in the order of their numbers, until it is stopped."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
        self._topic = topic
        self._stop = threading.Event()
        self.produced = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            for _ in range(5):
                number = self.produced
                self._producer.produce(self._topic, value=f"{number}", partition=number % PARTITIONS)
                self.produced += 1
            self._producer.poll(0)

    def stop(self) -> int:
        """Stop, and return how many records were produced, once all are acknowledged."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        return self.produced


class _Application:
    """A consumer that writes each record into a ledger, and commits what it has processed."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str) -> None:
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "session.timeout.ms": 6000,
        }
        self._consumer = confluent_kafka.Consumer(settings)
        self._consumer.subscribe([topic])
        self.ledger: Counter[int] = Counter()

    def process(self) -> None:
        """Process a few records, and commit."""
        for message in self._consumer.consume(50, 0.1):
            assert not message.error(), message.error()
            self.ledger[int(message.value())] += 1
        positions = [each for each in self._consumer.position(self._consumer.assignment()) if each.offset >= 0]
        if positions:
            self._consumer.commit(offsets=positions, asynchronous=False)

    def stop(self) -> None:
        """Leave the group."""
        self._consumer.close()


def move(
    source: BrokerWorld, target: BrokerWorld, maker: MirrorMaker, topic: str, cli: Cli, rng: random.Random
) -> Moved:
    """Move a group that is consuming and whose mirror is killed at random; return what its ledger says."""
    group, copy = source.name("group"), f"source.{topic}"
    for partition in range(PARTITIONS):
        source.commit(group, TopicPartition(topic, partition), 0)
    producing = _Producing(source.bootstrap_servers, topic)
    old = _Application(source.bootstrap_servers, group, topic)
    _consume_until(old, lambda: len(old.ledger) > 500)
    _consume_until(old, lambda: copy in target.topics())
    kills = rng.choice([0, 1, 1, 2])
    for _ in range(kills):
        _consume_for(old, rng.uniform(0.2, 4))
        maker.kill()
        _consume_for(old, rng.uniform(0.2, 2))
        maker.start()
    _consume_for(old, rng.uniform(0.2, 6))
    (cli.folder / "move.toml").write_text(
        f'source = "{group}"\n[[target]]\ngroup = "{group}"\ntopics = ["{topic}"]\n[options]\nsettle = "0s"\n'
        'guard = "1s"\n'
    )
    running = cli.start("migrate", "move.toml", "--yes", "--wait", "120s")
    _line_with(running, "waiting up to")
    old.process()
    old.stop()
    stopped = time.monotonic()
    _line_with(running, "START THE NEW GROUPS NOW")
    seconds = time.monotonic() - stopped
    new = _Application(target.bootstrap_servers, group, copy)
    _consume_until(new, lambda: new.ledger)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    produced = producing.stop()
    last = {partition: produced - 1 - (produced - 1 - partition) % PARTITIONS for partition in range(PARTITIONS)}
    _consume_until(new, lambda: all(new.ledger[number] for number in last.values()))
    new.stop()
    return Moved(
        produced=produced,
        skipped=sum(not old.ledger[number] and not new.ledger[number] for number in range(produced)),
        again=sum(1 for number in old.ledger if new.ledger[number]),
        kills=kills,
        seconds=seconds,
    )


def _consume_until(application: _Application, condition: Callable[[], object]) -> None:
    def done() -> object:
        application.process()
        return condition()

    until(done, seconds=_SECONDS)


def _consume_for(application: _Application, seconds: float) -> None:
    until_then = time.monotonic() + seconds
    while time.monotonic() < until_then:
        application.process()


def _line_with(running: Any, text: str) -> None:
    said = ""
    while text not in said.rpartition("\n")[2]:
        line = running.stderr.readline()
        assert line, f"migrate ended:\n{said}"
        said += f"\n{line.rstrip()}"
