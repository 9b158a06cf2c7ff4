"""Move an application to a cluster to which MirrorMaker 2 copies its topic, with a fault, and count its records."""

from __future__ import annotations

import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import confluent_kafka

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.mirror_maker import MirrorMaker
from migrate_groups.sandbox.node import Node
from tests.support.broker_world import BrokerWorld, broker_world, until
from tests.support.cli import Cli
from tests.support.closed_consumers import close_consumer
from tests.support.counted_application import Application, Producing
from tests.support.halted import Halted, halted
from tests.support.mirror import records
from tests.support.specs import split_spec

_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """A topic to which records are always being produced, and its copy by MirrorMaker 2 on another cluster.

    source, target: the bootstrap servers of both clusters.
    """

    source: str
    target: str
    maker: MirrorMaker
    topic: str
    partitions: int
    producing: Producing

    @property
    def copy(self) -> str:
        """The name of the topic on the target."""
        return f"source.{self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The record counts after a move to another cluster, and other facts about the move.

    records: the number of records from the group's first committed offset to the log end. skipped: how many of them
    were processed by no application. again: how many of them were processed by more than one. fault: a description
    of the fault. halted: whether the command reached the step at which it had to halt. runs: how often the command was
    run. seconds: from the stop of the last consumer on the source cluster to the notice that the applications may
    start on the target cluster.
    """

    records: int
    skipped: int
    again: int
    fault: str
    halted: bool
    runs: int
    seconds: float


@contextmanager
def mirrored(source: str, target: str, maker: MirrorMaker, topic: str, partitions: int = 4) -> Iterator[Mirrored]:
    """Create a topic, wait for its copy, and produce to the topic during a ``with`` block."""
    with broker_world(source) as here, broker_world(target) as there:
        here.create_topic(partitions, topic=topic)
        producing = Producing(source, topic, partitions)
        made = Mirrored(
            source=source, target=target, maker=maker, topic=topic, partitions=partitions, producing=producing
        )
        try:
            until(lambda: made.copy in there.topics(), seconds=_SECONDS)
            yield made
        finally:
            producing.stop()


class Move:
    """A group that consumes on the source cluster, and its move to the target cluster. `result` completes the move.

    said: the output of the last command; a command that halts at a step leaves it unchanged.
    """

    def __init__(self, pair: Mirrored, here: BrokerWorld, cli: Cli, rng: random.Random, options: list[str]) -> None:
        self.pair, self.cli, self.rng, self._options = pair, cli, rng, options
        self.group = here.name("group")
        pair.producing.flush()
        self.first = _ends(pair)
        here.commit_all(self.group, {TopicPartition(pair.topic, at): offset for at, offset in self.first.items()})
        self.old = Application(pair.source, self.group, pair.topic)
        self.fault, self.halted, self.runs, self.seconds = "none", False, 0, 0.0
        self.said, self._stopped = "", 0.0
        (cli.folder / "move.toml").write_text(split_spec(self.group, {self.group: pair.topic}, guard="1s"))
        self.consume(lambda: len(self.old.ledger) > 200)

    @property
    def command(self) -> list[str]:
        """The arguments of the command that moves the group."""
        return ["migrate", "move.toml", "--yes", "--wait", "120s", "--timeout", "30s", *self._options]

    def consume(self, condition: Callable[[], object]) -> None:
        """Let the application on the source cluster process records until a condition is true."""

        def done() -> object:
            self.old.process()
            return condition()

        until(done, seconds=_SECONDS)

    def consume_for(self, seconds: float) -> None:
        """Let the application on the source cluster process records for some seconds."""
        end = time.monotonic() + seconds
        self.consume(lambda: time.monotonic() > end)

    def stop(self) -> None:
        """Stop the application on the source cluster."""
        self.old.stop()
        self._stopped = time.monotonic()

    def migrate(self, while_waiting: Callable[[], None] = lambda: None) -> int:
        """Run the command, stop the application once the command waits for it, and return the exit code."""
        self.runs += 1
        running, self.said = self.cli.start(*self.command), ""
        for line in running.stderr:
            self.said += line
            if "stop its applications now" in line and not self._stopped:
                while_waiting()
                self.stop()
            if "START THE NEW GROUPS NOW" in line:
                self.seconds = time.monotonic() - self._stopped
        running.communicate(timeout=_SECONDS)
        return _checked(running.returncode, self.said)

    def migrate_with_fault(self, step: int, fault: Callable[[Halted], None]) -> int:
        """Run the command after the group has stopped, cause the fault at this step, and return the exit code."""
        self.runs += 1
        with halted(step, self.command, self.cli.folder, self.cli.environment) as started:
            self.halted, _ = started.await_step()
            if self.halted:
                fault(started)
            started.release()
            return _checked(started.process.wait(_SECONDS), started.said())

    def result(self, code: int) -> Moved:
        """Run the command again until it succeeds, start the application on the target cluster, and count records.

        code: the exit code of the command so far.
        """
        self.complete(code)
        return self.counted(self.old, Application(self.pair.target, self.group, self.pair.copy))

    def complete(self, code: int) -> None:
        """Run the command again until it succeeds. code: the exit code of the command so far."""
        while code:
            assert self.runs < 4, "the same command again does not complete the move"
            code = self.migrate()

    def counted(self, *applications: Application) -> Moved:
        """Let the last of these applications process all records, stop it, and count the records of all of them."""
        produced = self.pair.producing.flush()
        wanted = [
            number
            for number in range(produced)
            if number // self.pair.partitions >= self.first[number % self.pair.partitions]
        ]
        last = wanted[-self.pair.partitions :]

        def done() -> bool:
            applications[-1].process()
            return all(any(each.ledger[number] for each in applications) for number in last)

        until(done, seconds=_SECONDS)
        applications[-1].stop()
        by = Counter(number for each in applications for number, times in each.ledger.items() if times)
        return Moved(
            records=len(wanted),
            skipped=sum(not by[number] for number in wanted),
            again=sum(times > 1 for times in by.values()),
            fault=self.fault,
            halted=self.halted,
            runs=self.runs,
            seconds=self.seconds,
        )


@contextmanager
def moving(pair: Mirrored, cli: Cli, rng: random.Random, *options: str) -> Iterator[Move]:
    """Yield a group that consumes on the source cluster, ready to move. options: the options of ``migrate``."""
    cli.environment["MIGRATE_GROUPS_BOOTSTRAP_SERVER"] = pair.source
    cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"] = pair.target
    with broker_world(pair.source) as here:
        yield Move(pair, here, cli, rng, [*options])


def mirror_killed(move: Move, kills: int | None = None) -> Moved:
    """Move the group. Before the application stops, kill MirrorMaker 2 at random moments, up to two times.

    kills: how often; None: chosen at random.
    """
    kills = move.rng.choice([0, 1, 1, 2]) if kills is None else kills
    for _ in range(kills):
        move.consume_for(move.rng.uniform(0.2, 4))
        move.pair.maker.kill()
        move.consume_for(move.rng.uniform(0.2, 2))
        move.pair.maker.start()
    move.consume_for(move.rng.uniform(0.2, 6))
    move.fault = f"mirror killed {kills} times"
    return move.result(move.migrate())


def there_and_back(move: Move) -> Moved:
    """Move the group, let it process records on the target, and hand it back. Kill MirrorMaker 2 on the target."""
    maker, rng = move.pair.maker, move.rng
    move.complete(move.migrate())
    there = Application(move.pair.target, move.group, move.pair.copy)
    for begins_again in (False, True):
        if begins_again:
            maker.kill()
            maker.start()
        most = sum(there.ledger.values()) + rng.randint(100, 300)

        def enough(most: int = most) -> bool:
            there.process()
            return sum(there.ledger.values()) > most

        until(enough, seconds=_SECONDS)
    there.stop()
    move.fault = "mirror killed while the group was on the target"
    move.cli("hand-back", "move.toml.run", "--yes", "--timeout", "30s")
    return move.counted(move.old, there, Application(move.pair.source, move.group, move.pair.topic))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedOver:
    """The record counts after the source cluster was lost, and after it has returned.

    most: how many records the plan said are read again at most. again: how many were, until the source returned.
    skipped: how many records that the mirror had delivered were processed by no application. later: how many records
    had been processed on the source, and were not in the copy yet. redelivered: how many records of the copy repeat one
    that the mirror had delivered before. returned: the counts after the return.
    """

    most: int
    again: int
    skipped: int
    later: int
    redelivered: int
    returned: Moved


def source_lost(move: Move, node: Node, step: int | None) -> FailedOver:
    """Lose the source cluster while the group runs there, fail over, and go back when the cluster returns.

    The translated offsets are kept some times, while MirrorMaker 2 is killed at random. step: kill ``migrate --from``
    at this step, and run it again; None: don't. MirrorMaker 2 is killed once more after the source's return.
    """
    pair, cli, rng, maker = move.pair, move.cli, move.rng, move.pair.maker
    keep = ("compare", move.group, "-o", "kept.json", "--force", "--max-records", "1000000")
    kept = False
    while not kept or rng.random() < 0.5:
        move.consume_for(rng.uniform(0.2, 3))
        if rng.random() < 0.4:
            maker.kill()
            maker.start()
        running = cli.start(*keep)
        running.communicate(timeout=_SECONDS)
        kept |= running.returncode == 0
    move.consume_for(rng.uniform(0, 3))
    node.kill()
    move.old.abandon()
    lost = {"MIGRATE_GROUPS_BOOTSTRAP_SERVER": pair.target}
    both = dict(cli.environment)
    cli.environment.update(lost)
    del cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"]
    command = ["migrate", "move.toml", "--from", "kept.json", "--yes", "--on-existing", "overwrite"]
    if step is not None:
        with halted(step, command, cli.folder, cli.environment) as started:
            move.halted, _ = started.await_step()
            started.process.kill()
            started.release()
            started.process.wait(_SECONDS)
    later = len(move.old.ledger.keys() - {*_copied(pair)})
    plans: list[str] = []

    def handed_over() -> bool:
        plans.append(_said(cli, command))
        return "START THE NEW GROUPS NOW" in plans[-1]

    until(handed_over, seconds=_SECONDS)  # a run that was killed keeps others out for 10 s
    said = re.search(r"at most ([\d,]+) are read again", plans[-1])
    assert said is not None, plans[-1]
    most = int(said[1].replace(",", ""))
    there = Application(pair.target, move.group, pair.copy)
    due = {each for each in _copied(pair) if each // pair.partitions >= move.first[each % pair.partitions]}
    with broker_world(pair.target) as world:
        found = world.ends(pair.copy, range(pair.partitions))
        ends = {TopicPartition(pair.copy, number): end for number, end in found.items()}

        # Not how many it reads: group sync may have raised its offsets to those that it had committed on the source.
        def read_to_the_ends() -> bool:
            there.process()
            return world.committed(move.group) == ends

        until(read_to_the_ends, seconds=_SECONDS)
    by = move.old.ledger + there.ledger
    again, skipped = sum(by[each] - 1 for each in by), sum(not by[each] for each in due)
    node.start()
    node.await_answer()
    maker.kill()
    maker.start()
    produced = pair.producing.flush()

    def caught_up() -> bool:
        there.process()
        return all(there.ledger[each] for each in range(produced - pair.partitions, produced))

    until(caught_up, seconds=_SECONDS)
    there.stop()
    cli.environment.update(both)
    # The application that ran on the source is a member of its group until the session timeout, 45 s.
    back = ["hand-back", "move.toml.run", "--yes", "--timeout", "30s"]
    until(lambda: "START THE OLD APPLICATIONS NOW" in _said(cli, back), seconds=_SECONDS)
    move.fault = "source lost"
    returned = move.counted(move.old, there, Application(pair.source, move.group, pair.topic))
    copies = _copied(pair)
    return FailedOver(
        most=most,
        again=again,
        skipped=skipped,
        later=later,
        redelivered=len(copies) - len({*copies}),
        returned=returned,
    )


def _copied(pair: Mirrored) -> list[int]:
    """Return the numbers of the records in the copy."""
    return [int(each.value() or b"") for at in range(pair.partitions) for each in records(pair.target, pair.copy, at)]


def _said(cli: Cli, command: list[str]) -> str:
    running = cli.start(*command)
    out, err = running.communicate(timeout=_SECONDS)
    _checked(running.returncode, f"{out}{err}")
    return f"{out}{err}"


def tool_killed(move: Move, step: int) -> Moved:
    """Move the group. Kill ``migrate`` at this step (`tests.support.halted_at`), and run it again."""
    move.fault = f"tool killed at step {step}"
    move.stop()
    return move.result(move.migrate_with_fault(step, lambda started: started.process.kill()))


def broker_fails(move: Move, node: Node, step: int | None) -> Moved:
    """Move the group. Kill or stop a broker, and start it again.

    step: the step of the command at which this happens; None: while the application still runs.
    """
    fail, how = move.rng.choice([(node.kill, "killed"), (node.stop, "stopped")])
    which = "source" if node.bootstrap_servers == move.pair.source else "target"
    move.fault = f"{which} broker {how} {'while the application runs' if step is None else f'at step {step}'}"

    def before_the_stop() -> None:
        fail()
        move.consume_for(move.rng.uniform(0, 3))
        node.start()
        node.await_answer()
        move.consume_for(move.rng.uniform(0, 3))

    def at_the_step(started: Halted) -> None:
        fail()
        started.release()
        time.sleep(move.rng.uniform(0, 3))
        node.start()
        node.await_answer()

    if step is None:
        return move.result(move.migrate(before_the_stop))
    move.stop()
    return move.result(move.migrate_with_fault(step, at_the_step))


def _ends(pair: Mirrored) -> dict[int, int]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": pair.source, "group.id": "ends"})
    try:
        return {
            number: consumer.get_watermark_offsets(confluent_kafka.TopicPartition(pair.topic, number), 30)[1]
            for number in range(pair.partitions)
        }
    finally:
        close_consumer(consumer)


def _checked(code: int, said: str) -> int:
    """Check that a fault can cause this exit code of a command, and return it. said: the command's output."""
    assert code in (0, 3, 4, 5, -signal.SIGKILL), said
    assert "Traceback" not in said, said
    return code
