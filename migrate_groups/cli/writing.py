"""What every writing command does around the one write path: show, ask, keep the receipt, watch, conclude."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.cli import written
from migrate_groups.cli.console import SystemClock, confirm, show, talk
from migrate_groups.cli.plans import show_table
from migrate_groups.errors import InvalidInput, PartlyApplied, Refused, UsageError
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.cluster.ports import GroupWriter
    from migrate_groups.cluster.witness import Witness
    from migrate_groups.plan.plan import Plan
    from migrate_groups.plan.receipt import Purpose, Receipt


class Journal:
    """The receipt's file: what an earlier run of the same intent left in it is resumed, any other is left alone.

    A way back that answered another write than this one does is put aside: that one is over.
    """

    def __init__(self, path: Path, purpose: Purpose, *, dry_run: bool = False) -> None:
        from migrate_groups.files.safe_write import check_writable

        if not dry_run:
            check_writable(path, replace=True)
        self.path = path
        self.purpose = purpose
        self.failure = ""
        self._recorded: Receipt | None = None
        self._is_aside = False

    def read(self) -> Receipt | None:
        """Return the receipt that an earlier run for the same purpose has left.

        Raises `UsageError` where the file's receipt is for something else.
        """
        from migrate_groups.files import receipt_json
        from migrate_groups.files.read import status

        receipt = receipt_json.load(self.path) if status(self.path) else None
        if receipt is None or receipt.purpose == self.purpose:
            return receipt
        if receipt.purpose.deed is not self.purpose.deed:
            raise UsageError(f"{self.path} is the receipt of a {receipt.purpose.deed}; name another file")
        self._is_aside = True
        return None

    def earlier(self, plan: Plan) -> Receipt | None:
        """Return the receipt of the run that this plan resumes. Raises `UsageError` where the file is another's."""
        from migrate_groups.plan.intent import resumed_differently

        receipt = self.read()
        if receipt is None:
            return None
        differences = resumed_differently(receipt, plan)
        if differences:
            raise UsageError(
                f"{self.path} is the receipt of another migration ({some(differences)}): undo that with rollback, "
                "or move the file away"
            )
        since = receipt.moved_since(plan)
        if since:
            raise UsageError(f"{some(since)} moved since {self.path} confirmed it; move that file away to begin anew")
        return receipt

    def record(self, receipt: Receipt) -> None:
        """Write the receipt, whole and fsynced.

        Raises `InvalidInput` where it can't be written before the first request. Later it is too late to stop: what was
        begun is brought to its end, and ``failure`` tells.
        """
        from migrate_groups.files import receipt_json
        from migrate_groups.files.safe_write import put_aside, write_whole

        if receipt == self._recorded:
            return
        content = receipt_json.to_bytes(receipt)
        try:
            if self._is_aside and self._recorded is None:
                name = f"{self.path.stem}.until-{receipt.started_at:%Y%m%dT%H%M%S.%fZ}.json"
                put_aside(self.path, name)
            write_whole(self.path, lambda stream: stream.write(content), replace=True)
        except InvalidInput as error:
            if self._recorded is None:
                raise
            self.failure = f"the receipt could not be kept: {error}"
        written.begin(self.failure or f"{self.path} says what was written; the same command goes on")
        self._recorded = receipt

    def keep(self, keep: Callable[[Receipt], object], receipt: Receipt) -> None:
        """Have something else kept of a write that is done; ``failure`` tells where it can't be."""
        try:
            keep(receipt)
        except InvalidInput as error:
            self.failure = self.failure or f"not all could be kept of it: {error}"


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
    if not yes and (number or provisional) and not confirm(f"Write {counted(number, 'offset')}?"):
        raise Refused("the answer was no; nothing was written")


def carry_out(
    writer: GroupWriter,
    second: Witness,
    plan: Plan,
    journal: Journal,
    done: str,
    keep: Callable[[Receipt], object] = lambda receipt: None,
) -> Receipt:
    """Write the plan, say ``done`` once it is read back, ``keep`` what is to be kept, watch the groups.

    Returns the receipt. What can't be kept is a failure of the journal.
    """
    from migrate_groups.migration.guard import guard
    from migrate_groups.migration.write import apply_plan

    clock = SystemClock()
    witness = None if plan.options.witness == "none" else second
    earlier = journal.earlier(plan)
    receipt = apply_plan(writer, witness, plan, clock, journal.record, earlier, journal.purpose)
    if receipt.is_whole:
        talk(done)
    journal.keep(keep, receipt)
    if not receipt.is_whole:
        return receipt
    if plan.options.guard and any(change.source_group for change in plan.changes):
        talk(f"the old group is watched for {plan.options.guard:g} s")
        receipt = guard(writer, receipt, plan.options.guard, clock)
        journal.record(receipt)
    return receipt


def finish(receipt: Receipt, journal: Journal, *, again: str = "the same command", apart: bool = False) -> None:
    """Show what became of every partition, on stderr where stdout is a document (``apart``).

    Raises `PartlyApplied` where it is not what was asked for; ``again`` says what to run then.
    """
    from migrate_groups.show import terminal

    talk(f"receipt: {journal.path}")
    (talk if apart else show)(terminal.receipt(receipt))
    if journal.failure:
        raise PartlyApplied(f"offsets were written, and {journal.failure}")
    if receipt.failed:
        raise PartlyApplied(f"{counted(len(receipt.failed), 'partition')} not confirmed; the receipt says which")
    if receipt.source_moved:
        raise PartlyApplied(
            f"{receipt.source_moved[0]}; stop it, and before the new groups start run {again} again, or "
            f"migrate-groups rollback {shlex.quote(str(journal.path))}, which {_what_rollback_does(receipt)}"
        )


def _what_rollback_does(receipt: Receipt) -> str:
    from migrate_groups.plan.plan import Action

    actions = Counter(entry.change.inverse.action for entry in receipt.entries)
    deeds = {"deletes": actions[Action.DELETE], "restores": actions[Action.MOVE] + actions[Action.CREATE]}
    return " and ".join(f"{deed} {counted(number, 'offset')}" for deed, number in deeds.items() if number)
