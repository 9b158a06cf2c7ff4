"""The callbacks through which a running command shows its progress and asks the user.

A caller that shows something, or asks, overrides them. Otherwise they agree to every plan, and show nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate_groups.model.groups import ObservedGroup
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.planned_stop import PlannedStop
    from migrate_groups.planning.run_states import Verb
    from migrate_groups.snapshots.row import Row

Progress = Callable[[int, int], None]
"""Called with the amount that is done, and the amount to do in all."""

Done = Callable[[], tuple[int, int] | None]
"""Returns the amount that is done and the amount to do in all; None: not known. It may be called in another thread."""


def not_known() -> None:
    """Return None, for work of which no progress is known."""


class Events:
    """The callbacks of all commands that take a while. A command that only reads calls `working` and `said`.

    They are called in the thread of the command. An error that a callback raises ends the command.
    """

    def working(self, doing: str, done: Done = not_known) -> AbstractContextManager[None]:
        """Return a context manager that shows the progress of some work. The command works within the context.

        - doing: the work, such as ``reading group orders``.
        - done: returns how much is done and how much there is to do, or None if not known. Call it only within the
          context, from any thread.

        Within the context, no other callback is called that prints or asks.
        """
        return nullcontext()

    def said(self, line: str) -> None:
        """Show a line of text to the user."""

    def stop_planned(self, stop: PlannedStop) -> None:
        """Show the user which members of the source group must stop, and for how long.

        Called only by ``migrate``, before `planned` and also in a dry run.
        """

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Show the plan to the user. Called once, before `agrees`, but not in a dry run.

        - plan: what would be written. If one of its checks forbids the write, the command then ends with an error.
        - rows: returns the snapshot rows from which the plan was made; empty for a rollback, hand-back or
          delete-offsets.
        """

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Return whether the user agrees to write the plan. If not, the command ends with `Refused`.

        By default, every plan is written. Not called if nothing is to be written, except for a provisional plan.
        provisional: the plan will be made again, with the final offsets, after the consumers have stopped.
        """
        return True

    def stop_agreed(self, stop: PlannedStop) -> None:
        """Receive notice that the members of the source group may stop now, because the user has agreed.

        Called only by ``migrate``, after all checks but those of the stop have passed, and before the wait.
        """

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Receive the state of the groups that must stop. Called after each check while a command waits.

        - reasons: for each group, why it still runs; empty if it has stopped.
        - looks: for each group, its description and, if they were read, its committed offsets.
        - seconds: how long the command has waited.
        """

    def writing(self, told_by: str) -> None:
        """Receive the sentence to show to the user if the write is interrupted from now on.

        Called before the first request and after each step.
        told_by: names the file that lists what was written, or says why that file could not be saved.
        """

    def read_back(self, verb: Verb, sources: Collection[str], *, wrote: bool) -> None:
        """Receive notice that all offsets were read back as planned, and that groups that must stop have stopped.

        - verb: the kind of write. After a hand-over, the target groups may start; after a rollback or hand-back, the
          source groups.
        - sources: the source groups; empty if there are none, as for a replay.
        - wrote: False if every offset was in place already, so that nothing was written.
        """

    def doing(self, line: str) -> None:
        """Show a line that says what the command does now. In a fleet of many groups it may be left out."""

    def ending(self) -> None:
        """Wait for what `read_back` has started. Meanwhile no other command may write with the same receipt.

        Called only by ``migrate``, as its last step, also if it fails.
        """


SILENT = Events()
"""For a command that shows nothing."""


@contextmanager
def amounts_shown(events: Events, doing: str) -> Iterator[Progress]:
    """Yield a function that receives the progress of the block, which ``events`` shows."""
    amounts: tuple[int, int] | None = None

    def tell(done: int, total: int) -> None:
        nonlocal amounts
        amounts = done, total

    with events.working(doing, lambda: amounts):
        yield tell
