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
        """Receive the plan, in order to show it, before `agrees` is called.

        ``rows`` returns the snapshot rows that the plan was made from; a rollback, hand-back or delete-offsets has
        none.
        """
        ...

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Return whether to write the plan.

        A ``provisional`` plan is made again, with the final offsets, once the consumers have stopped. Not called for a
        plan that writes nothing and is not provisional.
        """
        ...

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Receive an observation of the groups that must stop, after ``seconds`` of waiting.

        ``reasons``: why each group still runs; empty if it has stopped. ``looks``: what was observed of each group.
        """
        ...

    def writing(self, told_by: str) -> None:
        """Receive notice that a write is in progress.

        ``told_by``: a sentence that says where to see what was written, should the write be interrupted.
        """
        ...

    def read_back(self, verb: Verb) -> None:
        """Receive notice that every partition was read back as planned, and that no group that must stop consumes.

        After a hand-over, the applications of the target groups may start now.
        """
        ...

    def said(self, line: str) -> None:
        """Receive a line of text to show to the user."""
        ...


class Silent:
    """Callbacks for a caller without a user: agree to every plan, and ignore everything else."""

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Ignore the plan."""

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Agree: every plan is written without a question."""
        return True

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Ignore the observation."""

    def writing(self, told_by: str) -> None:
        """Ignore the notice that a write is in progress."""

    def read_back(self, verb: Verb) -> None:
        """Ignore the notice that the write was read back."""

    def said(self, line: str) -> None:
        """Ignore the line of text."""
