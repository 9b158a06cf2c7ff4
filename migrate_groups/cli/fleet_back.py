"""Roll back, hand back, or delete the old offsets of all runs of a fleet, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate_groups.cli import written
from migrate_groups.cli.console import speaker
from migrate_groups.cli.fleet_output import FleetDialogue, FleetTerminal, Named, row_of_result, telling
from migrate_groups.cli.typed_command import without_dry_run
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.text import some

if TYPE_CHECKING:
    from migrate_groups.cli.terminal import Terminal
    from migrate_groups.clock import Clock
    from migrate_groups.migration.clusters import Clusters
    from migrate_groups.migration.hand_over.fleet import Part
    from migrate_groups.migration.ports import Clients, GroupReader
    from migrate_groups.migration.write_result import WriteResult
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.run_states import Verb

_DONE = "done"
_PAST = {"rollback": "rolled back", "hand-back": "handed back", "delete-offsets": "deleted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetBack:
    """A way back of all runs of a fleet.

    - runs: the run directories.
    - terminal: has the options of the command.
    - wait: seconds that a hand-back waits for the groups to stop.
    """

    verb: Verb
    runs: Sequence[RunDir]
    terminal: Terminal
    clock: Clock
    wait: float = 0.0

    def dry_run(self, opened: AbstractContextManager[Clusters[GroupReader]]) -> None:
        """Show the plan of each run. Raises an error with the most serious exit code if runs are refused."""
        with opened as readers:
            named, plans = self._planned(readers)
        rows = [named[part.group].row_of_plan(part, part.result, _DONE) for part in plans]
        self._dialogue.show_plans(rows, [part.result for part in plans if part.result], None, without_dry_run())

    def write(self, opened: AbstractContextManager[Clusters[Clients]]) -> None:
        """Show the plan of each run, ask, and carry out those that are not refused.

        Raises `Refused` if the user does not agree, and an error with the most serious exit code if runs failed.
        """
        from migrate_groups.migration.clusters import writers
        from migrate_groups.migration.hand_over.fleet import MOST_AT_WORK, Part, work_on_each

        with opened as clusters:
            named, plans = self._planned(writers(clusters))
            rows = {part.group: named[part.group].row_of_plan(part, part.result, _DONE) for part in plans}
            due = self._dialogue.agreed(rows, [part.group for part in plans if part.result is not None])

            def carry_out(part: Part[WriteResult | None], clock: Clock) -> WriteResult | None:
                return self._carry_out(clusters, named[part.group], clock)

            def ended(part: Part[WriteResult | None]) -> None:
                row = rows[part.group] = row_of_result(named[part.group], part, _PAST[self.verb.value], _DONE)
                named[part.group].tell_end(part, row)

            parts = [Part["WriteResult | None"](run) for run in due]
            with telling(parts):
                work_on_each(parts, carry_out, self.clock, MOST_AT_WORK, ended)
        self._dialogue.conclude(rows.values())

    @property
    def _dialogue(self) -> FleetDialogue:
        return FleetDialogue(self.terminal.output_format, self.terminal.yes, "Write the offsets of {}?", "run")

    def _planned(self, clusters: Clusters[GroupReader]) -> tuple[dict[str, Named], list[Part[Plan | None]]]:
        """Return the runs by the name of their folder, and the plan of each; None if nothing is left to do."""
        from migrate_groups.files.runs.receipt_file import open_receipt
        from migrate_groups.migration.hand_over.fleet import Part, work_on_each
        from migrate_groups.migration.ways_back.go_back import left_to_do

        # Only the folder, until the receipt is read. An invalid receipt is the outcome of its run.
        named = {run.folder.name: Named(run.folder.name, run.folder.name, run.folder) for run in self.runs}

        def plan(part: Part[Plan | None], clock: Clock) -> Plan | None:
            folder = named[part.group].folder
            with open_receipt(RunDir(folder).receipt, read_only=True, must_exist=True) as file:
                targets = {group for group, *_ in file.receipt.partition_states}
                one = named[part.group] = Named(some(file.receipt.source_groups), some(targets), folder)
                return left_to_do(clusters, self.verb, file, clock, self._terminal(one))

        return named, [*work_on_each([Part["Plan | None"](run) for run in named], plan, self.clock)]

    def _carry_out(self, clusters: Clusters[Clients], one: Named, clock: Clock) -> WriteResult | None:
        from migrate_groups.files.runs.receipt_file import open_receipt
        from migrate_groups.migration.ways_back.go_back import go_back
        from migrate_groups.migration.write_result import result_of

        terminal = self._terminal(one)
        with open_receipt(RunDir(one.folder).receipt, must_exist=True, by=terminal.by) as file:
            execution = go_back(clusters, self.verb, file, clock, terminal, wait=self.wait)
            if execution is None:
                return None
            result = result_of(execution, file)
            terminal.show_result(result)
            return result

    def _terminal(self, one: Named) -> FleetTerminal:
        """Return what the user sees of one run. Called in the thread that works on it."""
        speaker.set(f"{one}: ")
        written.run.set(one.folder)
        written.so_far.set("")
        given = self.terminal
        return FleetTerminal(yes=True, output_format=given.output_format, by=given.by, events=given.events)
