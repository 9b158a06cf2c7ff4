"""The callbacks through which a running command shows its progress and asks the user.

A program that uses the Python API may pass its own callbacks, or `Silent`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from migrate_groups.migration.progress_callbacks import Done, in_silence
from migrate_groups.migration.reading.take import ObservedGroup
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.planned_stop import PlannedStop
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable


class ReadingEvents(Protocol):
    """The callbacks of a command that only reads. An error that a callback raises ends the command."""

    def working(self, doing: str, done: Done) -> AbstractContextManager[None]:
        """Return a context manager that shows the progress of some work. The command works within the context.

        - doing: the work, such as ``reading group orders``.
        - done: returns how much is done and how much there is to do, or None if not known. Call it only within the
          context, from any thread.

        Within the context, no other callback is called that prints or asks.
        """
        ...

    def said(self, line: str) -> None:
        """Show a line of text to the user."""
        ...


class Events(ReadingEvents, Protocol):
    """The callbacks of migrate, apply, rollback, hand-back and delete-offsets.

    They are called in the thread of the command. An error that a callback raises ends the command.
    """

    def stop_planned(self, stop: PlannedStop) -> None:
        """Show the user which members of the source group must stop, and for how long.

        Called only by ``migrate``, before `planned` and also in a dry run.
        """
        ...

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Show the plan to the user. Called once, before `agrees`, but not in a dry run.

        - plan: what would be written. If one of its checks forbids the write, the command then ends with an error.
        - rows: returns the snapshot rows from which the plan was made; empty for a rollback, hand-back or
          delete-offsets.
        """
        ...

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Return whether the user agrees to write the plan. If not, the command ends with `Refused`.

        Not called if nothing is to be written, except for a provisional plan.
        provisional: the plan will be made again, with the final offsets, after the consumers have stopped.
        """
        ...

    def stop_agreed(self, stop: PlannedStop) -> None:
        """Receive notice that the members of the source group may stop now, because the user has agreed.

        Called only by ``migrate``, after all checks but those of the stop have passed, and before the wait.
        """
        ...

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Receive the state of the groups that must stop. Called after each check while a command waits.

        - reasons: for each group, why it still runs; empty if it has stopped.
        - looks: for each group, its description and, if they were read, its committed offsets.
        - seconds: how long the command has waited.
        """
        ...

    def writing(self, told_by: str) -> None:
        """Receive the sentence to show to the user if the write is interrupted from now on.

        Called before the first request and after each step.
        told_by: names the file that lists what was written, or says why that file could not be saved.
        """
        ...

    def read_back(self, verb: Verb, sources: Collection[str], *, wrote: bool) -> None:
        """Receive notice that all offsets were read back as planned, and that groups that must stop have stopped.

        - verb: the kind of write. After a hand-over, the target groups may start; after a rollback or hand-back, the
          source groups.
        - sources: the source groups; empty if there are none, as for a replay.
        - wrote: False if every offset was in place already, so that nothing was written.
        """
        ...

    def doing(self, line: str) -> None:
        """Show a line that says what the command does now. In a fleet of many groups it may be left out."""
        ...

    def ending(self) -> None:
        """Wait for what `read_back` has started. Meanwhile no other command may write with the same receipt.

        Called only by ``migrate``, as its last step, also if it fails.
        """
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
        """Receive the sentence to show to the user if the command is interrupted. Called before each deletion.

        told_by: says which groups were deleted, and which group may have been deleted.
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
        """Return True without asking: every plan is written."""
        return True

    def stop_agreed(self, stop: PlannedStop) -> None:
        """Stop no application: the caller does."""

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Show nothing while a command waits for groups to stop."""

    def writing(self, told_by: str) -> None:
        """Ignore the notice that a write is in progress."""

    def read_back(self, verb: Verb, sources: Collection[str], *, wrote: bool) -> None:
        """Ignore the notice that the write has succeeded."""

    def ending(self) -> None:
        """Wait for nothing."""

    def working(self, doing: str, done: Done) -> AbstractContextManager[None]:
        """Return a context manager that shows nothing."""
        return in_silence(doing, done)

    def said(self, line: str) -> None:
        """Ignore the line of text."""

    def doing(self, line: str) -> None:
        """Ignore the line of text."""
