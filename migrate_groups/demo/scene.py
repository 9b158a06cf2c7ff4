"""The base class of the demo's stories. It creates topics, runs commands, and waits for consumers and records."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tenacity

from migrate_groups.demo.cast import APPLICATIONS, OLD_GROUP, PARTITIONS, TOPICS
from migrate_groups.demo.ledger import Count, read
from migrate_groups.errors import MigrateGroupsError
from migrate_groups.sandbox.broker import Sandbox

_SECONDS = 60
_PURE = ("split", "export", "reconcile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """The functions through which the demo prints.

    say: called with an explanation for the reader. command: called with each command line before it runs. progress:
    called about twice a second while the demo waits, with a line that says how far it is. stdout: the file descriptor
    to which the commands print; None: the stdout of this process.
    """

    say: Callable[[str], None]
    command: Callable[[str], None]
    progress: Callable[[str], None]
    stdout: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The record counts at the end of a story.

    ours: the counts of the migration with this tool. naive: the counts of a second migration of the same group, with
    Kafka's own tool and a snapshot that was taken before the applications stopped; None if the story has none.
    """

    ours: Count
    naive: Count | None


class Scene:
    """The base class of a story.

    sandbox: the Kafka cluster on which the story runs. folder: an existing folder, to which the story writes its files.
    telling: the functions through which it prints.
    """

    def __init__(self, sandbox: Sandbox, folder: Path, telling: Telling) -> None:
        self._sandbox = sandbox
        self._folder = folder
        self._ledgers = folder / "ledgers"
        self._tell = telling

    def play(self) -> Ending:
        """Run the story and return the record counts. Raises `MigrateGroupsError` if a command or a wait fails."""
        raise NotImplementedError

    def _create_topics(self) -> None:
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=self._sandbox.bootstrap_servers) as admin:
            admin.create_topics({topic: {"num_partitions": PARTITIONS, "replication_factor": 1} for topic in TOPICS})
            admin.wait_for_topics(list(TOPICS))

    def _await_members(self) -> None:
        """Wait until the old group is Stable and each application has partitions.

        Otherwise the rebalances at the start would disturb the demo.
        """
        from migrate_groups.kafka.client_config import ClientConfig
        from migrate_groups.kafka.reader import KafkaPythonReader

        config = ClientConfig(bootstrap_servers=self._sandbox.bootstrap_servers)
        with closing(KafkaPythonReader(config)) as reader:

            def look() -> dict[str, int]:
                group = reader.describe_group(OLD_GROUP)
                return {OLD_GROUP: sum(bool(each.assignment) for each in group.members if group.state == "Stable")}

            everybody = len(APPLICATIONS)
            self._await("members with partitions", look, lambda seen: seen[OLD_GROUP] == everybody, fails=True)

    def _await_records(self, what: str, ledgers: Iterable[Path], enough: int) -> None:
        paths = list(ledgers)
        self._await(
            f"records {what}",
            lambda: {path.stem: len(read(path)) for path in paths},
            lambda seen: min(seen.values()) >= enough,
            fails=True,
        )

    def _await(
        self,
        what: str,
        look: Callable[[], Mapping[str, int]],
        done: Callable[[Mapping[str, int]], bool],
        *,
        fails: bool,
    ) -> None:
        def check() -> bool:
            seen = look()
            self._tell.progress(f"{what}: " + ", ".join(f"{name} {number:,}" for name, number in seen.items()))
            return done(seen)

        try:
            tenacity.Retrying(
                retry=tenacity.retry_if_result(lambda finished: not finished),
                stop=tenacity.stop_after_delay(_SECONDS),
                wait=tenacity.wait_fixed(0.5),
            )(check)
        except tenacity.RetryError as error:
            # If ``fails`` is false, the demo continues, because the counts at the end show the missing records.
            if fails:
                raise MigrateGroupsError(f"{what}: too few after {_SECONDS} s; read {self._ledgers}/*.log") from error

    def _run(self, verb: str, *arguments: str) -> None:
        where = [] if verb in _PURE else ["--bootstrap-server", self._sandbox.bootstrap_servers]
        command = [verb, *arguments, *where]
        self._tell.command(" ".join(["migrate-groups", *command]))
        done = subprocess.run(
            [sys.executable, "-m", "migrate_groups", *command],
            stdin=subprocess.DEVNULL,
            stdout=self._tell.stdout,
            check=False,
        )
        if done.returncode != 0:
            raise MigrateGroupsError(
                f"migrate-groups {verb} failed with exit code {done.returncode}: see its output above"
            )

    def _file(self, name: str) -> str:
        return str(self._folder / name)
