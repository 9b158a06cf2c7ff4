"""Run the demo: an overloaded group is split, and the split is undone, while a producer keeps producing.

Every record is counted.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path

from migrate_groups.demo.applications import APPLICATIONS, OLD_GROUP, TOPICS, Stage, split_toml
from migrate_groups.demo.ledger import count
from migrate_groups.demo.scene import Ending, Scene
from migrate_groups.files.runs import receipt_json

_ENOUGH_RECORDS = 300
_SECONDS_TO_SNAPSHOT = 20.0
_FROM_FILE = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_NAIVE = "naive-"


class Story(Scene):
    """The main demo: a group is split and put together again, and split with Kafka's own tool for comparison."""

    def play(self) -> Ending:
        """Run the demo, and return how many records were produced, processed, skipped and processed twice.

        Raises `MigrateGroupsError` if a command fails or a wait times out.
        """
        self._ledgers.mkdir()
        self._create_topics()
        with Stage(self._sandbox.bootstrap_servers, self._ledgers) as stage:
            old = self._overloaded_group(stage)
            self._review()
            ours = self._cut_over(stage)
            naive = self._naive_groups(stage)
            self._await_records("processed by each new group", [*ours, *naive], _ENOUGH_RECORDS)
            self._tell.say("Spark reconciles the hand-over.")
            self._run("reconcile", self._run_dir, "-o", self._file("reconciled"))
            again = self._undo(stage)
            self._tell.say("The producer stops; the applications process the remaining records.")
            stage.stop("producer")
            self._await_rest({"ours": [*old, *ours, *again], "naive": [*old, *naive]})
            stage.stop("")
            produced = self._ledgers / "producer.txt"
            return Ending(
                ours=count(produced, [*old, *ours, *again]),
                naive=count(produced, [*old, *naive]),
                hand_over=receipt_json.load(Path(self._run_dir) / "receipt.json").last_hand_over,
            )

    @property
    def _run_dir(self) -> str:
        return self._file("split.toml.run")

    def _overloaded_group(self, stage: Stage) -> list[Path]:
        self._tell.say(f"{len(TOPICS)} topics, {len(APPLICATIONS)} applications, all in one group: {OLD_GROUP}.")
        old = [stage.start_application(application, OLD_GROUP) for application in APPLICATIONS]
        self._await_members()
        stage.start_producer()
        self._await_records("processed by each application", old, _ENOUGH_RECORDS)
        self._run("describe", OLD_GROUP)
        return old

    def _review(self) -> None:
        self._tell.say(
            "The split is written to a file and reviewed while everything runs: the dry run changes nothing."
        )
        (self._folder / "split.toml").write_text(split_toml(), encoding="utf-8")
        (self._folder / "naive.toml").write_text(split_toml(_NAIVE), encoding="utf-8")
        self._run("migrate", self._file("split.toml"), "--dry-run")
        self._run("snapshot", OLD_GROUP, "-o", self._file("early.csv"))

    def _cut_over(self, stage: Stage) -> list[Path]:
        self._tell.say(
            "The cut-over, in one command. It has the old applications stopped, and the new ones started; the producer "
            "goes on."
        )
        ours: list[Path] = []

        def start() -> None:
            # `migrate` says START before it takes the snapshot with which `reconcile` compares. Records that are read
            # before it would show as ``ahead``.
            latest = time.monotonic() + _SECONDS_TO_SNAPSHOT
            while not (Path(self._run_dir) / "after.parquet").exists() and time.monotonic() < latest:
                time.sleep(0.05)
            ours.extend(stage.start_application(each, each.name) for each in APPLICATIONS)

        stop_now, start_now = self._folder / "stop-now", self._folder / "start-now"
        commands = {"--stop-command": stop_now, "--start-command": start_now}
        self._run(
            *("migrate", self._file("split.toml"), "--yes", "--settle", "2s", "--guard", "8s"),
            *(word for option, file in commands.items() for word in (option, shlex.join(["touch", str(file)]))),
            meanwhile={stop_now: lambda: stage.stop(f"{OLD_GROUP}."), start_now: start},
        )
        return ours

    def _naive_groups(self, stage: Stage) -> list[Path]:
        self._tell.say("For comparison, the naive way: the snapshot from before the stop, no check, Kafka's own tool.")
        self._run("split", self._file("early.csv"), "--spec", self._file("naive.toml"), "-o", self._file("naive.csv"))
        self._run("export", self._file("naive.csv"), "-o", self._file("naive-offsets.csv"))
        self._run_kafkas_tool("--reset-offsets", "--from-file", self._file("naive-offsets.csv"))
        return [stage.start_application(each, _NAIVE + each.name) for each in APPLICATIONS]

    def _undo(self, stage: Stage) -> list[Path]:
        self._tell.say("And back: the new applications stop, and the old group goes on where they have stopped.")
        stage.stop(*(f"{each.name}." for each in APPLICATIONS))
        self._run("hand-back", self._run_dir, "--yes")
        # Of other names, so that their records are counted apart from those of the first time.
        again = [replace(each, name=f"{each.name}-again") for each in APPLICATIONS]
        ledgers = [stage.start_application(each, OLD_GROUP) for each in again]
        self._await_records("processed by each application of the old group", ledgers, 1)
        return ledgers

    def _run_kafkas_tool(self, *arguments: str) -> None:
        groups = (option for each in APPLICATIONS for option in ("--group", _NAIVE + each.name))
        options = (*arguments, *groups, "--execute")
        self._tell.command(
            " ".join(["kafka-consumer-groups", "--bootstrap-server", self._sandbox.bootstrap_servers, *options])
        )
        self._sandbox.run_tool(_FROM_FILE, *options)
