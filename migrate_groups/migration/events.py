"""The callbacks through which a running use case reports and asks; the command line implements them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from migrate_groups.migration.reading.take import ObservedGroup
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.snapshot import Row


class Events(Protocol):
    """The callbacks of a use case. An error that a callback raises ends the use case.

    They are called in the thread of the use case, which continues when the call returns.
    """

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Receive the plan before the question whether to write it; ``rows`` returns the rows that it was made from."""
        ...

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Return whether to write the plan; a ``provisional`` plan is made again once the groups have stopped.

        Not called for a plan that writes nothing and is not provisional.
        """
        ...

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Receive an observation of the groups that must stop, after ``seconds`` of waiting.

        ``reasons``: why each group still runs; empty if it has stopped.
        """
        ...

    def writing(self, told_by: str) -> None:
        """Receive notice that a write is in progress; ``told_by`` says where to see what was written."""
        ...

    def read_back(self, verb: Verb) -> None:
        """Receive notice that the whole write was read back: after a hand-over, the target groups may start."""
        ...

    def said(self, line: str) -> None:
        """Receive a line of text to show to the user."""
        ...


class Silent:
    """Agrees to every plan, and ignores every report."""

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
