"""A fleet: hand-overs of many groups side by side. Each waits for its stop, is written and watched by its own clock."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Generic, Self, TypeVar

from migrate_groups.clock import Clock
from migrate_groups.errors import MigrateGroupsError, Refused, was_interrupted
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.groups import GroupDescription
from migrate_groups.planning.checks.source import running
from migrate_groups.planning.options import FleetLimits
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, some

T = TypeVar("T")

MOST_AT_WORK = 300
"""A group at work has a thread, which holds its receipt open, and most processes may open 1,024 files."""
_POLL_SECONDS = 1.0


class Phase(StrEnum):
    """How far the hand-over of one group of a fleet is."""

    WAITING = "wait for their stop"
    STOPPED = "stopped"
    STARTED = "may start and are watched"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Part(Generic[T]):
    """The hand-over of one group of a fleet, and what came of it.

    - phase: the `Events` of the hand-over set it to ``STARTED``; otherwise the fleet sets it.
    - context: the context variables of the thread that works on it.
    - result: what the work returned; None if it has not ended well.
    - error: why it failed; None if it has not.
    - topics: the topics of the group's members, as far as they were seen before the work began.
    - ran_until: the last reading in which the group still ran; None if it was not seen running.
    """

    group: str
    phase: Phase = Phase.WAITING
    context: Context = field(default_factory=copy_context)
    result: T | None = None
    error: MigrateGroupsError | None = None
    topics: set[str] = field(default_factory=set)
    ran_until: datetime | None = None


Work = Callable[[Part[T], Clock], T]
"""Does the work on one part. Its clock is interrupted at its next pause if the command is interrupted."""


Ended = Callable[[Part[T]], object]
"""Called once for each part that has ended, in its context, perhaps from the thread that worked on it."""


def work_on_each(
    parts: Sequence[Part[T]], work: Work[T], clock: Clock, most: int = 16, ended: Ended[T] = lambda part: None
) -> Sequence[Part[T]]:
    """Do work on each part, at most so many at a time, and return the parts once each has ended.

    An error is an outcome. An interrupt stops all work, and is raised.
    """
    left, at_work = iter(parts), 0
    with _Threads(work, clock, ended) as threads:
        while True:
            while at_work < most and (part := next(left, None)) is not None:
                threads.begin(part)
                at_work += 1
            if not at_work:
                return parts
            threads.next_ended()
            at_work -= 1


@dataclass(slots=True, kw_only=True)
class Fleet(Generic[T]):
    """The hand-overs of many groups, side by side.

    - work: hands over one group.
    - reader: describes the source groups.
    - wait: seconds until which groups that people stop must have stopped.
    - stops: whether ``work`` stops the group's applications. Otherwise it begins when the group has stopped.
    - progress: called about once a second.
    """

    parts: Sequence[Part[T]]
    work: Work[T]
    reader: GroupReader
    limits: FleetLimits
    clock: Clock
    wait: float
    stops: bool
    progress: Callable[[], object] = lambda: None
    ended: Ended[T] = lambda part: None

    def run(self) -> None:
        """Work on all parts until each has ended.

        An error is an outcome, and does not stop the others. An interrupt stops all at their next pause, and is raised.
        """
        deadline = self.clock.monotonic() + self.wait
        at_work = failures = 0
        waiting = list(self.parts)
        with _Threads(self.work, self.clock, self.ended) as threads:
            while waiting or at_work:
                due, reasons = self._due(waiting, at_work)
                if failures >= self.limits.max_failures:
                    self._give_up(waiting, f"not begun, because {counted(failures, 'group')} failed")
                    waiting = due = []
                for part in due:
                    waiting.remove(part)
                    part.phase = Phase.STOPPED
                    threads.begin(part)
                at_work += len(due)
                if not self.stops and self.clock.monotonic() >= deadline:
                    waiting = self._without_late(waiting, reasons)
                self.progress()
                if not at_work:
                    self.clock.sleep(_POLL_SECONDS if waiting else 0)
                for part in threads.ended(_POLL_SECONDS) if at_work else ():
                    at_work -= 1
                    failures += part.error is not None

    def _due(self, waiting: Sequence[Part[T]], at_work: int) -> tuple[list[Part[T]], dict[str, str]]:
        """Return the parts on which the work begins now, and why other groups have not stopped."""
        if self.stops:
            stopped = sum(part.phase is Phase.STOPPED for part in self.parts)
            return list(waiting[: max(0, min(self.limits.max_stopped - stopped, MOST_AT_WORK - at_work))]), {}
        read_at = self.clock.now()  # not after it: a group may stop while a coordinator does not answer
        found = self._described([part.group for part in waiting])
        due, reasons = [], {}
        for part in waiting:
            description = found[part.group]
            if isinstance(description, GroupDescription):
                part.topics.update(*(member.topics for member in description.members))
            if why := _why_not_stopped(description):
                part.ran_until, reasons[part.group] = read_at, f"group {part.group!r} {why}"
            else:
                due.append(part)
        return due[: MOST_AT_WORK - at_work], reasons

    def _described(self, groups: Sequence[str]) -> Mapping[str, GroupDescription | MigrateGroupsError]:
        try:
            return self.reader.describe_groups(groups) if groups else {}
        except MigrateGroupsError as error:  # not raised, because it would stop the groups at work
            if was_interrupted(error):
                raise
            return dict.fromkeys(groups, error)

    def _without_late(self, waiting: Sequence[Part[T]], reasons: Mapping[str, str]) -> list[Part[T]]:
        """Give up the parts whose groups have not stopped, and return the others. reasons: why, by group."""
        waited = span_in_words(timedelta(seconds=self.wait))
        for part in waiting:
            if reason := reasons.get(part.group):
                why = f"not stopped after {waited}: {reason}"
                self._give_up([part], f"{why}; stop these consumers, or wait longer with --wait")
        return [part for part in waiting if part.group not in reasons]

    def _give_up(self, parts: Iterable[Part[T]], reason: str) -> None:
        for part in parts:
            part.error, part.phase = Refused(f"{reason}; nothing was written"), Phase.ENDED
            part.context.run(self.ended, part)


def _why_not_stopped(found: GroupDescription | MigrateGroupsError) -> str:
    """Return why a group is not known to have stopped; empty if it has, or does not exist."""
    if isinstance(found, MigrateGroupsError):
        return f"can't be described: {found}"
    return some(running(found, None))


class _Threads(Generic[T]):
    """Works on parts, each in a thread of its own. After an error in the ``with`` block, all are interrupted."""

    def __init__(self, work: Work[T], clock: Clock, when_ended: Ended[T]) -> None:
        self._work, self._clock, self._when_ended = work, _Interruptible(clock), when_ended
        self._ended: queue.SimpleQueue[tuple[Part[T], BaseException | None]] = queue.SimpleQueue()
        self._running: set[threading.Thread] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if error is not None:
            self._clock.interrupt()
            for thread in self._running:
                thread.join()

    def begin(self, part: Part[T]) -> None:
        """Begin the work on a part."""
        # A daemon, so that the third Ctrl-C ends the process although a broker does not answer.
        thread = threading.Thread(target=self._run, args=[part], name=f"group {part.group}", daemon=True)
        self._running = {each for each in self._running if each.is_alive()} | {thread}
        thread.start()

    def next_ended(self) -> Part[T]:
        """Wait for a part to end, and return it. Raises an interrupt of its work."""
        return self._checked(*self._ended.get())

    def ended(self, seconds: float) -> Iterable[Part[T]]:
        """Yield the parts that have ended; if there is none, wait for one up to so many seconds."""
        while True:
            try:
                yield self._checked(*self._ended.get(timeout=seconds))
            except queue.Empty:
                return
            seconds = 0.0

    def _run(self, part: Part[T]) -> None:
        self._ended.put((part, part.context.run(self._do, part)))

    def _do(self, part: Part[T]) -> BaseException | None:
        """Do the work on a part; return an error that ends the command."""
        try:
            self._try(part)
            part.phase = Phase.ENDED
            self._when_ended(part)
        except BaseException as error:  # noqa: BLE001  raised in the thread that waits
            return KeyboardInterrupt() if isinstance(error, MigrateGroupsError) and was_interrupted(error) else error
        return None

    def _try(self, part: Part[T]) -> None:
        """Do the work on a part, of which an error is an outcome. Raises an interrupt."""
        try:
            part.result = self._work(part, self._clock)
        except MigrateGroupsError as error:
            if was_interrupted(error):
                raise
            part.error = error
        except Exception as error:
            if was_interrupted(error):
                raise
            # The other groups go on, because some of them may be stopped. Python prints the traceback.
            threading.excepthook(
                threading.ExceptHookArgs([type(error), error, error.__traceback__, threading.current_thread()])
            )
            what = f"an unexpected failure: {type(error).__name__}: {error}"
            part.error = MigrateGroupsError(f"group {part.group!r}: {what}; please report it")

    @staticmethod
    def _checked(part: Part[T], error: BaseException | None) -> Part[T]:
        if error is not None:
            raise error
        return part


class _Interruptible:
    """A clock on which other threads sleep, until it is interrupted: then each sleep raises ``KeyboardInterrupt``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interrupted = threading.Event()

    def interrupt(self) -> None:
        """Interrupt the threads at their next pause, or within a second if they sleep."""
        self._interrupted.set()

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        while not self._interrupted.is_set():
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            self._clock.sleep(min(left, _POLL_SECONDS))
        raise KeyboardInterrupt
