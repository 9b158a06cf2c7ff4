"""Measure a cut-over against Kafka's own tool and a bare script.

Usage: ``.venv/bin/python scripts/bench_cutover.py`` (``scripts/test`` makes .venv). The script starts a Kafka, makes a
group of ``--partitions`` partitions, and runs whole processes in turns, each measured from its start to its exit:

- ``cold``: ``migrate`` of the stopped group: snapshot, split, every check, write, read-back by two clients, receipt
- ``copy``: the same with ``--copy``, which claims nothing
- ``bare``: scripts/bench_bare.py, kafka-python without receipt and second client
- ``kafka``: ``kafka-consumer-groups``, as its own script starts it, four times: state, export, execute, describe
- ``warm``: a ``migrate`` that waits, from the time the last member begins to leave to the confirmed read-back
- ``csv``, ``parquet``: ``snapshot`` to a file; ``export``: ``kafka-consumer-groups --export``
- ``kcl``, if it is on the PATH or ``--kcl`` names it: describe, seek, describe

With several numbers of partitions the script also prints how the medians grow. Above 15,000 partitions the Kafka has
three brokers, because a broker that may open 20,000 files holds about 19,000 partitions.

With ``--targets N`` the group has at least N topics, and ``cold-split`` and ``warm-split`` measure ``cold`` and
``warm`` with N target groups.

``settle`` and ``guard`` are 0 s, because both are waits that the user chooses. The script prints median,
minimum, maximum and ratios. If other work runs too, the ratios of CPU time tell more than those of seconds. ``--json``
saves every run. Exit 1 if a run did not do its work.

Tried without a gain: log start offsets requested at the same time as committed offsets, because a broker answers the
requests of a connection one after the other; many small ListOffsets requests, of which eight at a time were slower.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
from _bench import (
    ENVIRONMENT,
    OURS,
    Measured,
    Runs,
    cpu_so_far,
    in_turns,
    medians,
    options_of,
    report,
    run,
)
from _sandbox import sandbox
from kafka import KafkaAdminClient
from kafka.structs import OffsetAndMetadata, TopicPartition

from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.sandbox.broker import Sandbox
from tests.support.broker_world import wait_for_coordinators

_A_TOPIC = 100
_MOST_OF_ONE_BROKER = 15_000
# With these settings, brokers that are busy making partitions do not count as dead.
_BUSY = {
    "min.insync.replicas": "1",
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "60000",
    "controller.quorum.fetch.timeout.ms": "20000",
    "controller.quorum.election.timeout.ms": "10000",
}
_OLD = "bench-old"
_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_AS_KAFKA_RUNS = (
    *("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    *("-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
_NOW = ("--settle", "0s", "--guard", "0s", "--yes")
_DONE = "START THE NEW GROUPS NOW"


class HandOver(NamedTuple):
    """A stopped source group, and the names of its target groups. Each run has its own, because claims stay."""

    old: str
    new: list[str]


class Bench:
    """A Kafka with group ``bench-old``, a folder for files, and the groups of each hand-over.

    kcl: the path of the program kcl; None: it does not take part.
    """

    def __init__(self, sandbox: Sandbox, partitions: int, targets: int, folder: Path, kcl: str | None = None) -> None:
        self.sandbox, self.partitions, self.targets, self.folder = sandbox, partitions, targets, folder
        self.kcl = kcl
        self._admin = KafkaAdminClient(bootstrap_servers=sandbox.bootstrap_servers, request_timeout_ms=120_000)
        self._runs = 0
        self._a_topic = min(_A_TOPIC, max(1, partitions // targets))
        self.topics = [f"bench-{number:05d}" for number in range(-(-partitions // self._a_topic))]
        self._create_topics()
        self._commit_everywhere(_OLD)

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def _create_topics(self) -> None:
        sizes = [min(self._a_topic, self.partitions - n * self._a_topic) for n in range(len(self.topics))]
        for first in range(0, len(self.topics), 20):
            wanted = dict(zip(self.topics[first : first + 20], sizes[first : first + 20], strict=True))
            self._admin.create_topics(
                {topic: {"num_partitions": size, "replication_factor": 1} for topic, size in wanted.items()}
            )
        for address in self.sandbox.bootstrap_servers.split(","):
            with closing(KafkaAdminClient(bootstrap_servers=address, request_timeout_ms=120_000)) as admin:
                admin.wait_for_topics(self.topics, timeout_ms=600_000)
        self._all = [TopicPartition(t, p) for t, size in zip(self.topics, sizes, strict=True) for p in range(size)]
        self._produce_everywhere()

    def _produce_everywhere(self) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.sandbox.bootstrap_servers, "linger.ms": 100})
        left = set(self._all)

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            if error is None:
                left.discard(TopicPartition(message.topic(), message.partition()))

        for _ in range(600):  # because brokers learn of new partitions at different times
            for topic, partition in sorted(left):
                with suppress(confluent_kafka.KafkaException):
                    producer.produce(topic, value=b"record", partition=partition, on_delivery=delivered)
                producer.poll(0)
            producer.flush(300)
            if not left:
                break
            producer.poll(1.0)
        if left:
            raise SystemExit(f"{len(left)} records were not produced")

    def _commit_everywhere(self, group: str) -> None:
        wait_for_coordinators(self.sandbox.bootstrap_servers)
        for first in range(0, len(self._all), 5000):
            batch = {partition: OffsetAndMetadata(1, "", 0) for partition in self._all[first : first + 5000]}
            answers = self._admin.alter_group_offsets(group, batch)
            if any(error.errno for error in answers.values()):
                raise SystemExit("the old group's offsets could not be set")

    @contextmanager
    def hand_over(self, targets: int = 1) -> Iterator[HandOver]:
        """Yield groups of a hand-over; afterwards check that the new ones have every offset, and delete all of them."""
        self._runs += 1
        old = f"{_OLD}-{self._runs}"
        new = [f"bench-new-{self._runs}-{each}" for each in range(targets)]
        self._commit_everywhere(old)
        yield HandOver(old, new)
        found = {}
        for group in new:
            found.update(self._admin.list_group_offsets({group: None})[group])
        if len(found) != self.partitions or {each.offset for each in found.values()} != {1}:
            raise SystemExit(f"{new[0]} and others have {len(found)} of {self.partitions} offsets")
        self._admin.delete_groups([old, *new, *map(journal_group, [old, *new])])

    def make(self, group: str) -> None:
        """Create a group by committing one offset."""
        self._admin.alter_group_offsets(group, {self._all[0]: OffsetAndMetadata(0, "", 0)})

    def spec(self, hand_over: HandOver) -> Path:
        """Write a spec that distributes the topics over the new groups, in a new folder, and return its path."""
        groups = hand_over.new
        folder = self.folder / groups[0]
        folder.mkdir()
        path = folder / "split.toml"
        shares = {group: self.topics[number :: len(groups)] for number, group in enumerate(groups)}
        names = {group: ["bench-*"] if len(groups) == 1 else topics for group, topics in shares.items()}
        targets = (f'[[target]]\ngroup = "{group}"\ntopics = {json.dumps(topics)}\n' for group, topics in names.items())
        path.write_text(f'source = "{hand_over.old}"\n{"".join(targets)}')
        return path

    def ours(self, *arguments: object) -> Measured:
        """Run and measure a command of migrate-groups."""
        return run(self.command(*arguments))

    def command(self, *arguments: object) -> list[str]:
        """Return the command line of a command of migrate-groups."""
        server = ("--bootstrap-server", self.sandbox.bootstrap_servers)
        return [*OURS, *map(str, arguments), *server]

    def kafka(self, *arguments: str) -> Measured:
        """Run and measure ``kafka-consumer-groups`` with these arguments."""
        return run(self.kafka_command(*arguments))

    def kafka_command(self, *arguments: str) -> list[str]:
        """Return the command line of ``kafka-consumer-groups``, with the JVM options of bin/kafka-run-class.sh."""
        java, *_, class_path = self.sandbox.tool_command
        server = ("--bootstrap-server", self.sandbox.bootstrap_servers, "--timeout", "120000")
        return [java, *_AS_KAFKA_RUNS, "-cp", class_path, _TOOL, *arguments, *server]

    @contextmanager
    def member(self, group: str) -> Iterator[confluent_kafka.Consumer]:
        """Yield the group's only member, and close it. Its leave would take seconds with all topics, so it has one."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.sandbox.bootstrap_servers,
                "group.id": group,
                "enable.auto.commit": False,
                "session.timeout.ms": 45000,
            }
        )
        consumer.subscribe(self.topics[:1])
        while not consumer.assignment():
            consumer.poll(0.1)
        consumer.pause(consumer.assignment())
        with closing(consumer):
            yield consumer


