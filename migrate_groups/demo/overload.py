"""Run the demo ``overload``: restarts of one application stop all others of its group, until the group is split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from migrate_groups.demo.applications import APPLICATIONS, OLD_GROUP, TOPICS, Application, Stage
from migrate_groups.demo.ledger import count, read
from migrate_groups.demo.scene import Ending, Scene
from migrate_groups.files import split_toml

DELAY_MS = "3000"
"""``group.initial.rebalance.delay.ms`` in this demo: Kafka's default. In other demos the sandbox sets 0."""

_RESTARTS = 5
_RECORDS = 100
_FLAPPING = APPLICATIONS[-1]


class Overload(Scene):
    """The demo ``overload``: three applications share a group, which is then split.

    One application restarts several times before and after the split.
    """

    def play(self) -> Ending:
        """Run the demo, and return how many records were produced, processed, skipped and processed twice.

        Raises `MigrateGroupsError` if a command fails or a wait times out.
        """
        self._ledgers.mkdir()
        self._create_topics()
        with Stage(self._sandbox.bootstrap_servers, self._ledgers) as stage:
            old = self._share(stage)
            self._advise()
            new = self._split(stage)
            stage.stop("producer")
            self._tell.say("The producer stops; the applications process the remaining records.")
            self._await_rest({"left": [*old, *new]})
            stage.stop("")
            return Ending(ours=count(self._ledgers / "producer.txt", [*old, *new]), naive=None)

    def _share(self, stage: Stage) -> list[Path]:
        self._tell.say(f"{len(TOPICS)} topics, {len(APPLICATIONS)} applications, all in one group: {OLD_GROUP}.")
        groups = {each.name: OLD_GROUP for each in APPLICATIONS}
        ledgers = [self._start(stage, each, OLD_GROUP) for each in APPLICATIONS]
        self._await_members()
        stage.start_producer()
        self._tell.say(f"{_FLAPPING.name} restarts {_RESTARTS} times, and each time all others stand still.")
        self._flap(stage, groups, ledgers)
        return ledgers

    def _advise(self) -> None:
        self._tell.say("What does that cost? Spark reads it in the log of __consumer_offsets.")
        self._run("advise", OLD_GROUP, "--log", self._file("offsets-log"), "--report", self._file("advice"))
        self._tell.say("The split that would separate the applications, and what is cheaper:")
        self._run("advise", "--spec-for", OLD_GROUP, "-o", self._file("split.toml"))

    def _split(self, stage: Stage) -> list[Path]:
        self._tell.say("The old applications stop, the split is carried out, and the new groups start.")
        stage.stop(f"{OLD_GROUP}.")
        self._run("migrate", self._file("split.toml"), "--yes", "--settle", "2s", "--guard", "2s")
        targets = split_toml.load(self._folder / "split.toml").spec.targets
        groups = {
            each.name: next(target.group for target in targets if each.topics[0] in map(str, target.topics))
            for each in APPLICATIONS
        }
        ledgers = [self._start(stage, each, groups[each.name]) for each in APPLICATIONS]
        self._tell.say(f"{_FLAPPING.name} restarts {_RESTARTS} times again, and nobody else notices.")
        self._flap(stage, groups, ledgers)
        self._tell.say("Before and after, and what was predicted:")
        log, out = self._file("offsets-log"), self._file("after")
        self._run("advise", "--after", self._file("split.toml.run"), "--log", log, "--report", out)
        return ledgers

    def _start(self, stage: Stage, application: Application, group: str) -> Path:
        return stage.start_application(application, group, client_id=application.name)

    def _flap(self, stage: Stage, groups: Mapping[str, str], ledgers: list[Path]) -> None:
        """Restart the application ``search`` five times, each time after all applications have processed more records.

        groups: group by application name. ledgers: each application's file of processed record ids.
        """
        for number in range(_RESTARTS + 1):
            self._await_more(ledgers)
            if number < _RESTARTS:
                group = groups[_FLAPPING.name]
                stage.stop(f"{group}.{_FLAPPING.name}")
                self._start(stage, _FLAPPING, group)

    def _await_more(self, ledgers: list[Path]) -> None:
        before = {path: len(read(path)) for path in ledgers}
        self._await(
            "more records processed",
            lambda: {path.stem: len(read(path)) - before[path] for path in ledgers},
            lambda seen: min(seen.values()) >= _RECORDS,
            fails=True,
        )
