"""Write the examples of docs/reference/json.md from one real run.

Usage: ``.venv/bin/python scripts/write_examples.py`` (``scripts/test`` makes .venv).

The applications billing and shop share a group on a sandbox. Then each gets a group of its own, and one of these groups
moves to a second cluster, to which MirrorMaker 2 copies. An example is what a command printed, byte by byte. All other
text of the page stays. The run takes some ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import tempfile
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from _sandbox import kafka, sandbox

from migrate_groups.cli.kafka_here import find_mirror_maker
from migrate_groups.demo.applications import Application, Stage
from migrate_groups.sandbox.mirror_maker import mirror_maker
from tests.support.broker_world import broker_world, until
from tests.support.cli import Cli, running
from tests.support.documents import name_of, parsed

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "json.md"
GROUP, RUN = "big", "split.toml.run"
APPLICATIONS = {
    name: Application(name=name, client="confluent-kafka", topics=(topic,), pattern=topic)
    for name, topic in (("billing", "invoices"), ("shop", "orders"))
}
TOPICS = [topic for each in APPLICATIONS.values() for topic in each.topics]
RESTARTS = 3
BRIEFLY = ("--settle", "2s", "--guard", "2s")
_SECONDS = 300


class Examples:
    """The documents that commands printed, by the names of their schemas."""

    def __init__(self, cli: Cli) -> None:
        self.printed: dict[str, str] = {}
        self._cli = cli

    def connect(self, bootstrap_servers: str) -> None:
        """Run the further commands on this cluster."""
        self._cli.environment["MIGRATE_GROUPS_BOOTSTRAP_SERVER"] = bootstrap_servers

    def take(self, *command: str, codes: Collection[int] = (0,)) -> dict[str, Any]:
        """Run a command, and keep what it printed as the example of its document. Return the document.

        codes: the exit codes that it may have.
        """
        process = self._cli.start(*command, "--format", "json")
        printed, said = process.communicate()
        if process.returncode not in codes:
            raise SystemExit(f"migrate-groups {command[0]} ended with {process.returncode}: {printed}{said}")
        document = parsed(printed)
        self.printed[name_of(document)] = printed
        return document

    def take_event(self, file: Path, name: str) -> None:
        """Keep the event with this name as the example. file: what ``--events`` wrote."""
        (self.printed["event"],) = [
            line for line in file.read_text().splitlines(keepends=True) if parsed(line)["event"] == name
        ]

    def take_sandbox(self) -> None:
        """Run ``sandbox --mirror`` until it has printed its document."""
        with running(self._cli, "sandbox", "--mirror", "--format", "json") as process:
            printed = "".join(iter(process.stdout.readline, "}\n")) + "}\n"
            process.send_signal(signal.SIGTERM)
            process.wait(_SECONDS)
        self.printed[name_of(parsed(printed))] = printed


class Scene:
    """The two applications, which restart, and the commands about them."""

    def __init__(self, examples: Examples, stage: Stage, folder: Path) -> None:
        self._examples, self._take, self._stage, self._folder = examples, examples.take, stage, folder

    def share(self) -> None:
        """Describe the group that both applications share, and measure what restarts of one application cost."""
        take = self._take
        self._start(shop=GROUP)
        self._start(billing=GROUP)
        self._stage.start_producer(TOPICS)
        self._await_records(billing=GROUP, shop=GROUP)
        take("list")
        take("doctor", "--write", "--yes", "--settle", "2s")
        take("describe", GROUP, "--time-lag")
        take("advise", GROUP)
        take("describe", "nobody", codes=[3])
        take("snapshot", GROUP, "-o", "before.csv")
        take("filter", "before.csv", "--topic", "invoices", "-o", "invoices.csv")
        take("split", "before.csv", "--to", f"{GROUP}-billing=invoices", "--stay", "ord*", "-o", "split.csv")
        take("export", "split.csv", "-o", "offsets.csv")
        take("rewind", "--group", GROUP, "--topic", "invoices", "--by-duration", "5s", "-o", "replay.csv")
        self._restart(billing=GROUP, shop=GROUP)
        take("advise", GROUP, "--log", "log", "--report", "costs")

    def compare(self, target: str) -> None:
        """Compare the group on both clusters, once the mirror has copied the committed offsets."""
        command = ("compare", GROUP, "--to-bootstrap-server", target)

        def is_exact() -> bool:
            # 6: the committed offsets that the mirror synchronises lag
            return {each["status"] for each in self._take(*command, codes=[0, 6])["partitions"]} == {"exact"}

        until(is_exact, seconds=_SECONDS)

    def split(self) -> None:
        """Give each application a group of its own, and check the hand-over."""
        own = {name: f"{GROUP}-{name}" for name in APPLICATIONS}
        topics = {own[name]: list(each.topics) for name, each in APPLICATIONS.items()}
        tables = "".join(
            f"\n[[target]]\ngroup = {json.dumps(group)}\ntopics = {json.dumps(of)}\n" for group, of in topics.items()
        )
        (self._folder / "split.toml").write_text(f"source = {json.dumps(GROUP)}\n{tables}")
        self._stage.stop(f"{GROUP}.")
        self._take("verify", GROUP, "--settle", "1s")
        self._take("migrate", "split.toml", *BRIEFLY, "--dry-run")
        self._take("migrate", "split.toml", *BRIEFLY, "--yes", "--events", "events.jsonl")
        self._examples.take_event(self._folder / "events.jsonl", "written")
        self._take("status", RUN)
        self._take("reconcile", RUN)
        self._start(**own)
        self._take("watch", own["billing"])
        self._restart(**own)
        self._take("audit", RUN, "--log", "audit-log")
        self._take("history", GROUP, "--log", "log", "-o", "history")
        self._take("advise", "--after", RUN, "--log", "log", "--report", "after")
        self._stage.stop("")

    def move(self, target: str) -> None:
        """Move one of the new groups to the other cluster, and delete both."""
        (self._folder / "groups.toml").write_text(f'groups = ["{GROUP}-shop"]\n')
        there = ("--to-bootstrap-server", target, "--on-existing", "forward", "--yes")
        self._take("migrate", "groups.toml", *BRIEFLY, *there)
        self._take("delete-group", f"{GROUP}-billing", f"{GROUP}-shop", "--yes")

    def _start(self, **groups: str) -> None:
        for name, group in groups.items():
            self._stage.start_application(APPLICATIONS[name], group, client_id=f"{name}-1")

    def _restart(self, **groups: str) -> None:
        for _ in range(RESTARTS):
            self._await_records(**groups)
            self._stage.stop(f"{groups['billing']}.billing")
            self._start(billing=groups["billing"])
        self._await_records(**groups)

    def _await_records(self, **groups: str) -> None:
        """Wait until each application has processed some more records in its group."""
        ledgers = [self._folder / f"{group}.{name}.txt" for name, group in groups.items()]
        before = [_lines(path) for path in ledgers]
        until(lambda: all(_lines(path) > at + 200 for path, at in zip(ledgers, before, strict=True)), seconds=_SECONDS)


def _lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def written(page: str, examples: dict[str, str]) -> str:
    """Return the page with these examples, each below the link to the schema of its document."""
    for name, printed in examples.items():
        below = re.compile(rf"(\(\.\./schemas/{name}\.json\).*?^```json\n).*?(^```$)", re.MULTILINE | re.DOTALL)
        page, number = below.subn(lambda found, new=printed: found[1] + new + found[2], page)  # type: ignore[misc]
        if number != 1:
            raise SystemExit(f"{PAGE} has {number} examples of {name}.json")
    return page


def main() -> None:
    """Run the commands, and write the page."""
    argparse.ArgumentParser(description="Write the examples of docs/reference/json.md from one real run.").parse_args()
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        cli = Cli(folder)
        cli.environment |= {key: value for key, value in os.environ.items() if key == "MIGRATE_GROUPS_MAVEN_MIRROR"}
        examples = Examples(cli)
        examples.take_sandbox()
        examples.take("demo", "-o", "demo")
        java, jars = kafka()
        maker = find_mirror_maker(jars, java, home=None, maven_mirror=os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR"))
        # Kafka's default; without it members that restart would cost a group of their own nothing.
        settings = {"group.initial.rebalance.delay.ms": "3000"}
        source, target = (opened.enter_context(sandbox(settings=settings)).bootstrap_servers for _ in range(2))
        given = {"source->target.sync.group.offsets.enabled": "true"}
        opened.enter_context(mirror_maker(maker, source, target, java=java, settings=given))
        with broker_world(source) as world:
            for topic in TOPICS:
                world.create_topic(topic=topic)
        examples.connect(source)
        scene = Scene(examples, opened.enter_context(Stage(source, folder)), folder)
        scene.share()
        scene.compare(target)
        scene.split()
        scene.move(target)
    PAGE.write_text(written(PAGE.read_text(), examples.printed))


if __name__ == "__main__":
    main()
