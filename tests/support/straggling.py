"""The hand-over of a group whose consumers come back or never leave. Ledgers show the records that are repeated."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass

import confluent_kafka
import tenacity

from migrate_groups.demo.ledger import read
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.reading.requests import describe_group
from tests.support.broker_world import BrokerWorld, until
from tests.support.cli import Cli, running
from tests.support.old_consumers import Consumer, Ledger

_SECONDS = 120.0
_TICK = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one hand-over.

    code: the exit code of `migrate`. said: the error of `migrate`. waited: whether old consumers came back before the
    write, so that `migrate` waited until they had left again. late: the number of commits of old consumers that were
    accepted between the write and the end of `migrate`. guarded: how many of these during the watch after the write.
    twice: the number of records that both the old consumers and the new one processed. skipped: the number of records
    that no consumer processed. stop: seconds from the moment when the last member left to the output
    `START THE NEW GROUPS NOW`; None: this was not printed. first: seconds from this output to the new consumer's first
    record.
    """

    code: int
    said: str
    waited: bool
    late: int
    guarded: int
    twice: int
    skipped: int
    stop: float | None
    first: float | None

    @property
    def kind(self) -> str:
        """The outcome in a few words, such as ``clean`` or ``exit 4``."""
        if self.code == 0:
            return "waited" if self.waited else "unnoticed" if self.late or self.twice else "clean"
        return f"exit {self.code}" if self.stop is not None else f"exit {self.code}, no start"


class HandOver:
    """The hand-over of a group that consumes a topic of two partitions. Each partition gets ten records a second.

    config: additional configuration of the members; ``{}`` in a value becomes the member's number.
    """

    def __init__(self, world: BrokerWorld, cli: Cli, config: Mapping[str, str]) -> None:
        self.world, self._cli, self._config = world, cli, config
        self.topic = world.create_topic(2)
        self.group = world.name("old")
        self.old, self._new = Ledger(), Ledger()
        self.members: list[Consumer] = []
        self.file = cli.folder / "ledger"
        self.process: subprocess.Popen[str] | None = None
        self._produced: list[str] = []
        self._left = self._written_at = self._guarded_until = 0.0
        self._waited = False
        self.written, self._over, self._quiet = threading.Event(), threading.Event(), threading.Event()
        self._producing = threading.Thread(target=self._produce, daemon=True)
        self._producing.start()

    def _produce(self) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.world.bootstrap_servers, "log_level": 0})
        number = 0
        while not self._quiet.wait(_TICK):
            for partition in (0, 1):
                value = f"{partition}/{number}"
                producer.produce(self.topic, value=value, partition=partition)
                self._produced.append(value)
            number += 1
            producer.poll(0)
        assert producer.flush(_SECONDS) == 0

    def config(self, number: int) -> dict[str, str]:
        """Return the configuration of the old consumer with this number."""
        config = {"group.id": self.group, "client.id": "old-{}", **self._config}
        servers = {"bootstrap.servers": self.world.bootstrap_servers}
        return servers | {key: value.format(number) for key, value in config.items()}

    def join(self, number: int) -> None:
        """Start the member with this number."""
        self.members.append(Consumer(self.old, [self.topic], self.config(number)))

    def leave(self) -> None:
        """Stop all members, and return once the coordinator has removed all of them."""
        self._stop_all()
        self.left()

    def left(self) -> None:
        """Return once the coordinator has removed all old consumers, or the hand-over has ended.

        A static member that was closed is removed only after its session timeout.
        """
        self._left = time.monotonic()
        config = ClientConfig(bootstrap_servers=self.world.bootstrap_servers)
        with closing(KafkaPythonReader(config)) as reader:

            def stays() -> bool:
                members = describe_group(reader, self.group).members
                return any((each.client_id or "").startswith("old-") for each in members)

            while stays() and not self._over.wait(_TICK):
                self._left = time.monotonic()

    def pause(self, seconds: float) -> None:
        """Wait some seconds, or until the hand-over has ended."""
        self._over.wait(seconds)

    def come_back(self, start: Callable[[], object]) -> None:
        """Start old consumers again. If they commit before `migrate` has written, they leave for good."""
        if self._over.is_set():
            return
        began = time.monotonic()
        start()
        while not (self.written.is_set() or self._over.wait(_TICK)):
            if self.old.commits and self.old.commits[-1] > began:
                self._waited = True
                self.leave()
                break

    def consumed(self) -> None:
        """Return once each partition has a committed offset."""
        until(lambda: len(self.world.committed(self.group)) == 2, seconds=60)

    def run(self, scenario: Callable[[HandOver], None], *options: str) -> Outcome:
        """Run `migrate`, run the scenario once `migrate` waits for the members, and return the outcome."""
        target = f"{self.group}-new"
        (self._cli.folder / "split.toml").write_text(
            f'source = "{self.group}"\n[[target]]\ngroup = "{target}"\ntopics = ["*"]\n'
        )
        new: Consumer | None = None
        said = []
        with (
            ThreadPoolExecutor(1) as pool,
            running(self._cli, "migrate", "split.toml", "--yes", "--wait", "150s", *options) as process,
        ):
            for line in process.stderr:
                said.append(line)
                if "waiting up to" in line:
                    playing = pool.submit(scenario, self)
                if "moved without a member" in line:
                    self._waited = True
                    self._stop_all()
                if guarded := re.search(r"^watching .* for (\d+) s", line):
                    self._guarded_until = time.monotonic() + int(guarded[1])
                if "START THE NEW GROUPS NOW" in line:
                    self._written_at = time.monotonic()
                    self.written.set()
                    new = Consumer(self._new, [self.topic], self.config(9) | {"group.id": target})
            process.wait(_SECONDS)
            ended = time.monotonic()
            self._over.set()
            playing.result(_SECONDS)
        self._stop_all()
        return self._outcome(process.returncode, said, new, ended)

    def _stop_all(self) -> None:
        while self.members:
            self.members.pop().stop()

    def _outcome(self, code: int, said: list[str], new: Consumer | None, ended: float) -> Outcome:
        self._quiet.set()
        self._producing.join()
        self.old.records.update(read(self.file))
        wanted = set(self._produced)
        if new is not None:
            with suppress(tenacity.RetryError):  # then records are skipped
                until(lambda: wanted <= self.old.records | self._new.records)
            new.stop()
        errors = [line.strip() for line in said if line.startswith("error: ")]
        first = self._new.first
        return Outcome(
            code=code,
            said=" ".join(errors),
            waited=self._waited,
            guarded=sum(self._written_at < each < self._guarded_until for each in self.old.commits) if new else 0,
            late=sum(self._written_at < each < ended for each in self.old.commits) if new else 0,
            twice=len(self.old.records & self._new.records),
            skipped=len(wanted - self.old.records - self._new.records) if new else 0,
            stop=self._written_at - self._left if new else None,
            first=first - self._written_at if first is not None else None,
        )