def cold(bench: Bench, targets: int = 1, *options: str) -> Measured:
    """Measure ``migrate`` of a stopped group, from the start of its process to its exit."""
    with bench.hand_over(targets) as groups:
        return bench.ours("migrate", bench.spec(groups), *_NOW, *options)


def warm(bench: Bench, targets: int = 1) -> Measured:
    """Measure a ``migrate`` that waits: from when the last member begins to leave to the second client's read-back."""
    with bench.hand_over(targets) as groups, bench.member(groups.old) as member:
        process = subprocess.Popen(
            bench.command("migrate", bench.spec(groups), *_NOW, "--wait", "120s"),
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = process.stderr
        assert lines is not None  # noqa: S101  for mypy: stderr is a pipe
        said: list[str] = []
        if not any("with 1 member" in line for line in _kept(lines, said)):
            raise SystemExit(f"migrate did not wait: {''.join(said)}")
        left, before = time.perf_counter(), cpu_so_far(process.pid)
        member.close()
        done = next(
            ((time.perf_counter(), cpu_so_far(process.pid)) for line in _kept(lines, said) if _DONE in line), None
        )
        said += lines
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if done is None or process.returncode:
            raise SystemExit(f"migrate ended with {process.returncode}: {''.join(said)}")
    return Measured(done[0] - left, done[1] - before, usage.ru_maxrss / 1024)


def _kept(lines: Iterable[str], said: list[str]) -> Iterator[str]:
    """Yield the lines, and keep them in ``said``."""
    for line in lines:
        said.append(line)
        yield line


def bare(bench: Bench) -> Measured:
    """Measure scripts/bench_bare.py."""
    with bench.hand_over() as (old, [group]):
        script = Path(__file__).with_name("bench_bare.py")
        return run([sys.executable, str(script), bench.sandbox.bootstrap_servers, old, group])


def kafka(bench: Bench) -> Measured:
    """Measure state, export, execute and describe of Kafka's own tool; the export is used as its --from-file."""
    with bench.hand_over() as (old, [group]):
        file = bench.folder / "offsets.csv"
        state = bench.kafka("--describe", "--state", "--group", old)
        exported = exported_by_kafka(bench, old, file)
        execute = bench.kafka("--reset-offsets", "--from-file", str(file), "--execute", "--group", group)
        describe = bench.kafka("--describe", "--group", group)
        return Measured.of_all((state, exported, execute, describe))


def exported_by_kafka(bench: Bench, group: str, file: Path) -> Measured:
    """Measure the export by Kafka's own tool, with its stdout as the file; exit if it lacks a partition."""
    to_current = ("--reset-offsets", "--to-current", "--all-topics", "--export", "--group", group)
    measured = run(bench.kafka_command(*to_current), file)
    lines = [line for line in file.read_text().splitlines() if line]
    if len(lines) != bench.partitions:
        raise SystemExit(f"Kafka exported {len(lines)} of {bench.partitions} partitions")
    file.write_text("".join(f"{line}\n" for line in lines))
    return measured


def export(bench: Bench) -> Measured:
    """Measure ``kafka-consumer-groups --export``."""
    return exported_by_kafka(bench, _OLD, bench.folder / "export.csv")


def csv(bench: Bench) -> Measured:
    """Measure ``snapshot`` to CSV."""
    return bench.ours("snapshot", _OLD, "-o", bench.folder / "s.csv", "--force")


def parquet(bench: Bench) -> Measured:
    """Measure ``snapshot`` to Parquet."""
    return bench.ours("snapshot", _OLD, "-o", bench.folder / "s.parquet", "--force")


def kcl(bench: Bench) -> Measured:
    """Measure describe, seek and describe by kcl. The group is made first: kcl seeks in existing groups only."""
    with bench.hand_over() as (old, [group]):
        bench.make(group)
        server = ("--bootstrap-servers", bench.sandbox.bootstrap_servers)
        base = [str(bench.kcl), "--no-config-file", *server, "group"]
        seek = ["seek", group, "--to-group", old, "--allow-new-topics", "--yes"]
        steps = (["describe", old], seek, ["describe", group])
        return Measured.of_all([run([*base, *step]) for step in steps])


CONTENDERS: Mapping[str, Callable[[Bench], Measured]] = {
    "cold": cold,
    "warm": warm,
    "copy": lambda bench: cold(bench, 1, "--copy"),
    "cold-split": lambda bench: cold(bench, bench.targets),
    "warm-split": lambda bench: warm(bench, bench.targets),
    "bare": bare,
    "kafka": kafka,
    "csv": csv,
    "parquet": parquet,
    "export": export,
    "kcl": kcl,
}
RATIOS = (
    ("cold-split", "cold"),
    ("warm-split", "warm"),
    ("warm", "kcl"),
    ("cold", "kcl"),
    ("warm", "kafka"),
    ("cold", "kafka"),
    ("cold", "bare"),
    ("cold", "copy"),
    ("warm", "bare"),
    ("csv", "export"),
    ("parquet", "export"),
)


def measure(partitions: int, targets: int, names: list[str], runs: int, kcl: str | None = None) -> Runs:
    """Start a Kafka with the source group, and measure these contenders in turns; the first turn does not count.

    kcl: the path of the program kcl, if it is one of the contenders.
    """
    several: dict[str, Any] = {"brokers": 3, "settings": _BUSY} if partitions > _MOST_OF_ONE_BROKER else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        sandbox(**several) as running,
        closing(Bench(running, partitions, targets, Path(folder), kcl)) as bench,
    ):
        return in_turns({name: partial(CONTENDERS[name], bench) for name in names}, runs, warm_up=True)


