"""The callbacks through which a running command shows its progress and asks the user.

The command line implements them. A program that uses the API may pass its own, or `Silent`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from migrate_groups.migration.progress import Done, in_silence
from migrate_groups.migration.reading.take import ObservedGroup
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable


class Events(Protocol):
    """The callbacks of migrate, apply, rollback, hand-back and delete-offsets.

    They are called in the thread of the command, which continues when the callback returns. An error that a callback
    raises ends the command.
    """

    def stop_planned(self, stop: PlannedStop) -> None:
        """Show the user which members of the source group must stop, and for how long.

        Called by ``migrate`` only, before `planned` and also in a dry run.
        """
        ...

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Show the plan to the user. Called once, before `agrees`; not in a dry run.

        plan: what would be written, with the verdict of every check. If a check forbids the write, the command ends
        with an error after this call. rows: call it to get the snapshot rows from which the plan was made. It returns
        no rows for a rollback, hand-back or delete-offsets.
        """
        ...

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Return whether to write the plan: the user's answer. If it is False, the command ends with `Refused`.

        provisional: the plan is made again, with the final offsets, once the consumers have stopped. If the plan writes
        nothing and is not provisional, this callback is not called.
        """
        ...

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Receive what was observed of the groups that must stop. Called after each check while a command waits.

        reasons: for each group, why it still runs; an empty list if it has stopped. looks: for each group, its
        description and, if they were read, its committed offsets. They are read only if the group has stopped. seconds:
        how long the command has waited.
        """
        ...

    def writing(self, told_by: str) -> None:
        """Receive what to tell the user if the write is interrupted from now on.

        Called before the first request of a write, and again after each step. told_by: a sentence that names the
        receipt, the file that lists what was written. If this file could not be saved, the sentence says why.
        """
        ...

    def read_back(self, verb: Verb, sources: Collection[str]) -> None:
        """Receive notice that the write has succeeded.

        Called only if every offset was read back as planned, and no group that must stop still consumes. verb: the kind
        of the write. After a hand-over, the applications of the target groups may start now; after a rollback or a
        hand-back, those of the source groups. sources: the source groups; empty if the offsets were set without one, as
        for a replay.
        """
        ...

    def working(self, doing: str, done: Done) -> AbstractContextManager[None]:
        """Return a context manager that shows the progress of some work. The command does the work within it.

        doing: what is done, for the user, such as ``reading group orders``. done: returns how much is done and how much
        there is to do, or None if this is not known. Call ``done`` only within the context, from any thread. Within the
        context, no other callback is called that prints or asks.
        """
        ...

    def said(self, line: str) -> None:
        """Show a line of text to the user."""
        ...


class DeletionEvents(Protocol):
    """The callbacks of delete-group. An error that a callback raises ends the command."""

    def would_delete(self, groups: Mapping[str, SnapshotTable]) -> None:
        """Show the committed offsets that would be deleted with each group. Called before `agrees_to_delete`."""
        ...

    def agrees_to_delete(self, groups: Sequence[str]) -> bool:
        """Return whether to delete the groups: the user's answer. If it is False, the command ends with `Refused`."""
        ...

    def writing(self, told_by: str) -> None:
        """Receive what to tell the user if the command is interrupted from now on. Called before each deletion.

        told_by: a sentence that says which groups were deleted, and which group may have been deleted.
        """
        ...

    def deleted(self, group: str) -> None:
        """Receive notice that a group no longer exists."""
        ...


class Silent:
    """Callbacks for a caller without a user: agree to every plan, and ignore everything else."""

    def stop_planned(self, stop: PlannedStop) -> None:
        """Ignore which members of the source group must stop."""

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Ignore the plan."""

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Agree: every plan is written without a question."""
        return True

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Show nothing while a command waits for groups to stop."""

    def writing(self, told_by: str) -> None:
        """Ignore the notice that a write is in progress."""

    def read_back(self, verb: Verb, sources: Collection[str]) -> None:
        """Ignore the notice that the write was read back."""

    def working(self, doing: str, done: Done) -> AbstractContextManager[None]:
        """Return a context manager that shows nothing. The command works within it. doing, done: not used."""
        return in_silence(doing, done)

    def said(self, line: str) -> None:
        """Ignore the line of text."""
