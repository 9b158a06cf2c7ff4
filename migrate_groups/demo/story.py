"""Run the demo: an overloaded group is split while a producer keeps producing, and every record is counted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tenacity

from migrate_groups.demo.cast import APPLICATIONS, OLD_GROUP, PARTITIONS, TOPICS, Stage, split_toml
from migrate_groups.demo.ledger import Count, count, read
from migrate_groups.errors import MigrateGroupsError
from migrate_groups.sandbox.broker import Sandbox

_SECONDS = 60
_ENOUGH_RECORDS = 300
_FROM_FILE = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_NAIVE = "naive-"
_PURE = ("split", "export", "reconcile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """The functions through which the demo prints.

    say: called with an explanation. command: called with a command line before it runs. progress: called with the
    progress of a wait, again and again. stdout: the file descriptor for what the commands print on stdout; None: the
    stdout of this process.
    """

    say: Callable[[str], None]
    command: Callable[[str], None]
    progress: Callable[[str], None]
    stdout: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The record counts of two migrations of the same group.

    ours: with this tool. naive: with Kafka's own tool, from a snapshot that was taken before the applications stopped.
    """

    ours: Count
    naive: Count


class Story:
    """The demo on a sandbox. It writes its files to ``folder``."""

    def __init__(self, sandbox: Sandbox, folder: Path, telling: Telling) -> None:
        self._sandbox = sandbox
        self._folder = folder
        self._ledgers = folder / "ledgers"
        self._tell = telling

    def play(self) -> Ending:
        """Run the demo and return the record counts. Raises `MigrateGroupsError` if a command or a wait fails."""
        self._ledgers.mkdir()
        self._create_topics()
        with Stage(self._sandbox.bootstrap_servers, self._ledgers) as stage:
            old = self._overloaded_group(stage)
            self._review()
            self._cut_over(stage)
            ours, naive = self._new_groups(stage)
            self._tell.say("The producer stops; the applications process the remaining records.")
            stage.stop("producer")
            self._await_all(ours, naive, old)
            stage.stop("")
            self._reconcile()
            produced = self._ledgers / "producer.txt"
            return Ending(ours=count(produced, [*old, *ours]), naive=count(produced, [*old, *naive]))

    def _create_topics(self) -> None:
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=self._sandbox.bootstrap_servers) as admin:
            admin.create_topics({topic: {"num_partitions": PARTITIONS, "replication_factor": 1} for topic in TOPICS})
            admin.wait_for_topics(list(TOPICS))

    def _overloaded_group(self, stage: Stage) -> list[Path]:
        self._tell.say(f"{len(TOPICS)} topics, {len(APPLICATIONS)} applications, all in one group: {OLD_GROUP}.")
        old = [stage.start_application(application, OLD_GROUP) for application in APPLICATIONS]
        self._await_members()
        stage.start_producer()
        self._await_records("processed by each application", old, _ENOUGH_RECORDS)
        self._run("describe", OLD_GROUP)
        return old

    def _await_members(self) -> None:
        """Wait until each application has partitions, so that no rebalance at the start disturbs the demo."""
        from migrate_groups.kafka.client_config import ClientConfig
        from migrate_groups.kafka.reader import KafkaPythonReader

        config = ClientConfig(bootstrap_servers=self._sandbox.bootstrap_servers)
        with closing(KafkaPythonReader(config)) as reader:

            def look() -> dict[str, int]:
                group = reader.describe_group(OLD_GROUP)
                return {OLD_GROUP: sum(bool(each.assignment) for each in group.members if group.state == "Stable")}

            everybody = len(APPLICATIONS)
            self._await("members with partitions", look, lambda seen: seen[OLD_GROUP] == everybody, fails=True)

    def _review(self) -> None:
        self._tell.say(
            "The split is written to a file and reviewed while everything runs: the dry run changes nothing."
        )
        (self._folder / "split.toml").write_text(split_toml(), encoding="utf-8")
        (self._folder / "naive.toml").write_text(split_toml(_NAIVE), encoding="utf-8")
        self._run("snapshot", OLD_GROUP, "-o", self._file("early.csv"))
        self._run("split", self._file("early.csv"), "--spec", self._file("split.toml"), "-o", self._file("review.csv"))
        self._run("apply", self._file("review.csv"), "--dry-run")

    def _cut_over(self, stage: Stage) -> None:
        self._tell.say("The cut-over: the old applications stop; the producer does not.")
        stage.stop(f"{OLD_GROUP}.")
        self._run("verify", OLD_GROUP, "--wait", "30s", "--settle", "2s")
        self._run("snapshot", OLD_GROUP, "-o", self._file("before.parquet"))
        self._run(
            "split", self._file("before.parquet"), "--spec", self._file("split.toml"), "-o", self._file("split.csv")
        )
        self._run("export", self._file("split.csv"), "-o", self._file("offsets.csv"))
        self._run("apply", self._file("split.csv"), "--settle", "2s", "--guard", "2s", "--yes")
        self._run("snapshot", *(each.name for each in APPLICATIONS), "-o", self._file("handed-over.parquet"))

    def _new_groups(self, stage: Stage) -> tuple[list[Path], list[Path]]:
        self._tell.say("For comparison, the naive way: the snapshot from before the stop, no check, Kafka's own tool.")
        self._run("split", self._file("early.csv"), "--spec", self._file("naive.toml"), "-o", self._file("naive.csv"))
        self._run("export", self._file("naive.csv"), "-o", self._file("naive-offsets.csv"))
        self._run_kafkas_tool("--reset-offsets", "--from-file", self._file("naive-offsets.csv"))
        self._tell.say("The new groups start: each application in its own group.")
        ours = [stage.start_application(each, each.name) for each in APPLICATIONS]
        naive = [stage.start_application(each, _NAIVE + each.name) for each in APPLICATIONS]
        self._await_records("processed by each new group", [*ours, *naive], _ENOUGH_RECORDS)
        return ours, naive

    def _reconcile(self) -> None:
        self._tell.say("Spark reconciles the hand-over; its snapshot was taken before the new groups started.")
        self._run("reconcile", self._file("split.csv"), self._file("handed-over.parquet"))
        self._tell.say("Spark shows the lag before and after the migration, now that the new groups have caught up.")
        self._run("snapshot", *(each.name for each in APPLICATIONS), "-o", self._file("after.parquet"))
        tables = ("-o", self._file("reconciled"))
        self._run("reconcile", self._file("split.csv"), self._file("after.parquet"), *tables)

    def _await_all(self, ours: list[Path], naive: list[Path], old: list[Path]) -> None:
        produced = read(self._ledgers / "producer.txt")

        def missing() -> dict[str, int]:
            return {
                way: len(set(produced) - {each for path in [*old, *new] for each in read(path)})
                for way, new in (("ours", ours), ("naive", naive))
            }

        self._await("records still to process", missing, lambda left: not any(left.values()), fails=False)

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
            # If ``fails`` is false, the demo goes on, because the record count at the end shows the missing records.
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

    def _run_kafkas_tool(self, *arguments: str) -> None:
        groups = (option for each in APPLICATIONS for option in ("--group", _NAIVE + each.name))
        options = (*arguments, *groups, "--execute")
        self._tell.command(
            " ".join(["kafka-consumer-groups", "--bootstrap-server", self._sandbox.bootstrap_servers, *options])
        )
        self._sandbox.run_tool(_FROM_FILE, *options)

    def _file(self, name: str) -> str:
        return str(self._folder / name)
