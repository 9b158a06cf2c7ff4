"""Compare forecasts of ``migrate`` with real cut-overs: near, far, with members that stay, and behind a mirror.

This is no test, because it measures time. ``scripts/test`` makes .venv; then ``.venv/bin/python
scripts/check_forecast.py``. It starts two Kafkas with default settings for groups, and a MirrorMaker 2. In each
cut-over consumers of one group run. ``migrate --events -`` says when those on the moved topics may stop. They leave 4 s
later, as applications that take some time to stop.

Measured is the time from the end of the last leave to the event ``START``. The forecast is the one of the event
``planned``. Far means that the proxies of the tests hold each response until 300 ms after its request. The script
prints a Markdown table. Exit code 1: a forecast is off by more than 1 s, and by more than 20 % of what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import confluent_kafka
from _sandbox import kafka, sandbox

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import Sandbox
from migrate_groups.sandbox.jars import fetch_mirror_jars, user_cache
from migrate_groups.sandbox.mirror_maker import mirror_maker
from tests.support.broker_world import broker_world, until, wait_for_coordinators
from tests.support.cluster_move import mirrored
from tests.support.proxy import LISTENER, put_before
from tests.support.rounds import Rounds

_TO_STOP = 4.0
_FAR = 0.3
_SLOW_MIRROR = 2.0
_DELAY = {"group.initial.rebalance.delay.ms": "3000"}
_EAGER, _COOPERATIVE, _KIP_848 = "range", "cooperative-sticky", "consumer"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A cut-over. stops, stay: the protocols of the members that stop, and of those that stay with topics of their own.

    partitions: of all topics that are handed over, one topic for each target group.
    """

    name: str
    partitions: int = 12
    targets: int = 1
    settle: str = "10s"
    stops: Sequence[str] = (_EAGER, _EAGER)
    stay: Sequence[str] = ()
    is_far: bool = False
    mirror: float | None = None


CASES = (
    Case(name="near"),
    Case(name="near, 2,000 partitions to 3 groups", partitions=2000, targets=3),
    Case(name="near, settle 0 s", settle="0s"),
    Case(name="far, 500 partitions to 3 groups", partitions=500, targets=3, is_far=True),
    Case(name="far, settle 0 s", settle="0s", is_far=True),
    Case(name="two classic members stay", stay=(_COOPERATIVE, _COOPERATIVE), stops=(_COOPERATIVE,)),
    Case(name="two KIP-848 members stay", stay=(_KIP_848, _KIP_848), stops=(_KIP_848,)),
    Case(name="mixed: a KIP-848 and a classic member stay", stay=(_KIP_848, _COOPERATIVE), stops=(_KIP_848,)),
    Case(name="to another cluster, mirror near", mirror=0.0),
    Case(name="to another cluster, mirror 2 to 4 s behind, settle 1 s", mirror=_SLOW_MIRROR, settle="1s"),
)


class Member:
    """A consumer that polls in a thread of its own. is_assigned: whether it has partitions."""

    def __init__(self, servers: str, group: str, topics: Sequence[str], protocol: str) -> None:
        how = {"group.protocol": "consumer"} if protocol == _KIP_848 else {"partition.assignment.strategy": protocol}
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0, **how}
        )
        self._consumer.subscribe(list(topics))
        self._is_over = self.is_assigned = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            self._consumer.poll(0.1)
            self.is_assigned = bool(self._consumer.assignment())  # another thread must not ask: it may wait for ever
        self._consumer.close()

    def leave(self) -> None:
        """Leave the group, and wait until the member has left."""
        self._is_over = True
        self._thread.join()


@dataclass
class Clusters:
    """The brokers of the source, the proxies before them, and the brokers of the target."""

    source: Sandbox
    proxies: Rounds
    target: Sandbox
    folder: Path
    maker: Callable[[str], Any]
    rng: random.Random = field(default_factory=random.SystemRandom)


@contextmanager
def _members(servers: str, group: str, of: Sequence[tuple[Sequence[str], str]]) -> Iterator[list[Member]]:
    made: list[Member] = []
    try:
        # Brokers refuse KIP-848 members while the first classic members of a group join.
        for is_first in (True, False):
            made.extend(Member(servers, group, *each) for each in of if (each[1] == _KIP_848) == is_first)
            until(lambda: all(each.is_assigned for each in made), seconds=90)
        yield made
    finally:
        for each in made:
            each.leave()


