"""Move several consumer groups to another cluster, one after the other, and show the outcome of each group."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrate_groups.cli import written
from migrate_groups.cli.console import show_as, talk
from migrate_groups.cli.typed_command import without_dry_run
from migrate_groups.errors import (
    EXIT_CHANGES,
    ClusterUnavailable,
    InvalidInput,
    MigrateGroupsError,
    PartlyApplied,
    Refused,
    UsageError,
    was_interrupted,
)
from migrate_groups.files.safe_write import new_folder
from migrate_groups.text import brief, some

if TYPE_CHECKING:
    from migrate_groups.cli.connect import Connection
    from migrate_groups.cli.hand_over import HandOver
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.files.split_toml import SplitFile
    from migrate_groups.migration.across.mirror import Mirror
    from migrate_groups.migration.hand_over.groups_to_move import WholeGroups
    from migrate_groups.show.moves import GroupMove, MovesDocument

_ERRORS = {
    each.exit_code: each for each in (MigrateGroupsError, InvalidInput, Refused, PartlyApplied, ClusterUnavailable)
}
Done = tuple[str, int]
"""The verdict of a hand-over that ended well, and how many offsets it has written, or would write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveGroups:
    """The hand-overs of several consumer groups, one after the other.

    - wanted: the groups.
    - run: the folder in which each group gets its own run directory.
    - plans: a new folder for the plans; None: no plan is saved.
    - hand_over: makes the `HandOver` of one group from its spec, its run directory, the file for its plan, and the file
      of its reviewed plan.
    """

    wanted: WholeGroups
    run: RunDir
    plans: Path | None
    hand_over: Callable[[SplitFile, RunDir, Path | None, Path | None], HandOver]

    def check(self, output_format: str, *, has_target: bool, force: bool) -> None:
        """Raise `UsageError` if no target cluster is named, or if an option can't be used to move several groups.

        Such options are ``--format markdown`` and ``csv``, ``--force``, an ``--approved`` that is not a folder, and a
        ``--run-dir`` that was used to migrate a split.
        """
        from migrate_groups.files.read import is_folder

        if not has_target:
            raise UsageError(
                "the spec names whole groups, which go to another cluster: pass --to-bootstrap-server or "
                "--to-command-config"
            )
        if output_format in ("markdown", "csv"):
            raise UsageError(f"--format {output_format} shows one plan, and each group has its own: pass table or json")
        if force:
            raise UsageError("--force replaces a file: for whole groups name a new folder with --plan-out")
        reviewed = self.wanted.reviewed
        if reviewed is not None and not is_folder(reviewed):
            raise UsageError(f"--approved {reviewed}: for whole groups name the folder of --plan-out")
        if self.run.receipt.is_file():
            raise UsageError(f"{self.run.folder} is the run directory of one split: name another folder with --run-dir")

    def move(self, mirror: Mirror, target: Connection) -> MovesDocument:
        """Move the groups one after the other, and return the outcome of each group. A failure is also an outcome.

        Raises `InvalidInput` if a glob of the spec matches no group, and `UsageError` if ``--rename`` names an unknown
        group.
        """
        from migrate_groups.show.moves import STARTED

        groups = self.wanted.find(mirror.source.groups)
        with self.run.made(), target.open_writer() as clients:

            def write(one: HandOver) -> Done:
                outcome = one.write(clients, mirror)
                one.conclude(outcome)
                return (STARTED, 0) if outcome is None else ("moved", len(outcome.execution.changes))

            return self._each(groups, write, dry_run=False)

    def plan(self, mirror: Mirror, target: Connection) -> MovesDocument:
        """Show the plan of each group, and return for each group whether its checks allow the move.

        Raises `InvalidInput` if a glob of the spec matches no group, and `UsageError` if ``--rename`` names an unknown
        group.
        """
        from migrate_groups.migration.make_plan import refuse_forbidden
        from migrate_groups.show.moves import STARTED

        groups = self.wanted.find(mirror.source.groups)
        with new_folder(self.plans, talk) if self.plans else nullcontext(), target.open_reader() as reader:

            def look(one: HandOver) -> Done:
                plan = one.dry_run(reader, mirror)
                if plan is None:
                    return STARTED, 0
                refuse_forbidden(plan.refusals(at_the_write=False))
                return plan.verdict, len(plan.to_write())

            return self._each(groups, look, dry_run=True)

    def _each(self, groups: Collection[str], do: Callable[[HandOver], Done], *, dry_run: bool) -> MovesDocument:
        """Call ``do`` for each group, and return all outcomes, including failures."""
        from migrate_groups.show.moves import GroupMove, MovesDocument

        done: list[GroupMove] = []
        group = ""
        try:
            for number, group in enumerate(groups, 1):
                talk("", f"group {group}, {number} of {len(groups)}")
                written.so_far.set("")
                folder = self.run.of_group(group).folder
                try:
                    verdict, offsets = do(self._of(group))
                    move = GroupMove(
                        group=group, verdict=verdict, exit_code=0, offsets=offsets, reason=None, run_dir=folder
                    )
                except MigrateGroupsError as error:
                    if was_interrupted(error):
                        raise
                    reason = brief(str(error))
                    see = written.status_command(error)
                    talk(f"error: {reason}", *filter(None, [written.meaning(error), see and f"see: {see}"]))
                    move = GroupMove.failed(group, error.exit_code, reason, folder)
                done.append(move)
                written.run.set(None)
        except BaseException:  # an interrupt may come out as another error
            _tell_interrupted(group, done)
            raise
        # The command may still be interrupted, for instance while its clients close.
        written.so_far.set("" if dry_run else "; ".join(_written(done)))
        return MovesDocument(dry_run=dry_run, groups=tuple(done))

    def _of(self, group: str) -> HandOver:
        from migrate_groups.files.runs.run_dir import plan_of_group

        reviewed = self.wanted.reviewed_plan(group)
        plan = plan_of_group(self.plans, group) if self.plans else None
        return self.hand_over(self.wanted.of_group(group), self.run.of_group(group), plan, reviewed)


