"""The base class of the demos: it creates topics, runs commands, and waits for consumers and records."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import tenacity

from migrate_groups.demo.applications import APPLICATIONS, OLD_GROUP, PARTITIONS, TOPICS
from migrate_groups.demo.ledger import Count, read
from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.planning.execution import Execution
from migrate_groups.sandbox.broker import Sandbox

_PURE = ("split", "export", "reconcile")
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """The functions through which the demo prints.

    say: prints an explanation. command: prints a command line before it runs. progress: prints the progress of a wait,
    about twice a second. stdout: the file descriptor to which the commands print; None: the stdout of this process.
    """

    say: Callable[[str], None]
    command: Callable[[str], None]
    progress: Callable[[str], None]
    stdout: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How many records were produced, processed, skipped and processed twice in a demo.

    ours: the counts of the migration with this tool. naive: the counts of a second migration, without this tool; None
    if the demo has none. naive_way: the name of the second migration in the output. hand_over: the record of the
    hand-over, with the measured outage; None if the demo shows none.
    """

    ours: Count
    naive: Count | None
    naive_way: str = "the naive way"
    hand_over: Execution | None = None


class Scene:
    """The base class of a demo.

    seconds: the time-out of each wait. sandbox: the Kafka cluster to use. folder: an existing folder for the demo's
    files. telling: the functions through which the demo prints.
    """

    seconds: ClassVar[float] = 60

    def __init__(self, sandbox: Sandbox, folder: Path, telling: Telling) -> None:
        self._sandbox = sandbox
        self._folder = folder
        self._ledgers = folder / "ledgers"
        self._tell = telling

    def play(self) -> Ending:
        """Run the demo, and return how many records were produced, processed, skipped and processed twice.

        Raises `MigrateGroupsError` if a command fails or a wait times out.
        """
        raise NotImplementedError

    @property
    def where(self) -> str:
        """The bootstrap servers of the demo's Kafka cluster."""
        return self._sandbox.bootstrap_servers

    def wait(self) -> None:
        """Wait until the demo's Kafka cluster has ended, then raise `ClusterUnavailable`. This never returns."""
        self._sandbox.wait()

    def _create_topics(self, topics: Sequence[str] = TOPICS) -> None:
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=self._sandbox.bootstrap_servers) as admin:
            admin.create_topics({topic: {"num_partitions": PARTITIONS, "replication_factor": 1} for topic in topics})
            admin.wait_for_topics(list(topics))

    def _await_members(self, group: str = OLD_GROUP, members: int = len(APPLICATIONS)) -> None:
        """Wait until a group is Stable and the expected number of its members have partitions."""
        from migrate_groups.kafka.client_config import ClientConfig
        from migrate_groups.kafka.reader import KafkaPythonReader

        config = ClientConfig(bootstrap_servers=self._sandbox.bootstrap_servers)
        with closing(KafkaPythonReader(config)) as reader:

            def look() -> dict[str, int]:
                found = describe_group(reader, group)
                return {group: sum(bool(each.assignment) for each in found.members if found.state == "Stable")}

            # Otherwise the rebalances at the start would disturb the demo.
            self._await("members with partitions", look, lambda seen: seen[group] == members, fails=True)

    def _await_records(self, what: str, ledgers: Iterable[Path], enough: int) -> None:
        paths = list(ledgers)
        self._await(
            f"records {what}",
            lambda: {path.stem: len(read(path)) for path in paths},
            lambda seen: min(seen.values()) >= enough,
            fails=True,
        )

    def _await_rest(self, ledgers: Mapping[str, Collection[Path]]) -> None:
        """Wait until every produced record is in a ledger of each list. ledgers: by a name for the output."""
        produced = {*read(self._ledgers / "producer.txt")}
        self._await(
            "records still to process",
            lambda: {
                name: len(produced - {each for path in paths for each in read(path)}) for name, paths in ledgers.items()
            },
            lambda left: not any(left.values()),
            fails=False,
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
            known = ", ".join(f"{name} {number:,}" for name, number in seen.items() if number)
            self._tell.progress(f"{what}: {known or 'none'}")
            return done(seen)

        try:
            tenacity.Retrying(
                retry=tenacity.retry_if_result(lambda finished: not finished),
                stop=tenacity.stop_after_delay(self.seconds),
                wait=tenacity.wait_fixed(0.5),
            )(check)
        except tenacity.RetryError as error:
            # If ``fails`` is false, the demo continues, because the counts at the end show the missing records.
            if fails:
                raise MigrateGroupsError(
                    f"{what}: too few after {self.seconds} s; read {self._ledgers}/*.log"
                ) from error

    def _run(
        self,
        verb: str,
        *arguments: str,
        codes: Collection[int] = (0,),
        meanwhile: Mapping[Path, Callable[[], None]] = MappingProxyType({}),
    ) -> None:
        """Print a command line of ``migrate-groups`` and run it.

        codes: the expected exit codes. meanwhile: what to do, each once, when the command has made a file. Raises
        `MigrateGroupsError` for any other exit code.
        """
        where = [] if verb in _PURE else ["--bootstrap-server", self._sandbox.bootstrap_servers]
        command = [verb, *arguments, *where]
        self._tell.command(shlex.join(["migrate-groups", *command]))
        to_do = dict(meanwhile)
        with subprocess.Popen(
            [sys.executable, "-m", "migrate_groups", *command], stdin=subprocess.DEVNULL, stdout=self._tell.stdout
        ) as running:
            code = None
            while code is None:
                for file in [each for each in to_do if each.exists()]:
                    to_do.pop(file)()
                with suppress(subprocess.TimeoutExpired):
                    code = running.wait(_LOOK_SECONDS if to_do else None)
        if code not in codes:
            raise MigrateGroupsError(f"migrate-groups {verb} failed with exit code {code}: see its output above")

    def _file(self, name: str) -> str:
        return str(self._folder / name)