def run(case: Case, clusters: Clusters) -> tuple[float, float]:
    """Do the cut-over. Return the forecast, and the seconds from the last leave to START."""
    near = clusters.source.bootstrap_servers
    with ExitStack() as opened:
        world = opened.enter_context(broker_world(near))
        group, made = world.name("old"), world.name("t")
        command = ["--settle", case.settle, "--guard", "0s", "--wait", "2m", "--yes", "--events", "-"]
        if case.mirror is None:
            moved = [
                world.create_topic(case.partitions // case.targets, topic=f"{made}-{number}")
                for number in range(case.targets)
            ]
        else:
            maker = opened.enter_context(clusters.maker(made))
            opened.enter_context(mirrored(near, clusters.target.bootstrap_servers, maker, made, case.partitions))
            moved = [made]
            command += ["--to-bootstrap-server", clusters.target.bootstrap_servers]
        kept = [world.create_topic(2, topic=f"{made}-kept-{number}") for number in range(len(case.stay))]
        sizes = dict.fromkeys(moved, case.partitions // len(moved)) | dict.fromkeys(kept, 2)
        world.commit_all(group, {TopicPartition(topic, at): 0 for topic, size in sizes.items() for at in range(size)})
        to = {topic: group if case.mirror is not None else f"{group}-{topic}" for topic in moved}
        tables = [f'[[target]]\ngroup = "{to[topic]}"\ntopics = ["{topic}"]' for topic in moved]
        stay = [f"[stay]\ntopics = {json.dumps(kept)}"] if kept else []
        file = clusters.folder / f"{group}.toml"
        file.write_text("\n".join([f'source = "{group}"', *tables, *stay]))
        all_members = [(moved, each) for each in case.stops] + [
            ([topic], each) for topic, each in zip(kept, case.stay, strict=True)
        ]
        members = opened.enter_context(_members(near, group, all_members))
        clusters.proxies.begin(_FAR if case.is_far else case.mirror or 0.0)
        time.sleep(clusters.rng.uniform(5, 10))  # so that heartbeats are not in step with the cut-over
        servers = clusters.proxies.bootstrap_servers if case.is_far else near
        with subprocess.Popen(
            [sys.executable, "-m", "migrate_groups", "migrate", str(file), "--bootstrap-server", servers, *command],
            stdout=subprocess.PIPE,
            stderr=(clusters.folder / f"{group}.log").open("w"),
            text=True,
        ) as process:
            forecast, left, start = 0.0, 0.0, 0.0
            for line in process.stdout or ():
                event = json.loads(line)
                if event["event"] == "planned":
                    forecast = event["seconds"]
                elif event["event"] == "waiting" and not left:
                    time.sleep(_TO_STOP)
                    for each in members[: len(case.stops)]:
                        each.leave()
                    left = time.time()
                elif event["event"] == "START":
                    start = datetime.fromisoformat(event["at"]).timestamp()
                elif event["event"] == "done" and event["exit_code"]:
                    raise SystemExit(f"{case.name}: {event['error']}")
        clusters.proxies.end()
        return forecast, start - left


def main() -> int:
    """Do all cut-overs, and print the table."""
    parser = argparse.ArgumentParser(description="Compare forecasts of migrate with real cut-overs.")
    parser.add_argument("--only", nargs="+", metavar="NUMBER", type=int, help="only these rows of the table, from 1")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    java, jars = kafka()
    maven = os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR")
    wrong = 0
    print("| cut-over | forecast | measured | off by |\n|---|---|---|---|")
    with ExitStack() as opened:
        source = opened.enter_context(sandbox(settings=_DELAY, listeners={LISTENER: "PLAINTEXT"}))
        target = opened.enter_context(sandbox(settings=_DELAY))
        proxies = put_before(source, Rounds)
        for node in source.nodes:
            node.await_answer()
        for each in (source, target):
            wait_for_coordinators(each.bootstrap_servers)

        def maker(topic: str) -> Any:
            mirror_jars = fetch_mirror_jars(java=java, cache=user_cache(), version=jars.version, mirror=maven)
            servers = proxies.bootstrap_servers, target.bootstrap_servers
            return mirror_maker(mirror_jars, *servers, java=java, settings={"source->target.topics": topic})

        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        clusters = Clusters(source, proxies, target, folder, maker)
        for number, case in enumerate(CASES, 1):
            for _ in range(options.runs if not options.only or number in options.only else 0):
                forecast, measured = run(case, clusters)
                off = forecast - measured
                wrong += abs(off) > max(1.0, 0.2 * measured)
                print(f"| {case.name} | {forecast:.0f} | {measured:.1f} | {off:+.1f} |", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
