"""What a use case tells while it runs, and what it asks: the command line implements it, and a program may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from migrate_groups.migration.reading.take import ObservedGroup
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.snapshot import Row


class Events(Protocol):
    """Called in the thread of the use case, which goes on when the call returns. What they raise ends it."""

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Take note of the plan that is about to be agreed to; ``rows`` returns what it was made from."""
        ...

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Return whether the plan shall be written; a ``provisional`` one is made again once the groups have stopped.

        A plan that writes nothing and is not provisional is not asked about.
        """
        ...

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Take note of a look at groups that must stop: why each still runs (empty: it has stopped), after how long."""
        ...

    def writing(self, told_by: str) -> None:
        """Take note that a request that writes is about to be sent; ``told_by`` says what tells how far it came."""
        ...

    def read_back(self, verb: Verb) -> None:
        """Take note that all of a write was read back: after a hand-over the target groups may start."""
        ...

    def said(self, line: str) -> None:
        """Take note of a line for a person."""
        ...


class Silent:
    """Agrees to every plan, and tells nothing."""

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """See `Events.planned`."""

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """See `Events.agrees`."""
        return True

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """See `Events.still_running`."""

    def writing(self, told_by: str) -> None:
        """See `Events.writing`."""

    def read_back(self, verb: Verb) -> None:
        """See `Events.read_back`."""

    def said(self, line: str) -> None:
        """See `Events.said`."""
