"""What every writing command does around the one write path: show, ask, keep the receipt, watch, conclude."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.cli import written
from migrate_groups.cli.console import SystemClock, confirm, show, talk
from migrate_groups.cli.plans import show_table
from migrate_groups.errors import InvalidInput, PartlyApplied, Refused, UsageError
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.kafka.second_client import Witness
    from migrate_groups.migration.ports import GroupReader, GroupWriter
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.receipt import Deed, Receipt
    from migrate_groups.planning.run_states import Verb

    Writing = tuple[GroupWriter, Witness]


class Journal:
    """The receipt's file: the record of the run so far, and the deed that this command adds to it."""

    def __init__(self, path: Path, receipt: Receipt) -> None:
        self.path = path
        self.receipt = receipt
        self.failure = ""
        self._recorded: Deed | None = None

    def record(self, deed: Deed) -> None:
        """Write the receipt with this deed, whole and fsynced.

        Raises `InvalidInput` where it can't be written before the first request. Later it is too late to stop: what was
        begun is brought to its end, and ``failure`` tells.
        """
        from migrate_groups.files.runs import receipt_json
        from migrate_groups.files.safe_write import write_whole

        if deed == self._recorded:
            return
        receipt = self.receipt.with_deed(deed)
        content = receipt_json.to_bytes(receipt)
        try:
            write_whole(self.path, lambda stream: stream.write(content), replace=True)
        except InvalidInput as error:
            if self._recorded is None:
                raise
            self.failure = f"the receipt could not be kept: {error}"
        written.begin(self.failure or f"{self.path} says what was written; the same command goes on")
        self.receipt, self._recorded = receipt, deed

    def keep(self, keep: Callable[[Deed], object], deed: Deed) -> None:
        """Have something else kept of a write that is done; ``failure`` tells where it can't be."""
        try:
            keep(deed)
        except InvalidInput as error:
            self.failure = self.failure or f"not all could be kept of it: {error}"


@contextmanager
def open_journal(path: Path, *, dry_run: bool = False, must_exist: bool = False) -> Iterator[Journal]:
    """Yield the record of a run, locked from before it is read; a dry run only reads it.

    Raises `InvalidInput` where the file is damaged, can't be written, or ``must_exist`` and does not; `Refused` where
    another run has it.
    """
    from migrate_groups.files.lock import locked
    from migrate_groups.files.read import status
    from migrate_groups.files.runs import receipt_json
    from migrate_groups.files.safe_write import check_writable
    from migrate_groups.planning.receipt import NOTHING_WRITTEN

    if not dry_run:
        check_writable(path, replace=True)
    with nullcontext() if dry_run else locked(path):
        is_there = must_exist or status(path) is not None
        yield Journal(path, receipt_json.load(path) if is_there else NOTHING_WRITTEN)


def refuse_other_run(journal: Journal, plan: Plan) -> None:
    """Raise `UsageError` where the record is of another migration, or where a later commit would be undone."""
    from migrate_groups.planning.intent import resumed_differently

    differences = resumed_differently(journal.receipt, plan)
    if differences:
        raise UsageError(
            f"{journal.path} is the receipt of another migration ({some(differences)}): undo that with rollback, "
            "or name another receipt or run directory"
        )
    since = journal.receipt.moved_since(plan)
    if since:
        raise UsageError(
            f"{some(since)}: the committed offset is not the one that {journal.path} confirmed, so records may have "
            "been processed since; to write there anyway, name another receipt or run directory"
        )


def is_over(reader: GroupReader, journal: Journal) -> bool:
    """Say it where this run handed over, and its new groups have gone on since: nothing is handed over again.

    Raises `PartlyApplied` where the source group has moved as well: those records are processed twice; `Refused` where
    a new group has lost an offset.
    """
    from migrate_groups.migration.started import started_since

    started = started_since(reader, journal.receipt)
    if started is None:
        return False
    handed_over = f"{journal.path}: handed over already, and {some(started.groups)} has started"
    if started.moved:
        raise PartlyApplied(
            f"{handed_over}; {some(started.moved, 3)}: stop it, those records are processed twice; nothing was written"
        )
    if started.lost:
        raise Refused(
            f"{handed_over}; no committed offset any more: {some(started.lost)}: nobody can tell how far the group "
            "went; nothing was written"
        )
    talk(f"{handed_over}; nothing was written")
    return True


