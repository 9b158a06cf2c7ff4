"""An in-memory cluster, its applications, a clock, and other clients that act between any two requests of the tool."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from tests.support.any_order import exceptions
from tests.support.any_order.ledger import Ledger, Processing
from tests.support.in_memory import InMemoryCluster
from tests.support.rows import NOON
from tests.support.turns import Turns

if TYPE_CHECKING:
    from tests.support.any_order.events import At  # events imports this module

GROUPS = ("old", "a", "b", "c")
REQUEST_SECONDS = 0.1  # before and after a request, so that a verb takes seconds, as on a busy cluster
MEMBER_SECONDS, MEMBERLESS_SECONDS = 1.0, 5.0  # between two commits
RECORDS_A_SECOND = 2.0
_AN_INSTANT = 1e-9  # in seconds: less than this is an error of arithmetic
SESSION_SECONDS = 10.0  # the session timeout of the members with which the tool holds groups
Offsets = dict[tuple[str, TopicPartition], int]
Refused = tuple[TopicPartition, bool]  # the second value: in a journal of the tool, and not in another group
_REFUSED = WriteAnswer(answer=Answer.REFUSED, error="INVALID_COMMIT_OFFSET_SIZE")
WRITES = ("alter_offsets", "delete_offsets", "delete_groups")


class Killed(BaseException):
    """Raised where the tool's process is killed. Afterwards the process may send no request and write no file."""


@dataclass(slots=True, kw_only=True)
class Application:
    """A consumer of a group, which processes records from the group's committed offset on.

    - member: whether it joins the group and commits each second. Otherwise it assigns itself partitions, keeps its own
      positions and commits all of them every 5 s.
    - latest: whether it starts at the log end offset if its group has no committed offset.
    - straggles: whether it is a straggler, which the operator did not start.
    """

    group: str
    topics: tuple[str, ...]
    member: bool
    latest: bool
    joined: float
    straggles: bool = False
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    pending: list[Processing] = field(default_factory=list)
    committed_at: float = 0.0
    owed: float = 0.0

    @property
    def member_id(self) -> str:
        """Return the application's member id."""
        return f"{self.group}-app"


@dataclass(slots=True, kw_only=True)
class Verb:
    """A running command, and what the tool has read and written so far.

    - name: that of the command, such as ``migrate``. of: the name of its run, or of its group.
    - client: its client of the cluster.
    - planned: the events that happen while it runs.
    - dead: whether its process was killed.
    - last_read: by group and partition, the value of `World.moments` when the tool last read the offset.
    - believed: by group and partition, the offset that the tool last read or wrote.
    - of_topic: for each topic, the groups of the command that may own the topic.
    - covered: the partitions that had a committed offset in one of these groups when the tool read them.
    - confirmed: by group and partition, the value of `World.moments` when the second client read the offset.
    - sent: whether the tool has sent a request that writes, also one that writes a claim to a journal.
    - wrote_at: when the tool last wrote, in seconds of the story's clock.
    """

    name: str
    of: str
    client: Any
    began: float
    first: int
    planned: list[At]
    groups: tuple[str, ...]
    partitions: frozenset[TopicPartition]
    of_topic: dict[str, tuple[str, ...]]
    moments: Counter[str] = field(default_factory=Counter)
    last_read: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    believed: dict[tuple[str, TopicPartition], int | None] = field(default_factory=dict)
    missed: set[tuple[str, TopicPartition]] = field(default_factory=set)
    covered: set[TopicPartition] = field(default_factory=set)
    wrote: set[tuple[str, TopicPartition]] = field(default_factory=set)
    confirmed: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    by_choice: str = ""
    wrote_at: float = 0.0
    sent: bool = False
    dead: bool = False


