"""Run the demo: an overloaded group is split while a producer keeps producing, and every record is counted."""

from __future__ import annotations

from pathlib import Path

from migrate_groups.demo.applications import APPLICATIONS, OLD_GROUP, TOPICS, Stage, split_toml
from migrate_groups.demo.ledger import count
from migrate_groups.demo.scene import Ending, Scene

_ENOUGH_RECORDS = 300
_FROM_FILE = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_NAIVE = "naive-"


class Story(Scene):
    """The main demo: a group is split into several, with this tool and, for comparison, with Kafka's own tool."""

    def play(self) -> Ending:
        """Run the demo, and return how many records were produced, processed, skipped and processed twice.

        Raises `MigrateGroupsError` if a command fails or a wait times out.
        """
        self._ledgers.mkdir()
        self._create_topics()
        with Stage(self._sandbox.bootstrap_servers, self._ledgers) as stage:
            old = self._overloaded_group(stage)
            self._review()
            self._cut_over(stage)
            ours, naive = self._new_groups(stage)
            self._tell.say("The producer stops; the applications process the remaining records.")
            stage.stop("producer")
            self._await_rest({"ours": [*old, *ours], "naive": [*old, *naive]})
            stage.stop("")
            self._reconcile()
            produced = self._ledgers / "producer.txt"
            return Ending(ours=count(produced, [*old, *ours]), naive=count(produced, [*old, *naive]))

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
        before, after = self._file("split.csv"), self._file("handed-over.parquet")
        self._run("reconcile", before, after, "-o", self._file("reconciled"))

    def _run_kafkas_tool(self, *arguments: str) -> None:
        groups = (option for each in APPLICATIONS for option in ("--group", _NAIVE + each.name))
        options = (*arguments, *groups, "--execute")
        self._tell.command(
            " ".join(["kafka-consumer-groups", "--bootstrap-server", self._sandbox.bootstrap_servers, *options])
        )
        self._sandbox.run_tool(_FROM_FILE, *options)