def conclude(found: MovesDocument, output_format: str, plans: Path | None, *, detailed: bool) -> None:
    """Show the outcomes of all groups. If groups failed, raise an error with the most serious exit code.

    plans: the folder of the plans that a dry run saved. detailed: if no group failed and there are offsets to write,
    exit with code 10.
    """
    talk("")
    show_as(output_format, found.result())
    if code := found.exit_code:
        written.so_far.set("")  # the error says it
        goes_on = "" if found.dry_run else "; the same command goes on with them"
        raise _ERRORS[code](f"{found.conclusion()}: see the reasons in the table{goes_on}")
    if found.dry_run:
        talk(f"next: {without_dry_run(*(('--approved', str(plans)) if plans else ()))}")
    if detailed and any(each.offsets for each in found.groups):
        talk(f"exit {EXIT_CHANGES}: there are offsets to write")
        raise typer.Exit(EXIT_CHANGES)


def _tell_interrupted(group: str, done: Collection[GroupMove]) -> None:
    """Set the message for an interrupted command: what was written to ``group``, and to the groups in ``done``."""
    is_current = group and all(each.group != group for each in done)
    current = [f"group {group}: {written.so_far.get() or written.NOTHING}"] if is_current else []
    written.so_far.set("; ".join([*current, *_written(done)]))


def _written(done: Collection[GroupMove]) -> list[str]:
    """Return a text that names the moved groups, and one that names the groups whose hand-over is not complete."""
    moved = [each.group for each in done if not each.exit_code]
    partly = [each.group for each in done if each.exit_code == PartlyApplied.exit_code]
    return [f"{what}: {some(which)}" for what, which in (("done before", moved), ("incomplete", partly)) if which]
