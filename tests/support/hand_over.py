"""Run `list`, `snapshot` and `migrate` on a real broker with one kind of login, and check their results."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import BrokerWorld, until
from tests.support.cli import Cli, running
from tests.support.specs import split_spec


class HandOver:
    """A source group with committed offset 7 in one partition, and a split spec for it in the folder of ``cli``.

    world: a client whose login always works, even if the login under test fails.
    """

    def __init__(self, cli: Cli, world: BrokerWorld, topic: str) -> None:
        self._cli, self._world = cli, world
        self.partition, self.source, self.target = TopicPartition(topic, 0), world.name("source"), world.name("target")
        world.commit(self.source, self.partition, 7)
        (cli.folder / "split.toml").write_text(split_spec(self.source, {self.target: topic}))

    def run(self, *options: object, second_client: str = "required") -> str:
        """Run `list`, `snapshot` and `migrate`, check their results, and return their stdout and stderr."""
        listed = self._cli("list", *options)
        assert self.source in listed.stdout
        taken = self._cli("snapshot", self.source, "-o", "before.csv", *options)
        (row,) = csv.DictReader((self._cli.folder / "before.csv").read_text().splitlines())
        assert (row["group"], row["topic"], row["offset"]) == (self.source, self.partition.topic, "7")
        done = self._migrate(options, second_client)
        assert "1 partition: 1 confirmed" in done.stdout
        assert self._world.committed(self.target) == {self.partition: 7}
        return "".join(stream for each in (listed, taken, done) for stream in (each.stdout, each.stderr))

    def refused(self, *options: object, second_client: str, code: int) -> str:
        """Run ``migrate``, check that its exit code is ``code`` and that it writes nothing, and return its output."""
        done = self._migrate(options, second_client, code)
        assert self._world.committed(self.target) == {}
        return done.stdout + done.stderr

    def wait_until(self, condition: Callable[[], bool], *options: object, second_client: str = "required") -> None:
        """Run ``migrate``, stop the source group when the condition is true, and check that the hand-over succeeds.

        ``migrate`` must not end before the source group stops.
        """
        member = self._world.join(self.source, self.partition.topic)
        with running(self._cli, *_migrate(second_client), "--wait", "5m", *options) as process:
            until(lambda: condition() or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            self._world.leave(member)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, "1 partition: 1 confirmed" in out) == (0, True), err
        assert self._world.committed(self.target) == {self.partition: 7}

    def wait_in_vain(self, *options: object, code: int) -> str:
        """Run ``migrate`` while the source group has a member, and return its error.

        Check that its exit code is ``code`` and that it writes nothing.
        """
        member = self._world.join(self.source, self.partition.topic)
        said = self._cli.fails(*_migrate("auto"), "--wait", "5m", *options, code=code)
        self._world.leave(member)
        assert self._world.committed(self.target) == {}
        return said

    def _migrate(
        self, options: tuple[object, ...], second_client: str, code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        return self._cli(*_migrate(second_client), *options, code=code)


def _migrate(second_client: str) -> tuple[str, ...]:
    return "migrate", "split.toml", "--yes", "--second-client", second_client
