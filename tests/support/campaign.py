"""One seeded run of a migration with a fault, and the checks after it.

The command runs in its own process, and halts at a random step (``halted_at``). The fault happens before the step or
during it. The cluster is repaired while the command is still running, or after it has ended. Then this must hold:

- The target group has the offset that the receipt states for every confirmed or unchanged partition. Any other
  partition has the offset from before the run or the planned offset. Exit 2, 3 and 5 mean that nothing was written.
- The same command, run again, completes the migration.
- The target groups' applications, started afterwards, process once every record that the source group had not
  processed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from migrate_groups.files.runs import receipt_json
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Outcome
from tests.support import forks
from tests.support.halted import Halted, halted
from tests.support.processes import crash_children
from tests.support.three_brokers import OldApplication, ThreeBrokers

# The first three faults are listed twice, so that they are chosen twice as often.
FAULTS = (
    "coordinator killed",
    "coordinator killed",
    "coordinator hangs",
    "coordinator hangs",
    "coordinator restarted",
    "coordinator restarted",
    "tool killed",
    "tool killed at a hung coordinator",
    "cluster gone",
    "rolling restart",
    "partition without leader",
    "second client crashes",
)
# A migration of two topics to two groups takes 74 steps or a few more. Steps 45 to 64 lie between the first time that
# the receipt is recorded and the last check after the write. Half of the runs choose their step from these.
_ALL_STEPS, _STEPS_OF_THE_WRITE = range(1, 75), range(45, 65)
_PATIENCE = 150.0  # far longer than the sum of the command's time-outs
_NOTHING_WRITTEN = (2, 3, 5)


@dataclass(slots=True, kw_only=True)
class Run:
    """The choices of the seed, and the results. problems: the checks that failed."""

    seed: int
    fault: str
    step: int
    steps: int = 0
    halted: bool = False
    exits: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    records: int = 0
    skipped: int = 0
    twice: int = 0
    open_entries: int = 0
    one_client_only: bool = False
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


def run(seed: int, brokers: ThreeBrokers, folder: Path) -> Run:
    """Run a migration with the fault that ``seed`` chooses, in an empty folder, and return what the checks found."""
    chance = random.Random(seed)
    step = chance.choice(chance.choice((_ALL_STEPS, _STEPS_OF_THE_WRITE)))
    found = Run(seed=seed, fault=chance.choice(FAULTS), step=step)
    begun = time.monotonic()
    migration = _Migration(chance, brokers, folder, found)
    try:
        migration.begin()
        _FAULTS[found.fault](migration)
        migration.complete()
        migration.count_records()
    except Exception as error:  # noqa: BLE001  a harness that fails has checked nothing
        found.problems.append(f"{type(error).__name__}: {error}")
    finally:
        migration.end()
    found.seconds = round(time.monotonic() - begun, 1)
    return found


class _Migration:
    """A source group with two topics, their records, and the command that hands each topic to a target group."""

    def __init__(self, chance: random.Random, brokers: ThreeBrokers, folder: Path, found: Run) -> None:
        self.chance, self.brokers, self.folder, self.found = chance, brokers, folder, found
        self.source = brokers.name("old")
        only_on = chance.randint(1, 3) if found.fault == "partition without leader" else None
        self.leader = brokers.sandbox.nodes[(only_on or 1) - 1]
        self.targets = {
            brokers.name("new"): brokers.create_topic("pay"),
            brokers.name("new"): brokers.create_topic("find", 1 if only_on else 2, only_on=only_on),
        }
        self.topics = list(self.targets.values())
        self.partitions = brokers.partitions(self.topics)
        self.produced: Counter[TopicPartition] = Counter()
        self.positions: dict[TopicPartition, int] = {}
        self.application: OldApplication | None = None
        self.timeout = chance.choice((3, 20, 20))

    def begin(self) -> None:
        """Commit offsets of the source group for a part of each partition, and write the split spec."""
        self.produce()
        self.brokers.flush()
        self.positions = {each: self.chance.randint(0, self.produced[each]) for each in self.partitions}
        self.brokers.commit(self.source, self.positions)
        # The coordinators answer now, so that the run's fault is the first that the command meets.
        self.target_offsets()
        settle, guard = self.chance.choice((0, 0, 300)), self.chance.choice((0, 0, 1))
        (self.folder / "split.toml").write_text(
            f'source = "{self.source}"\n'
            + "".join(f'[[target]]\ngroup = "{group}"\ntopics = ["{topic}"]\n' for group, topic in self.targets.items())
            + f'[options]\nsettle = "{settle}ms"\nguard = "{guard}s"\n'
        )

    def coordinator(self):
        """Return the coordinator of a random group: the source group or a target group."""
        return self.brokers.coordinator(self.chance.choice([self.source, *self.targets]))

    def produce(self) -> None:
        more = {each: self.chance.randint(1, 20) for each in self.partitions}
        self.brokers.produce(
            {
                each: [f"{each}-{self.produced[each] + number}" for number in range(count)]
                for each, count in more.items()
            }
        )
        self.produced.update(more)

    def join(self) -> None:
        """Start the old application, and return once it has an assignment."""
        self.application = OldApplication(self.brokers, self.source, self.topics, self.positions)
        deadline = time.monotonic() + _PATIENCE
        while not self.application.joined() and time.monotonic() < deadline:
            time.sleep(0.05)

    def leave(self) -> None:
        if self.application:
            self.application.stop()
            self.positions = self.application.positions
            self.application = None

    def pause(self, most: float) -> None:
        time.sleep(self.chance.uniform(0, most))

    @contextmanager
    def halted(self) -> Iterator[Halted]:
        """Start the command, and yield once it has halted at the run's step or has ended before that step."""
        with halted(self.found.step, self._arguments(), self.folder, self._environment()) as started:
            if self.found.step:
                self.found.halted, self.found.steps = started.await_step()
            self.produce()
            yield started
            self._conclude(started)

    def _conclude(self, halted: Halted) -> None:
        halted.release()
        self.leave()
        code = halted.process.wait(_PATIENCE)
        self._told(code, halted.said())
        self.brokers.heal()
        self.check_receipt(code)

    def again(self) -> int:
        """Run the same command again without a fault, and return its exit code."""
        with forks.Popen(
            [sys.executable, "-m", "migrate_groups", *self._arguments()],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            said, _ = process.communicate(timeout=_PATIENCE)
        self._told(process.returncode, said)
        return process.returncode

    def _arguments(self) -> list[str]:
        return ["migrate", "split.toml", "--yes", "--wait", "60s", "--timeout", f"{self.timeout}s"]

    def _environment(self) -> Mapping[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MIGRATE_GROUPS_")}
        return kept | {
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "MIGRATE_GROUPS_BOOTSTRAP_SERVER": self.brokers.bootstrap_servers,
        }

    def _told(self, code: int, said: str) -> None:
        self.found.exits.append(code)
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        self.found.said += errors
        if "Traceback" in said or code not in (0, 3, 4, 5, -signal.SIGKILL):
            self.found.problems.append(f"exit {code}: {said[-2000:]}")
        elif code > 0 and len(errors) != 1:
            self.found.problems.append(f"exit {code} with {len(errors)} lines of error")

    def target_offsets(self) -> dict[tuple[str, TopicPartition], int]:
        """Return the committed offsets of the target groups."""
        return {
            (group, partition): offset
            for group, topic in self.targets.items()
            for partition, offset in self.brokers.committed(group, self.brokers.partitions([topic])).items()
        }

    def check_receipt(self, code: int) -> None:
        """Check that the receipt agrees with the target groups' committed offsets. code: the exit code."""
        committed = self.target_offsets()
        path = self.folder / "split.toml.run" / "receipt.json"
        if not path.exists() or (code in _NOTHING_WRITTEN and len(self.found.exits) == 1):
            if committed:
                self.found.problems.append(f"exit {code}, and {committed} is written")
            return
        (execution,) = receipt_json.load(path).executions
        self.found.one_client_only |= any("one client only" in remark for remark in execution.remarks)
        for entry in execution.entries:
            change = entry.change
            now = committed.get((change.group, change.topic_partition))
            before, after = (each.offset if each else None for each in (change.before, change.after))
            settled = entry.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED)
            self.found.open_entries += not settled
            if now not in ((after,) if settled else (before, after)):
                self.found.problems.append(f"{change.topic_partition} is at {now}, receipt: {entry}")
            if after != self.positions[change.topic_partition]:
                self.found.problems.append(f"{change.topic_partition} was to go to {after}, not {self.positions}")

    def complete(self) -> None:
        """Run the same command again if it failed; one more run must be enough on a repaired cluster."""
        if self.found.exits[-1] != 0 and self.again() != 0:
            self.found.problems.append(f"the same command again: exit {self.found.exits[-1]}")
        wanted = {
            (group, partition): offset
            for group, topic in self.targets.items()
            for partition, offset in self.positions.items()
            if partition.topic == topic
        }
        committed = self.target_offsets()
        if committed != wanted:
            self.found.problems.append(f"the target groups are at {committed}, not {wanted}")
        self.check_receipt(self.found.exits[-1])

    def count_records(self) -> None:
        """Start the target groups' applications, and count the records that they and the source group processed."""
        self.produce()
        self.brokers.flush()
        processed = Counter(f"{each}-{number}" for each in self.partitions for number in range(self.positions[each]))
        for group, topic in self.targets.items():
            processed += self.brokers.drain(group, [topic], reset=self.chance.choice(("earliest", "latest")))
        produced = {f"{each}-{number}" for each in self.partitions for number in range(self.produced[each])}
        self.found.records = len(produced)
        self.found.skipped = len(produced - processed.keys())
        self.found.twice = sum(count > 1 for count in processed.values())
        if self.found.skipped or self.found.twice or processed.keys() - produced:
            self.found.problems.append("records were skipped or processed twice")

    def end(self) -> None:
        """Repair the cluster, stop the old application, and delete the topics."""
        try:
            self.brokers.heal()
            self.leave()
            self.brokers.delete_topics(self.topics)
        except Exception as error:  # noqa: BLE001  reported with the run
            self.found.problems.append(f"afterwards: {type(error).__name__}: {error}")


def _before_or_during(migration: _Migration, halted: Halted) -> None:
    """In half of the runs, let the command continue shortly before the fault, so that the fault comes in a step."""
    if migration.chance.random() < 0.5:
        halted.release()
        migration.pause(0.02)


def _coordinator_killed(migration: _Migration) -> None:
    with migration.halted() as halted:
        victim = migration.coordinator()
        _before_or_during(migration, halted)
        victim.kill()
        halted.release()
        if migration.chance.random() < 0.5:
            migration.pause(3)
            victim.start()


def _coordinator_hangs(migration: _Migration) -> None:
    with migration.halted() as halted:
        victim = migration.coordinator()
        _before_or_during(migration, halted)
        migration.brokers.hang(victim)
        halted.release()
        migration.pause(6)
        migration.brokers.go_on(victim)


def _coordinator_restarted(migration: _Migration) -> None:
    with migration.halted() as halted:
        victim = migration.coordinator()
        _before_or_during(migration, halted)
        victim.stop()
        halted.release()
        victim.start()


def _tool_killed(migration: _Migration) -> None:
    with migration.halted() as halted:
        _before_or_during(migration, halted)
        halted.process.kill()


def _tool_killed_at_a_hung_coordinator(migration: _Migration) -> None:
    """Kill the command while its last request waits in the broker's socket: the broker may still execute it."""
    with migration.halted() as halted:
        victim = migration.brokers.coordinator(migration.chance.choice([*migration.targets]))
        migration.brokers.hang(victim)
        halted.release()
        migration.pause(1)
        halted.process.kill()
        migration.brokers.go_on(victim)


def _second_client_crashes(migration: _Migration) -> None:
    """Crash the second client once or twice, as librdkafka has been seen to crash."""
    with migration.halted() as halted:
        crash = migration.chance.choice((signal.SIGSEGV, signal.SIGABRT))
        crash_children(halted.process.pid, crash)
        halted.release()
        if migration.chance.random() < 0.5:
            migration.pause(1)
            crash_children(halted.process.pid, crash)


def _cluster_gone(migration: _Migration) -> None:
    with migration.halted() as halted:
        _before_or_during(migration, halted)
        for node in migration.brokers.sandbox.nodes:
            node.kill()
        halted.release()
        migration.pause(3)
        for node in migration.brokers.sandbox.nodes:
            node.start()


def _rolling_restart(migration: _Migration) -> None:
    """Restart all brokers while the old application runs and the command waits for it to stop."""
    migration.found.step = 0
    migration.join()
    with migration.halted():
        migration.brokers.roll()
        migration.produce()
        migration.pause(1)


def _partition_without_leader(migration: _Migration) -> None:
    with migration.halted() as halted:
        _before_or_during(migration, halted)
        migration.leader.kill()
        halted.release()
        migration.pause(6)


_FAULTS = {
    "coordinator killed": _coordinator_killed,
    "coordinator hangs": _coordinator_hangs,
    "coordinator restarted": _coordinator_restarted,
    "tool killed": _tool_killed,
    "tool killed at a hung coordinator": _tool_killed_at_a_hung_coordinator,
    "second client crashes": _second_client_crashes,
    "cluster gone": _cluster_gone,
    "rolling restart": _rolling_restart,
    "partition without leader": _partition_without_leader,
}
