"""What every writing command does around the one write path: show, ask, keep the receipt, watch, conclude."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrate_groups.cli.console import SystemClock, show, talk
from migrate_groups.cli.plans import show_table
from migrate_groups.errors import InvalidInput, PartlyApplied, Refused, UsageError
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.cluster.ports import GroupWriter
    from migrate_groups.cluster.witness import Witness
    from migrate_groups.plan.plan import Plan
    from migrate_groups.plan.receipt import Receipt


class Journal:
    """The receipt's file: what an earlier run of the same intent left in it is resumed, any other is left alone."""

    def __init__(self, path: Path) -> None:
        from migrate_groups.files.safe_write import check_writable

        check_writable(path, replace=True)
        self.path = path
        self.failure = ""
        self._begun = False

    def read(self) -> Receipt | None:
        """Return the receipt that an earlier run has left, whichever that was."""
        from migrate_groups.files import receipt_json

        return receipt_json.load(self.path) if self.path.exists() else None

    def earlier(self, plan: Plan) -> Receipt | None:
        """Return the receipt of the run that this plan resumes. Raises `UsageError` where the file is another's."""
        receipt = self.read()
        if receipt is None:
            return None
        if not receipt.is_of(plan):
            raise UsageError(
                f"{self.path} is the receipt of another migration: undo that with rollback, or move the file away"
            )
        since = receipt.moved_since(plan)
        if since:
            raise UsageError(
                f"{some(since)} moved since {self.path} confirmed it; move that receipt away to migrate once more"
            )
        return receipt

    def record(self, receipt: Receipt) -> None:
        """Write the receipt, whole and fsynced.

        Raises `InvalidInput` where it can't be written before the first request. Later it is too late to stop: what was
        begun is brought to its end, and ``failure`` tells.
        """
        from migrate_groups.files import receipt_json
        from migrate_groups.files.safe_write import write_whole

        content = receipt_json.to_bytes(receipt)
        try:
            write_whole(self.path, lambda stream: stream.write(content), replace=True)
        except InvalidInput as error:
            if not self._begun:
                raise
            self.failure = str(error)
        self._begun = True


def check_can_ask(*, yes: bool) -> None:
    """Raise `UsageError` where nobody can be asked and nobody said yes."""
    if not (yes or sys.stdin.isatty()):
        raise UsageError("nobody can be asked here: pass --yes to write, or --dry-run to look")


def agree(
    plan: Plan,
    journal: Journal,
    *,
    yes: bool,
    provisional: bool = False,
    show_plan: Callable[[Plan], None] = show_table,
) -> None:
    """Show the plan and ask whether it shall be written; a ``provisional`` one is made anew after a wait.

    Raises `Refused` where a check forbids the write, at which a provisional plan's pending ones are not looked at yet,
    and for a no; `UsageError` where the receipt's file is another's.
    """
    from migrate_groups.migration.prepare import refuse_forbidden

    journal.earlier(plan)
    show_plan(plan)
    refuse_forbidden(plan.refusals(at_the_write=not provisional))
    number = len(plan.to_write())
    if not yes and (number or provisional) and not typer.confirm(f"Write {counted(number, 'offset')}?", err=True):
        raise Refused("the answer was no; nothing was written")


def carry_out(writer: GroupWriter, second: Witness, plan: Plan, journal: Journal, done: str) -> Receipt:
    """Write the plan, say ``done`` once it is read back, watch the groups, and return the receipt."""
    from migrate_groups.migration.guard import guard
    from migrate_groups.migration.write import apply_plan

    clock = SystemClock()
    witness = None if plan.options.witness == "none" else second
    receipt = apply_plan(writer, witness, plan, clock, journal.record, journal.earlier(plan))
    if receipt.failed or receipt.source_moved:
        return receipt
    talk(done)
    if plan.options.guard and any(change.source_group for change in plan.changes):
        talk(f"the old group is watched for {plan.options.guard:g} s")
        receipt = guard(writer, receipt, plan.options.guard, clock)
        journal.record(receipt)
    return receipt


def finish(receipt: Receipt, journal: Journal) -> None:
    """Show what became of every partition. Raises `PartlyApplied` where it is not what was asked for."""
    from migrate_groups.show import terminal

    talk(f"receipt: {journal.path}")
    show(terminal.receipt(receipt))
    if journal.failure:
        raise PartlyApplied(f"offsets were written, and the receipt could not be kept: {journal.failure}")
    if receipt.failed:
        raise PartlyApplied(f"{counted(len(receipt.failed), 'partition')} not confirmed; the receipt says which")
    if receipt.source_moved:
        raise PartlyApplied(
            f"{receipt.source_moved[0]}; stop it, and before the new groups start: "
            f"migrate-groups rollback {journal.path}, or apply a new snapshot"
        )