class World:
    """The surroundings of the tool in a story: a cluster, other clients, a clock and files.

    The tool sends requests to `request`, asks the second client `second`, and uses the clock `now`, `monotonic` and
    `sleep`. It replaces each of its files within a ``with`` block of `file`.
    """

    def __init__(self, cluster: Any = None) -> None:
        self.cluster = cluster or InMemoryCluster()
        self.request = _Requests(self)
        self.second: Any = _Requests(self, second=True)
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
        # What brokers refuse in the next write of offsets.
        self.refused: set[Refused] = set()
        # The committed offsets that other clients deleted, by group and partition: the moment and the cause.
        self.gone: dict[tuple[str, TopicPartition], tuple[int, str]] = {}
        # Partitions that a plan named as left out, by group. The source group has an entry too, because no way back
        # restores its offset.
        self.left_out: set[tuple[str, TopicPartition]] = set()
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
            return  # UNKNOWN_MEMBER_ID: the consumer continues
        if application.straggles and not application.member:
            exceptions.overtaken(self, application)
        self.commit(application.group, application.positions)
        for partition in application.positions:
            self.gone.pop((application.group, partition), None)
        for done in application.pending:
            done.seen = self.seconds if done.seen is None else done.seen
        application.pending.clear()

    # The requests of the tool.

    def altered(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> Mapping[TopicPartition, Any]:
        """Alter committed offsets, except those in `refused`, and return the answer for each partition."""
        refused = {each for each in self.refused if each[0] in offsets and each[1] == (group not in GROUPS)}
        self.refused -= refused
        answers = dict.fromkeys([partition for partition, _ in refused], _REFUSED)
        rest = {partition: offset for partition, offset in offsets.items() if partition not in answers}
        return {**answers, **(self.client.alter(group, rest) if rest else {})}

    def record_read(self, group: str, found, *, second: bool) -> None:
        if self.verb is None or group not in GROUPS:
            return
        for partition in self.verb.partitions:
            if partition in found:
                committed = found[partition]
                self.verb.last_read[group, partition] = self.moments
                self.verb.believed[group, partition] = committed and committed.offset
                if committed:
                    if group in self.verb.of_topic[partition.topic]:
                        self.verb.covered.add(partition)
                    if second:
                        self.verb.confirmed[group, partition] = self.moments
                else:
                    self.verb.missed.add((group, partition))

    def wrote(self, before: Offsets, after: Offsets) -> None:
        assert self.verb is not None
        for place in sorted(before.keys() | after.keys()):
            was, now = before.get(place), after.get(place)
            if was == now:
                continue
            self.verb.wrote.add(place)
            self.verb.wrote_at = self.seconds
            self.verb.believed[place] = now
            self.gone.pop(place, None)
            self.tell(f"    wrote: {place[0]} {place[1]}: {was} -> {now}")
            if self.verb.by_choice and was is not None and now is not None:
                self.moved_by_choice(place[1], was, now, self.verb.by_choice)

    def moved_by_choice(self, partition: TopicPartition, was: int, now: int, why: str) -> None:
        """Allow that records are skipped or repeated because an offset was altered on purpose.

        was, now: the offset before and after. why: the reason.
        """
        self.ledger.may_skip(partition, range(was, now), why)
        self.ledger.may_repeat(partition, range(now, was), why)


class _Requests:
    """A `GroupWriter` for the cluster of a `World`. Other clients act before and after each request."""

    def __init__(self, world: World, *, second: bool = False) -> None:
        self._world, self._second = world, second
        self.principal = world.cluster.principal

    def __getattr__(self, name: str):
        method = getattr(self._world.client, name)
        return lambda *arguments, **named: self._request(name, lambda: method(*arguments, **named))

    def _request(self, name: str, ask):
        world = self._world
        world.moment(f"before {name}")
        if name in WRITES and world.verb:
            world.verb.sent = True
        before = world.offsets() if name in WRITES else {}
        answer = ask()
        if name in WRITES:
            world.wrote(before, world.offsets())
        world.moment(f"after {name}")
        return answer

    # Groups one by one, so that other clients act between any two of them.

    def committed(self, wanted, *, wait: bool = True):
        def ask(group: str):
            answer = self._world.client.committed({group: wanted[group]}, wait=wait)[group]
            missing = self._world.partitions() if wanted[group] is None else ()
            if not isinstance(answer, MigrateGroupsError):
                self._world.record_read(group, {**dict.fromkeys(missing), **answer}, second=self._second)
            return answer

        # Stories name the two kinds of readings differently.
        name = "committed" if wait else "all_committed"
        return {group: self._request(name, lambda group=group: ask(group)) for group in wanted}

    def alter_offsets(self, offsets):
        def ask(group: str):
            return self._world.altered(group, offsets[group])

        return {group: self._request("alter_offsets", lambda group=group: ask(group)) for group in offsets}

    def describe_groups(self, groups):
        def ask(group: str):
            return self._world.client.describe_groups([group])[group]

        return {group: self._request("describe_groups", lambda group=group: ask(group)) for group in groups}

    @contextmanager
    def held(self, group: str, partitions, assignor: str = ""):
        world = self._world
        world.moment("before held")
        with ExitStack() as member:
            hold = member.enter_context(world.client.held(group, partitions, assignor))
            world.held.add(group)
            member.callback(world.held.discard, group)
            try:
                world.moment("after held")
                yield hold
            except Killed:
                world.left_behind.append((world.seconds + SESSION_SECONDS, member.pop_all()))
                raise
        world.moment("after release")
