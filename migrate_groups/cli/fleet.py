"""Hand over the groups of a fleet side by side, for the command ``migrate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from migrate_groups.cli import written
from migrate_groups.cli.console import speaker, talk
from migrate_groups.cli.fleet_output import FleetDialogue, FleetProgress, Named, row_of_result, telling
from migrate_groups.cli.typed_command import without_dry_run
from migrate_groups.errors import EXIT_CHANGES, InvalidInput, UsageError
from migrate_groups.files.safe_write import new_folder
from migrate_groups.text import counted, shell_command

if TYPE_CHECKING:
    from migrate_groups.cli.connect import Connection
    from migrate_groups.cli.hand_over import HandOver
    from migrate_groups.clock import Clock
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.files.split_toml import SplitFile
    from migrate_groups.migration.clusters import Mirror
    from migrate_groups.migration.hand_over.fleet import Part
    from migrate_groups.migration.hand_over.groups_to_move import FoundGroups, Reviewed, WholeGroups
    from migrate_groups.migration.hand_over.prepared import Prepared
    from migrate_groups.migration.ports import Clients, GroupReader
    from migrate_groups.migration.write_result import WriteResult
    from migrate_groups.show.fleet import FleetDocument, FleetPart

_SHOWN = "the plan shown before"
_LATER = ("reconcile", "audit", "rollback")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """The groups of a fleet with their plans; None for a group that has been handed over and has started.

    named: by group, with its new group and its run directory. rows: the outcomes of the plans, by group.
    """

    found: FoundGroups
    named: Mapping[str, Named]
    parts: list[Part[Prepared | None]]
    rows: dict[str, FleetPart]

    @property
    def plans(self) -> dict[str, Prepared]:
        """The plans that could be made, by group."""
        return {part.group: part.result for part in self.parts if part.result is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCommand:
    """The command ``migrate`` for a fleet.

    - wanted: the groups.
    - run: the folder in which each group gets its own run directory.
    - plans: a new folder for the plans; None: no plan is saved.
    - hand_over: makes the hand-over of one group from its spec, its run directory, its reviewed plan, its clock, and
      its part in the fleet; None while only its plan is made.
    - yes: hand over without a question. stops: whether ``--stop-command`` stops the applications.
    - wait: seconds within which the groups must stop.
    """

    wanted: WholeGroups
    run: RunDir
    plans: Path | None
    hand_over: Callable[[SplitFile, RunDir, Reviewed | None, Clock, Part[Any] | None], HandOver]
    clock: Clock
    yes: bool
    stops: bool
    wait: float

    def check(self, output_format: str, *, force: bool) -> None:
        """Raise `UsageError` if an option can't be used for a fleet.

        Such options are ``--format csv``, ``--force``, an ``--approved`` that is not a folder, and a ``--run-dir`` that
        was used to migrate a split.
        """
        from migrate_groups.files.read import is_folder

        if output_format == "csv":
            raise UsageError("--format csv shows one plan, and each group has its own: pass table, markdown or json")
        if force:
            raise UsageError("--force replaces a file: for a fleet name a new folder with --plan-out")
        reviewed = self.wanted.reviewed
        if reviewed is not None and not is_folder(reviewed):
            raise UsageError(f"--approved {reviewed}: for a fleet name the folder of --plan-out")
        if self.run.receipt.is_file():
            raise UsageError(f"{self.run.folder} is the run directory of one split: name another folder with --run-dir")

    def dry_run(self, mirror: Mirror | None, written_to: Connection, output_format: str, *, detailed: bool) -> None:
        """Show the plans of all groups, and save them. detailed: exit with code 10 if there are offsets to write.

        Raises the errors of `WholeGroups.find`, and an error with the most serious exit code if groups are refused.
        """
        with new_folder(self.plans, talk) if self.plans else nullcontext(), written_to.open_reader() as reader:
            planned = self._planned(reader, mirror)
        after = without_dry_run(*(("--approved", str(self.plans)) if self.plans else ()))
        plans = [each.plan for each in planned.plans.values()]
        offsets = self._dialogue(planned, output_format).show_plans(planned.rows.values(), plans, self.plans, after)
        if detailed and offsets:
            talk(f"exit {EXIT_CHANGES}: there are offsets to write")
            raise typer.Exit(EXIT_CHANGES)

    def write(self, mirror: Mirror | None, written_to: Connection, output_format: str) -> None:
        """Show the plans of all groups, ask, and hand over each group that is not refused.

        Raises the errors of `WholeGroups.find`, `Refused` if the user does not agree, and an error with the most
        serious exit code of a group if groups failed.
        """
        with self.run.made(), written_to.open_writer() as clients:
            planned = self._planned(clients.writer, mirror)
            dialogue, rows = self._dialogue(planned, output_format), planned.rows
            plans = {group: planned.plans[group] for group in dialogue.agreed(rows, planned.plans)}
            for group, prepared in plans.items():
                of_group = self.run.of_group(group)
                of_group.make()
                of_group.keep_baseline(prepared.reading.rows())
            rows |= self._handed_over(planned, plans, clients, mirror)
        dialogue.conclude(rows.values(), *([self._write_page] if plans else []))

    def _dialogue(self, planned: _Planned, output_format: str) -> FleetDialogue:
        return FleetDialogue(output_format, self.yes, "Hand over {}?", "group", planned.found.left_out)

    def _write_page(self, done: FleetDocument) -> None:
        """Write ``fleet.html``. If it can't be written, stderr says so, because the outcome is that of the write."""
        from migrate_groups.files.safe_write import write_whole

        folder, path = str(self.run.folder), self.run.folder / "fleet.html"
        reconcile, audit, back = (f"`migrate-groups {shell_command(each, [folder])}`" for each in _LATER)
        failed = sum(1 for each in done.groups if each.exit_code)
        left = [f"{counted(failed, 'group')} left: the same command goes on with them"] if failed else []
        if failed < len(done.groups):
            left += [f"Next: {reconcile}", f"Once the new groups have committed: {audit}", f"Back: {back}"]
        page = done.page(left).encode()
        try:
            write_whole(path, lambda file: file.write(page), replace=True)
        except InvalidInput as error:
            talk(f"warning: {error}")
        else:
            talk(f"{path} has the outcome of each group")

    def _planned(self, reader: GroupReader, mirror: Mirror | None) -> _Planned:
        """Return the groups of the fleet, and make and save their plans."""
        from migrate_groups.migration.hand_over.fleet import Part, work_on_each
        from migrate_groups.migration.reading.phase import for_one_phase
        from migrate_groups.show.fleet import STARTED

        # One phase for all plans, so that the topics of the cluster are read once.
        reader = for_one_phase(reader)
        if mirror is not None:
            mirror = mirror._replace(source=mirror.source._replace(groups=for_one_phase(mirror.source.groups)))
        source = mirror.source.groups if mirror else reader
        found = self.wanted.find(source, elsewhere=mirror is not None, run=self.run)
        named = {
            group: Named(group, split.spec.targets[0].group, self.run.of_group(group).folder)
            for group, split in found.splits.items()
        }

        def plan(part: Part[Prepared | None], clock: Clock) -> Prepared | None:
            group = part.group
            speaker.set(f"{named[group]}: ")
            reviewed = found.reviewed.get(group)
            one = self.hand_over(found.splits[group], self.run.of_group(group), reviewed, clock, None)
            prepared = one.across(mirror).prepared(reader)
            if prepared is not None:
                one.terminal.planned(prepared.plan, prepared.rows)
            return prepared

        parts = [Part["Prepared | None"](group) for group in found.splits]
        # So many side by side that most requests, such as the list of all groups, are sent once for many of them.
        work_on_each(parts, plan, self.clock, most=64)
        rows = {
            part.group: named[part.group].row_of_plan(part, part.result.plan if part.result else None, STARTED)
            for part in parts
        }
        planned = _Planned(found=found, named=named, parts=parts, rows=rows)
        if self.plans is not None:
            from migrate_groups.cli.plans import save_plan
            from migrate_groups.files.runs.run_dir import plan_of_group

            for group, each in planned.plans.items():
                save_plan(each.plan, each.rows, plan_of_group(self.plans, group), force=False)
        return planned

    def _handed_over(
        self, planned: _Planned, agreed: Mapping[str, Prepared], clients: Clients, mirror: Mirror | None
    ) -> dict[str, FleetPart]:
        """Hand over these groups, and return the outcome of each."""
        from migrate_groups.migration.hand_over.fleet import Fleet, Part
        from migrate_groups.migration.hand_over.prepared import Agreed
        from migrate_groups.show.fleet import STARTED

        parts = [Part["WriteResult | None"](group) for group in agreed]
        shown = FleetProgress(parts, self.clock, self.wait, self.wanted.file.limits.max_stopped, stops=self.stops)
        found, named = planned.found, planned.named

        def work(part: Part[WriteResult | None], clock: Clock) -> WriteResult | None:
            group = part.group
            speaker.set(f"{named[group]}: ")
            written.so_far.set("")
            reviewed = found.reviewed.get(group, (_SHOWN, agreed[group].plan))
            one = self.hand_over(found.splits[group], self.run.of_group(group), reviewed, clock, part)
            before = Agreed(shown=agreed[group], topics=part.topics, ran_until=part.ran_until)
            one = replace(one, wanted=replace(one.wanted, mirror=mirror, agreed=before))
            outcome = one.write(clients)
            if outcome is not None:
                one.show_result(outcome)
                one.check_started()
            return outcome

        rows: dict[str, FleetPart] = {}

        def ended(part: Part[WriteResult | None]) -> None:
            row = rows[part.group] = row_of_result(named[part.group], part, "moved", STARTED)
            named[part.group].tell_end(part, row)

        fleet = Fleet(
            parts=parts,
            work=work,
            reader=mirror.source.groups if mirror else clients.writer,
            limits=self.wanted.file.limits,
            clock=self.clock,
            wait=self.wait,
            stops=self.stops,
            progress=shown.tell,
            ended=ended,
        )
        with telling(parts):
            fleet.run()
        return rows