def print_growth(found: Mapping[int, Runs]) -> None:
    """Print the median seconds for each number of partitions, and in brackets their ratio to the first number."""
    middle = {size: medians(runs) for size, runs in found.items()}
    least = middle[next(iter(found))]
    print("\npartitions" + "".join(f"{name:>18}" for name in least))
    for size, seconds in middle.items():
        cells = (f"{each:10.2f} ({each / least[name]:5.1f})" for name, each in seconds.items())
        print(f"{size:10,}" + "".join(cells))


def main() -> None:
    """Measure, and print the results."""
    parser = options_of("Measure a cut-over against Kafka's own tool and a bare script.", runs=5)
    parser.add_argument("--partitions", type=int, nargs="+", default=[10_000])
    parser.add_argument("--targets", type=int, default=1, help="how many new groups the -split contenders have")
    parser.add_argument("--only", nargs="+", choices=sorted(CONTENDERS), help="measure only these contenders")
    parser.add_argument(
        "--kcl", default=shutil.which("kcl"), metavar="PATH", help="the program kcl (default: on the PATH)"
    )
    options = parser.parse_args()
    if options.kcl and not shutil.which(options.kcl):
        parser.error(f"--kcl {options.kcl} is no program")
    names = options.only or [name for name in CONTENDERS if options.targets > 1 or not name.endswith("-split")]
    if "kcl" in names and options.kcl is None:
        names = [name for name in names if name != "kcl"]
        print("kcl is not on the PATH, so it is left out: name the program with --kcl", file=sys.stderr)
    found = {size: measure(size, options.targets, names, options.runs, options.kcl) for size in options.partitions}
    report(options, {f"{size:,} partitions": runs for size, runs in found.items()}, RATIOS, targets=options.targets)
    if len(found) > 1:
        print_growth(found)


if __name__ == "__main__":
    main()