def check_can_ask(*, yes: bool) -> None:
    """Raise `UsageError` where stdin is not a terminal and ``--yes`` was not passed."""
    if not (yes or sys.stdin.isatty()):
        raise UsageError("stdin is not a terminal: pass --yes to write, or --dry-run to look")


def agree(
    plan: Plan,
    *,
    yes: bool,
    provisional: bool = False,
    show_plan: Callable[[Plan], None] = show_table,
) -> None:
    """Show the plan and ask whether it shall be written; a ``provisional`` one is made anew after a wait.

    Raises `Refused` where a check forbids the write, at which a provisional plan's pending ones are not looked at yet,
    and for a no.
    """
    from migrate_groups.migration.prepare import refuse_forbidden

    show_plan(plan)
    refuse_forbidden(plan.refusals(at_the_write=not provisional))
    number = len(plan.to_write())
    if not yes and (number or provisional) and not confirm(f"Write {counted(number, 'offset')}?"):
        raise Refused("the answer was no; nothing was written")


def carry_out(
    cluster: Writing,
    plan: Plan,
    journal: Journal,
    done: str,
    verb: Verb | None = None,
    keep: Callable[[Deed], object] = lambda deed: None,
) -> Deed:
    """Write the plan, say ``done`` once it is read back, ``keep`` what is to be kept, watch the groups.

    Returns the deed; ``verb`` None is a hand-over. What can't be kept is a failure of the journal.
    """
    from migrate_groups.migration.guard import guard, watched
    from migrate_groups.migration.write import write
    from migrate_groups.planning.run_states import Verb

    writer, second = cluster
    clock = SystemClock()
    deed = journal.receipt.begun(verb or Verb.HAND_OVER, plan, clock.now())
    deed = write(writer, None if plan.options.witness == "none" else second, deed, journal.record)
    if deed.is_whole:
        talk(done)
    journal.keep(keep, deed)
    if not deed.is_whole:
        return deed
    groups = sorted(watched(deed))
    if plan.options.guard and groups:
        talk(f"watching {some(groups)} for {plan.options.guard:g} s: what it commits from now on is processed twice")
        deed = guard(writer, deed, plan.options.guard, clock)
        journal.record(deed)
    return deed


def finish(deed: Deed, journal: Journal, *, again: str = "the same command", apart: bool = False) -> None:
    """Show what became of every partition, on stderr where stdout is a document (``apart``).

    Raises `PartlyApplied` where it is not what was asked for; ``again`` says what to run then.
    """
    from migrate_groups.planning.run_states import Verb
    from migrate_groups.show import terminal

    talk(f"receipt: {journal.path}")
    (talk if apart else show)(terminal.deed(deed))
    if journal.failure:
        raise PartlyApplied(f"offsets were written, and {journal.failure}")
    if deed.failed:
        raise PartlyApplied(
            f"{counted(len(deed.failed), 'partition')} not confirmed; the receipt says which: run {again} again"
        )
    if deed.moved and deed.verb is Verb.HAND_OVER:
        raise PartlyApplied(
            f"{deed.moved[0]}; stop it. If the new groups have not started, run {again} again, or migrate-groups "
            f"rollback {shlex.quote(str(journal.path))}, which {_what_rollback_does(deed)}; if they have started, "
            "these records are processed twice, and the same command tells which"
        )
    if deed.moved:
        raise PartlyApplied(f"{deed.moved[0]}; stop it: what it processes from there on is processed twice")


def _what_rollback_does(deed: Deed) -> str:
    from migrate_groups.planning.plan import Action

    actions = Counter(entry.change.inverse.action for entry in deed.entries)
    deeds = {"deletes": actions[Action.DELETE], "restores": actions[Action.MOVE] + actions[Action.CREATE]}
    return (
        " and ".join(f"{each} {counted(number, 'offset')}" for each, number in deeds.items() if number) or "undoes it"
    )
