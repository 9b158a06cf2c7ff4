"""An in-memory cluster, its applications, a clock, and other clients that act between any two requests of the tool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Any

from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order import exceptions
from tests.support.any_order.acting import GROUPS, Application, Killed, Offsets, Verb
from tests.support.any_order.ledger import Ledger, Processing
from tests.support.any_order.requests import Requests
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import NOON
from tests.support.turns import Turns

REQUEST_SECONDS = 0.1  # before and after a request, so that a verb takes seconds, as on a busy cluster
MEMBER_SECONDS, MEMBERLESS_SECONDS = 1.0, 5.0  # between two commits
RECORDS_A_SECOND = 2.0
_AN_INSTANT = 1e-9  # in seconds: less than this is an error of arithmetic


class World:
    """The surroundings of the tool in a story: a cluster, other clients, a clock and files.

    The tool sends requests to `request`, asks the second client `second`, and uses the clock `now`, `monotonic` and
    `sleep`. It replaces each of its files within a ``with`` block of `file`.
    """

    def __init__(self, cluster: Any = None) -> None:
        self.cluster = cluster or InMemoryCluster()
        self.request = Requests(self)
        self.second: Any = Requests(self, second=True)
        self.ledger = Ledger()
        self.applications: dict[str, Application] = {}
        self.owner: dict[str, str | None] = {}
        self.held: set[str] = set()
        # The members of killed commands, and when brokers remove them.
        self.left_behind: list[tuple[float, ExitStack]] = []
        self.seconds = 0.0
        self.moments = 0
        # The running commands, by thread. Two commands at once take turns.
        self.verbs: dict[int, Verb] = {}
        self.turns: Turns | None = None
        # Copies a run's files; see `Copy`.
        self.copy_run: Callable[[str, bool], None] = lambda _, __: None
        self.told: list[str] = []
        self.problems: list[str] = []
        # What brokers refuse in the next write of offsets; True: in a journal of the tool, and not in another group.
        self.refused: set[tuple[TopicPartition, bool]] = set()
        # The committed offsets that other clients deleted, by group and partition: the moment and the cause.
        self.gone: dict[tuple[str, TopicPartition], tuple[int, str]] = {}
        # Partitions that a plan named as left out, by group. The source group has an entry too, because no way back
        # restores its offset.
        self.left_out: set[tuple[str, TopicPartition]] = set()
        # The offsets that a rollback which was not completed has deleted, by group and partition.
        self.undoing: set[tuple[str, TopicPartition]] = set()
        # When each run last wrote in a hand-over, in seconds.
        self.handed_over: dict[str, float] = {}
        # By topic, the target group to which a hand-over that was not completed has written.
        self.half_done: dict[str, str] = {}
        # The results that the operator knows for each partition; see `exceptions`.
        self.verdicts: list[exceptions.Verdict] = []

    @property
    def verb(self) -> Verb | None:
        """The command that runs in this thread."""
        return self.verbs.get(threading.get_ident())

    @property
    def client(self) -> Any:
        """The cluster, as the client of this thread's command reaches it."""
        return self.verb.client if self.verb else self.cluster

    @contextmanager
    def running(self, verb: Verb) -> Iterator[None]:
        """Let events happen, and record what the tool reads and writes, while this thread runs a command."""
        self.verbs[threading.get_ident()] = verb
        try:
            yield
        finally:
            del self.verbs[threading.get_ident()]

    # The tool's clock and files.

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let other clients and the other of two commands act before, during and after the sleep."""
        self.moment("before sleep")
        until = self.seconds + seconds
        while (left := until - self.seconds) > _AN_INSTANT:
            self.advance(min(1.0, left))
            self.take_turns()
        self.moment("after sleep")

    @contextmanager
    def file(self, name: str) -> Iterator[None]:
        what = "receipt" if "receipt" in name or "rollback" in name or "hand-back" in name else "file"
        self.moment(f"before {what}")
        yield
        self.moment(f"after {what}")

    def moment(self, label: str) -> None:
        """Let the events happen that `At` plans for this label. Then let the time of one request pass."""
        self.moments += 1
        if (verb := self.verb) is None:
            return
        if verb.dead:
            raise Killed
        self.take_turns()
        verb.moments[label] += 1
        verb.moments["any"] += 1
        due = {(label, verb.moments[label]), ("any", verb.moments["any"])}
        for planned in [each for each in verb.planned if (each.label, each.nth) in due]:
            verb.planned.remove(planned)
            self.tell(f"    {label} ({verb.moments[label]}): {planned.event}")
            planned.event.do(self)
        self.advance(REQUEST_SECONDS)

    def take_turns(self) -> None:
        """Let the other of two commands go on, if it is its turn."""
        if self.turns:
            self.turns.take()

    def tell(self, line: str) -> None:
        of = f"[{self.verb.of}] " if self.turns and self.verb else ""
        self.told.append(f"{self.seconds:7.1f} s  {of}{line}")

    def problem(self, what: str) -> None:
        self.tell(f"PROBLEM: {what}")
        self.problems.append(what)

    # The state of the cluster.

    def partitions(self, topics=None) -> list[TopicPartition]:
        return sorted(each for each in self.ledger.ends if topics is None or each.topic in topics)

    def committed_offset(self, group: str, partition: TopicPartition) -> int | None:
        found = self.cluster.offsets(group).get(partition)
        return None if found is None else found.offset

    def offsets(self) -> Offsets:
        return {
            (group, partition): committed.offset
            for group in GROUPS
            for partition, committed in self.cluster.offsets(group).items()
            if committed is not None
        }

    def has_members(self, group: str) -> bool:
        return bool(self.cluster.description(group).members)

    def evict(self, group: str) -> None:
        """Let brokers remove all members of a group."""
        for member in self.cluster.description(group).members:
            self.cluster.leave(group, member.member_id)

    def produce(self, partition: TopicPartition, records: int) -> None:
        self.cluster.produce(partition.topic, partition.partition, records)
        self.ledger.ends[partition] += records

    # Applications.

    def start(self, group: str, topics, *, member: bool, latest: bool, straggles: bool = False) -> bool:
        """Start a group's application. Return False if it is running already, or can't join."""
        if group in self.applications or (member and group in self.held) or not topics:
            return False
        started = Application(
            group=group, topics=tuple(topics), member=member, latest=latest, joined=self.seconds,
            committed_at=self.seconds, straggles=straggles,
        )  # fmt: skip
        if member:
            assigned = frozenset(self.partitions(topics))
            self.cluster.join(
                group,
                Member(
                    member_id=started.member_id,
                    client_id="app",
                    host="/here",
                    assignment=assigned,
                    subscription=frozenset(topics),
                ),
            )
        self.applications[group] = started
        for partition in self.partitions(topics):
            self.take_up(started, partition)
        return True

    def take_up(self, application: Application, partition: TopicPartition) -> None:
        group, committed = application.group, self.committed_offset(application.group, partition)
        end = self.ledger.ends[partition]
        begins = committed if committed is not None else end if application.latest else self.ledger.starts[partition]
        application.positions[partition] = begins
        skipped = self.ledger.unprocessed(partition, begins)
        if committed is None and (why := exceptions.missing(self, group, partition)):
            self.ledger.may_skip(partition, skipped, why)
            self.ledger.may_repeat(partition, range(begins, end), why)
        lost = [offset for offset in skipped if offset not in self.ledger.skippable[partition]]
        if lost and self.owner[partition.topic] == group and not exceptions.taken_away(self, application, partition):
            at = "has no committed offset" if committed is None else f"is at {committed}"
            self.problem(
                f"records skipped: {partition} {lost[0]} to {lost[-1]}, since group {group}, which was said to have "
                f"the topic, {at}"
            )

    def stop(self, group: str, *, killed: bool = False) -> None:
        application = self.applications.pop(group)
        if killed:
            for partition, position in application.positions.items():
                done = range(self.committed_offset(group, partition) or 0, position)
                self.ledger.may_repeat(partition, done, "its application was killed before it committed")
        else:
            self._commit(application)
        if application.member:
            self.cluster.leave(group, application.member_id)

    def wait(self, seconds: float) -> None:
        """Let time pass, second by second."""
        for _ in range(int(seconds)):
            self.advance(1.0)

    def left(self) -> Iterator[tuple[TopicPartition, int]]:
        """Yield each partition with unprocessed records that a group owns, and its first unprocessed offset."""
        for partition in self.partitions():
            left = self.ledger.unprocessed(partition, self.ledger.ends[partition])
            left = [offset for offset in left if offset not in self.ledger.skippable[partition]]
            if left and self.owner[partition.topic]:
                yield partition, left[0]

    def advance(self, seconds: float) -> None:
        """Let time pass, in which applications process records and commit offsets."""
        self.seconds += seconds
        for ends, member in [each for each in self.left_behind if each[0] <= self.seconds]:
            self.left_behind.remove((ends, member))
            member.close()
        for application in list(self.applications.values()):
            application.owed += seconds * RECORDS_A_SECOND
            whole = int(application.owed)
            application.owed -= whole
            if whole:
                for partition in application.positions:
                    self._process(application, partition, whole)
            every = MEMBER_SECONDS if application.member else MEMBERLESS_SECONDS
            if self.seconds - application.committed_at >= every - 1e-6:
                self._commit(application)

    def commit(self, group: str, positions: dict[TopicPartition, int]) -> None:
        """Commit the positions of an application."""
        for partition, position in positions.items():
            self.cluster.commit(group, partition, position)

    def _process(self, application: Application, partition: TopicPartition, records: int) -> None:
        position = application.positions[partition]
        last = min(position + records, self.ledger.ends[partition])
        for offset in range(position, last):
            done = Processing(
                group=application.group,
                at=self.seconds,
                entitled=self.owner[partition.topic] == application.group,
                seen=application.joined if application.member else None,
            )
            self.ledger.processed[partition][offset].append(done)
            application.pending.append(done)
        application.positions[partition] = max(position, last)

    def _commit(self, application: Application) -> None:
        application.committed_at = self.seconds
        if not application.member and (self.has_members(application.group) or application.group in self.held):
            for done in application.pending:
                done.held_out |= application.group in self.held
            return  # UNKNOWN_MEMBER_ID: the consumer continues
        if application.straggles and not application.member:
            exceptions.overtaken(self, application)
        self.commit(application.group, application.positions)
        for partition in application.positions:
            self.gone.pop((application.group, partition), None)
        for done in application.pending:
            done.seen = self.seconds if done.seen is None else done.seen
        application.pending.clear()

    def moved_by_choice(self, partition: TopicPartition, was: int, now: int, why: str) -> None:
        """Allow that records are skipped or repeated because an offset was altered on purpose.

        was, now: the offset before and after. why: the reason.
        """
        self.ledger.may_skip(partition, range(was, now), why)
        self.ledger.may_repeat(partition, range(now, was), why)
