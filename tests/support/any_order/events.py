"""The events of a story (a random sequence of commands), which happen during or between the commands.

An event is an act of other clients, of brokers, or of the operator.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrate_groups.model.answers import Answer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from tests.support.any_order import exceptions
from tests.support.any_order.acting import GROUPS, Killed
from tests.support.any_order.world import World


@dataclass(frozen=True)
class At:
    """An event, and when it happens: at the nth time that a command reaches a label, such as ``after sleep``.

    A label is ``before`` or ``after`` with the name of a request, or with ``sleep``, ``receipt`` or ``file``. The label
    ``any`` is reached at each of them.
    """

    label: str
    nth: int
    event: Event


@dataclass(frozen=True)
class Event:
    """An event of a story. It has no effect if the state of the cluster does not allow it."""

    def do(self, world: World) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Produce(Event):
    partition: TopicPartition
    records: int

    def do(self, world: World) -> None:
        if self.partition in world.ledger.ends:
            world.produce(self.partition, self.records)


@dataclass(frozen=True)
class Pass(Event):
    """Some seconds pass, in which the applications process records and commit offsets."""

    seconds: float

    def do(self, world: World) -> None:
        world.wait(self.seconds)


@dataclass(frozen=True)
class Expire(Event):
    """A committed offset expires, if no application of the group consumes the partition."""

    group: str
    partition: TopicPartition
    how: str = "expired"

    def do(self, world: World) -> None:
        running = world.applications.get(self.group)
        if running and self.partition in running.positions:
            return
        if world.committed_offset(self.group, self.partition) is not None:
            world.cluster.delete(self.group, [self.partition])
            world.gone[self.group, self.partition] = (world.moments, self.how)
            exceptions.forgotten(world, self.group, self.partition)
        if not world.cluster.offsets(self.group) and not world.has_members(self.group):
            world.cluster.delete_group(self.group)


@dataclass(frozen=True)
class ExpireGroup(Event):
    """All offsets of an Empty group expire, and the group with them."""

    group: str

    def do(self, world: World) -> None:
        if self.group not in world.applications:
            for partition in world.partitions():
                Expire(self.group, partition).do(world)


@dataclass(frozen=True)
class Reset(Event):
    """Another tool alters a committed offset of an Empty group."""

    group: str
    partition: TopicPartition
    to: int

    def do(self, world: World) -> None:
        to = min(self.to, world.ledger.ends.get(self.partition, 0))
        was = world.committed_offset(self.group, self.partition)
        if was is None or to < world.ledger.starts[self.partition]:
            return
        answer = world.cluster.alter(self.group, {self.partition: CommittedOffset(offset=to)})
        if answer[self.partition].answer is Answer.WRITTEN:
            world.moved_by_choice(self.partition, was, to, f"others moved {self.group} from {was} to {to}")


@dataclass(frozen=True)
class Stop(Event):
    """A group's application commits and stops. If ``killed``, it does not commit, so records are processed again."""

    group: str
    killed: bool = False

    def do(self, world: World) -> None:
        if self.group in world.applications:
            world.stop(self.group, killed=self.killed)


@dataclass(frozen=True)
class Straggle(Event):
    """An application that the operator did not start (a straggler) begins to consume all topics."""

    group: str
    member: bool
    latest: bool = True

    def do(self, world: World) -> None:
        world.start(self.group, sorted(world.owner), member=self.member, latest=self.latest, straggles=True)


@dataclass(frozen=True)
class Restart(Event):
    """An application leaves its group and joins again, on the same topics."""

    group: str

    def do(self, world: World) -> None:
        if running := world.applications.get(self.group):
            world.stop(self.group)
            world.start(
                self.group,
                running.topics,
                member=running.member,
                latest=running.latest,
                straggles=running.straggles,
            )


@dataclass(frozen=True)
class Grow(Event):
    """A partition is added to a topic, and running applications consume it at once."""

    topic: str

    def do(self, world: World) -> None:
        there = world.partitions([self.topic])
        if len(there) > 2:
            return
        added = TopicPartition(self.topic, len(there))
        world.cluster.add_partitions(self.topic, len(there) + 1)
        world.ledger.starts[added] = world.ledger.ends[added] = 0
        for group in GROUPS:
            world.gone[group, added] = (world.moments, "added")
        for running in list(world.applications.values()):
            if self.topic in running.topics:
                world.take_up(running, added)


@dataclass(frozen=True)
class Copy(Event):
    """Somebody copies the files of a run. The copy is a run with the name ``copy/NAME``.

    receipt: whether the receipt is copied too, and not only the spec or the snapshot.
    """

    of: str
    receipt: bool = True

    def do(self, world: World) -> None:
        world.copy_run(self.of, self.receipt)


@dataclass(frozen=True)
class Kill(Event):
    """The running command is killed, as by ``kill -9``."""

    def do(self, world: World) -> None:
        if world.verb:
            world.verb.dead = True
            raise Killed


@dataclass(frozen=True)
class Refuse(Event):
    """Brokers refuse to alter this partition's offset in the next request that alters offsets.

    claim: whether this request writes a claim to a journal of the tool, and not an offset of another group.
    """

    partition: TopicPartition
    claim: bool = False

    def do(self, world: World) -> None:
        world.refused.add((self.partition, self.claim))


@dataclass(frozen=True)
class Evict(Event):
    """Brokers remove the member with which a command keeps other runs from a group: its heartbeats did not arrive."""

    group: str

    def do(self, world: World) -> None:
        world.evict(journal_group(self.group))


@dataclass(frozen=True)
class Interrupt(Event):
    """The operator presses Ctrl-C while a command runs."""

    def do(self, world: World) -> None:
        raise KeyboardInterrupt
