"""The user at the command line: shows what a running command reports, and asks whether to write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.cli import written
from migrate_groups.cli.console import confirm, show, talk
from migrate_groups.cli.plans import PlanFormat, show_plan
from migrate_groups.errors import UsageError
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.migration.reading.take import ObservedGroup
    from migrate_groups.migration.result import WriteResult
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.run_states import Verb
    from migrate_groups.snapshots.snapshot import Row

_SAY_AGAIN = 15.0


@dataclass(slots=True, kw_only=True)
class Person:
    """The callbacks through which a running command reports and asks (`migration.events.Events`).

    yes: agree to every plan without a question. output_format: how a plan is shown. plan_out: the file in which the
    plan is saved. force: replace this file if it exists.
    """

    yes: bool = False
    output_format: PlanFormat = "table"
    plan_out: Path | None = None
    force: bool = False
    _told: tuple[Mapping[str, list[str]], float] | None = field(default=None, init=False)

    def check_can_be_asked(self) -> None:
        """Raise `UsageError` if stdin is not a terminal and ``--yes`` was not passed."""
        if not (self.yes or sys.stdin.isatty()):
            raise UsageError("stdin is not a terminal: pass --yes to write, or --dry-run to look")

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Show the plan on stdout, and save it if ``plan_out`` is set. ``rows`` reads its rows when they are needed."""
        show_plan(plan, rows, self.output_format, self.plan_out, force=self.force)

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Return whether to write the plan: ask on stderr, unless ``yes`` is set."""
        return self.yes or confirm(f"Write {counted(len(plan.to_write()), 'offset')}?")

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Print on stderr why groups that must stop still run: at each change, and every `_SAY_AGAIN` seconds."""
        running = {group: why for group, why in reasons.items() if why}
        if self._told is None or self._told[0] != running or seconds - self._told[1] >= _SAY_AGAIN:
            talk(*(f"{seconds:4.0f} s  {group} {reason}" for group, why in running.items() for reason in why))
            self._told = running, seconds

    def writing(self, told_by: str) -> None:
        """Keep ``told_by`` (where to see what was written) for the message that `main` prints on an interrupt."""
        written.told_by.set(told_by)

    def read_back(self, verb: Verb) -> None:
        """Print that all offsets are written and read back and, after a hand-over, that the target groups may start."""
        from migrate_groups.planning.run_states import Verb

        talk("written and read back" + (": START THE NEW GROUPS NOW" if verb is Verb.HAND_OVER else ""))

    def said(self, line: str) -> None:
        """Print the line on stderr."""
        talk(line)


def show_result(outcome: WriteResult, *, apart: bool = False) -> None:
    """Show the path of the receipt and the outcome of a write. Raises `PartlyApplied` if the write is not whole.

    apart: show the outcome on stderr, because stdout already has a plan as JSON or Markdown.
    """
    from migrate_groups.show import terminal

    talk(f"receipt: {outcome.path}")
    (talk if apart else show)(terminal.execution(outcome.execution))
    outcome.check()
