"""Hand over the groups of a fleet side by side, and show the outcome of each group, for the command ``migrate``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from migrate_groups.cli import event_log, written
from migrate_groups.cli.console import confirm, show_as, speaker, talk
from migrate_groups.cli.terminal import Terminal
from migrate_groups.cli.typed_command import without_dry_run
from migrate_groups.errors import (
    EXIT_CHANGES,
    ClusterUnavailable,
    InvalidInput,
    MigrateGroupsError,
    PartlyApplied,
    Refused,
    UsageError,
)
from migrate_groups.files.safe_write import new_folder
from migrate_groups.migration.progress_callbacks import in_silence
from migrate_groups.text import brief, counted, some

if TYPE_CHECKING:
    from migrate_groups.cli.connect import Connection
    from migrate_groups.cli.hand_over import HandOver
    from migrate_groups.clock import Clock
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.files.split_toml import SplitFile
    from migrate_groups.migration.across.mirror import Mirror
    from migrate_groups.migration.hand_over.fleet import Part
    from migrate_groups.migration.hand_over.groups_to_move import FoundGroups, WholeGroups
    from migrate_groups.migration.hand_over.prepared import Prepared
    from migrate_groups.migration.ports import Clients, GroupReader
    from migrate_groups.migration.progress_callbacks import Done
    from migrate_groups.migration.write_result import WriteResult
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.run_states import Verb
    from migrate_groups.show.fleet import FleetDocument, FleetPart
    from migrate_groups.snapshots.row import Row

ERRORS = {
    each.exit_code: each for each in (MigrateGroupsError, InvalidInput, Refused, PartlyApplied, ClusterUnavailable)
}
_SHOWN = "the plan shown before"
_SAY_AGAIN = 10.0
_MOST_TOLD = 5
Approved = tuple[str, "Plan"] | None
"""The name and the content of a reviewed plan; None: none was reviewed."""


class Named(NamedTuple):
    """A group of a fleet, its new group, and its run directory."""

    group: str
    target: str
    folder: Path

    def __str__(self) -> str:
        return self.group if self.target == self.group else f"{self.group} → {self.target}"

    def row(
        self, error: MigrateGroupsError | None, verdict: str, offsets: int = 0, outage: float | None = None
    ) -> FleetPart:
        """Return the outcome as it is shown. verdict, offsets, outage: if there is no error."""
        from migrate_groups.show.fleet import FleetPart, verdict_of

        return FleetPart(
            group=self.group,
            target=self.target,
            verdict=verdict_of(error.exit_code) if error else verdict,
            exit_code=error.exit_code if error else 0,
            offsets=None if error else offsets,
            outage=outage,
            reason=brief(str(error)) if error else None,
            run_dir=self.folder,
        )

    def row_of_plan(self, part: Part[Any], plan: Plan | None, done: str) -> FleetPart:
        """Return the outcome of a plan. done: the verdict if there is nothing left to plan."""
        from migrate_groups.migration.make_plan import refuse_forbidden

        if plan is None:
            return self.row(part.error, done)
        try:
            refuse_forbidden(plan.refusals(at_the_write=False))
        except Refused as error:
            return self.row(error, "")
        return self.row(part.error, str(plan.verdict), len(plan.to_write()))

    def tell_end(self, part: Part[Any], row: FleetPart) -> None:
        """Say why the work has failed, if it has, and write the event ``done``."""
        if part.error is not None:
            told = part.context.run(_told, part.error)
            talk(*(f"{self}: {line}" for line in told))
        tell_done(row)


@dataclass(slots=True, kw_only=True)
class FleetTerminal(Terminal):
    """What the user sees of one hand-over of a fleet: START, what failed, and what to look at.

    The plan, and the question, are about the whole fleet. part: the hand-over.
    """

    part: Part[WriteResult | None] | None = None  # None while only its plan is made

    def planned(self, plan: Plan, rows: Callable[[], Iterable[Row]]) -> None:
        """Show nothing, because the plan of the fleet is shown."""
        if self.part is None:
            self._tell_planned(plan)
        else:
            self._note_plan(plan)

    def doing(self, line: str) -> None:
        """Show nothing: the fleet says how many groups do what."""

    def working(self, doing: str, done: Done) -> AbstractContextManager[None]:
        """Show nothing."""
        return in_silence(doing, done)

    def read_back(self, verb: Verb, sources: Iterable[str], *, wrote: bool) -> None:
        """Say that the new group may start."""
        from migrate_groups.migration.hand_over.fleet import Phase

        if self.part is not None:
            self.part.phase = Phase.STARTED
        Terminal.read_back(self, verb, [*sources], wrote=wrote)

    def show_result(self, outcome: WriteResult) -> None:
        """Show the partitions that failed, if any. Raises `PartlyApplied` as for a single hand-over."""
        from migrate_groups.show import plan_result as views

        execution = outcome.execution
        self._tell_written(outcome)
        if execution.failed or execution.remarks:
            talk(views.execution(execution))
        outcome.check()
        self._tell_moved(outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCommand:
    """The command ``migrate`` for a fleet.

    - wanted: the groups.
    - run: the folder in which each group gets its own run directory.
    - plans: a new folder for the plans; None: no plan is saved.
    - hand_over: makes the hand-over of one group from its spec, its run directory, its reviewed plan, and its part in
      the fleet; None while only its plan is made.
    - yes: hand over without a question. stops: whether ``--stop-command`` stops the applications.
    - wait: seconds within which the groups must stop.
    """

    wanted: WholeGroups
    run: RunDir
    plans: Path | None
    hand_over: Callable[[SplitFile, RunDir, Approved, Part[Any] | None], HandOver]
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
            found, parts = self._planned(reader, mirror)
        shown = document(self._rows(found, parts).values(), found.left_out, dry_run=True)
        next_step = without_dry_run(*(("--approved", str(self.plans)) if self.plans else ()))
        plans = [part.result.plan for part in parts if part.result is not None]
        saved = None if self.plans is None else self.plans.name
        show_as(output_format, shown.result(plans, saved, "" if shown.exit_code else next_step))
        fail(shown)
        talk(f"next: {next_step}")
        if detailed and any(each.offsets for each in shown.groups):
            talk(f"exit {EXIT_CHANGES}: there are offsets to write")
            raise typer.Exit(EXIT_CHANGES)

    def write(self, mirror: Mirror | None, written_to: Connection, output_format: str) -> None:
        """Show the plans of all groups, ask, and hand over each group that is not refused.

        Raises the errors of `WholeGroups.find`, `Refused` if the user does not agree, and an error with the most
        serious exit code of a group if groups failed.
        """
        with self.run.made(), written_to.open_writer() as clients:
            found, planned = self._planned(clients.writer, mirror)
            rows = self._rows(found, planned)
            shown = document(rows.values(), found.left_out, dry_run=True)
            talk(shown.result())
            plans = {part.group: part.result for part in planned if part.result and not rows[part.group].exit_code}
            for group in rows.keys() - plans.keys():
                tell_done(rows[group])
            if plans and not (self.yes or confirm(f"Hand over {counted(len(plans), 'group')}?")):
                raise Refused("the answer was no; nothing was written")
            for group, prepared in plans.items():
                of_group = self.run.of_group(group)
                of_group.make()
                of_group.keep_baseline(prepared.reading.rows())
            rows |= self._handed_over(found, plans, clients, mirror)
        done = document(rows.values(), found.left_out, dry_run=False)
        # The command may still be interrupted, for instance while its clients close.
        show_as(output_format, done.result())
        fail(done)

    def _planned(self, reader: GroupReader, mirror: Mirror | None) -> tuple[FoundGroups, list[Part[Prepared | None]]]:
        """Return the groups, and the plan of each; None for a group that has been handed over and has started."""
        from migrate_groups.migration.hand_over.fleet import Part, work_on_each
        from migrate_groups.migration.reading.phase import for_one_phase

        # One phase for all plans, so that the topics of the cluster are read once.
        reader = for_one_phase(reader)
        if mirror is not None:
            mirror = mirror._replace(source=mirror.source._replace(groups=for_one_phase(mirror.source.groups)))
        found = self.wanted.find(mirror.source.groups if mirror else reader, elsewhere=mirror is not None)

        named = self._named(found)

        def plan(part: Part[Prepared | None], clock: Clock) -> Prepared | None:
            speaker.set(f"{named[part.group]}: ")
            group, reviewed = part.group, self._reviewed(part.group)
            one = self.hand_over(found.splits[group], self.run.of_group(group), reviewed, None)
            prepared = replace(one, clock=clock).prepared(reader, mirror)
            if prepared is not None:
                one.terminal.planned(prepared.plan, prepared.rows)
            return prepared

        parts = [Part["Prepared | None"](group) for group in found.splits]
        work_on_each(parts, plan, self.clock)
        if self.plans is not None:
            from migrate_groups.cli.plans import save_plan
            from migrate_groups.files.runs.run_dir import plan_of_group

            for part in parts:
                if part.result is not None:
                    plan_file = plan_of_group(self.plans, part.group)
                    save_plan(part.result.plan, part.result.rows, plan_file, force=False)
        return found, parts

    def _rows(self, found: FoundGroups, parts: Iterable[Part[Prepared | None]]) -> dict[str, FleetPart]:
        """Return the outcome of each plan."""
        from migrate_groups.show.fleet import STARTED

        named = self._named(found)
        return {
            part.group: named[part.group].row_of_plan(part, part.result.plan if part.result else None, STARTED)
            for part in parts
        }

    def _reviewed(self, group: str) -> Approved:
        if self.wanted.reviewed is None:
            return None
        from migrate_groups.files.runs import plan_json
        from migrate_groups.files.runs.run_dir import plan_of_group

        path = plan_of_group(self.wanted.reviewed, group)
        return str(path), plan_json.load(path).plan

    def _handed_over(
        self, found: FoundGroups, agreed: Mapping[str, Prepared], clients: Clients, mirror: Mirror | None
    ) -> dict[str, FleetPart]:
        """Hand over these groups, and return the outcome of each."""
        from migrate_groups.migration.hand_over.fleet import Fleet, Part
        from migrate_groups.migration.hand_over.migrate import Agreed
        from migrate_groups.show.fleet import STARTED

        parts = [Part["WriteResult | None"](group) for group in agreed]
        shown = _Progress(parts, self.clock, self.wait, self.wanted.file.limits.max_stopped, stops=self.stops)

        named = self._named(found)

        def work(part: Part[WriteResult | None], clock: Clock) -> WriteResult | None:
            speaker.set(f"{named[part.group]}: ")
            written.so_far.set("")
            group = part.group
            approved = self._reviewed(group) or (_SHOWN, agreed[group].plan)
            one = self.hand_over(found.splits[group], self.run.of_group(group), approved, part)
            one.terminal.sleep = clock.sleep
            before = Agreed(shown=agreed[group], topics=part.topics, ran_until=part.ran_until)
            one = replace(one, clock=clock, wanted=replace(one.wanted, agreed=before))
            outcome = one.write(clients, mirror)
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

    def _named(self, found: FoundGroups) -> dict[str, Named]:
        return {
            group: Named(group, split.spec.targets[0].group, self.run.of_group(group).folder)
            for group, split in found.splits.items()
        }


class _Progress:
    """Says on stderr how many groups of a fleet do what, at most every ten seconds."""

    def __init__(self, parts: list[Part[WriteResult | None]], clock: Clock, wait: float, most: int, *, stops: bool):
        self._parts, self._clock = parts, clock
        self._began, self._said_at, self._said = clock.monotonic(), -_SAY_AGAIN, ""
        if not stops and parts:
            from datetime import timedelta

            from migrate_groups.snapshots.times import span_in_words

            most_wait, groups = span_in_words(timedelta(seconds=wait)), counted(len(parts), "group")
            talk(
                f"waiting up to {most_wait} for {groups} to stop: stop their applications now, at most {most} groups "
                "at a time"
            )

    def tell(self) -> None:
        """Say it, if it has changed."""
        from migrate_groups.migration.hand_over.fleet import Phase

        now = self._clock.monotonic()
        counts = [f"{sum(part.phase is phase for part in self._parts)} {phase}" for phase in Phase]
        line = ", ".join(counts)
        if line != self._said and now - self._said_at >= _SAY_AGAIN:
            talk(f"{now - self._began:4.0f} s  {line}")
            self._said, self._said_at = line, now


def _told(error: MigrateGroupsError) -> list[str]:
    """Return what to print after an error of a group, in the context in which it was worked on."""
    see = written.status_command(error)
    lines = [f"error: {brief(str(error))}", written.meaning(error), see and f"see: {see}"]
    return [line for line in lines if line]


def row_of_result(named: Named, part: Part[WriteResult | None], moved: str, done: str) -> FleetPart:
    """Return the outcome of a write. moved: the verdict if it has written. done: if there was nothing left to do."""
    if part.result is None:
        return named.row(part.error, done)
    execution = part.result.execution
    return named.row(part.error, moved, len(execution.changes), execution.outage.seconds)


def document(rows: Iterable[FleetPart], left_out: Mapping[str, str], *, dry_run: bool) -> FleetDocument:
    """Return the outcomes of a fleet, failures first. left_out: as in `FleetDocument`."""
    from migrate_groups.show.fleet import FleetDocument

    ordered = tuple(sorted(rows, key=lambda each: each.sort_key))
    return FleetDocument(dry_run=dry_run, groups=ordered, left_out=dict(left_out))


def tell_done(row: FleetPart) -> None:
    """Write the event ``done`` of one group."""
    event_log.group_done(row.run_dir, row.group, row.exit_code, row.reason)


def fail(found: FleetDocument) -> None:
    """Raise an error with the most serious exit code if groups failed."""
    if code := found.exit_code:
        written.so_far.set("")  # the error says it
        goes_on = "" if found.dry_run else "; the same command goes on with them"
        raise ERRORS[code](f"{found.conclusion()}: see the reasons in the table{goes_on}")


@contextmanager
def telling(parts: Sequence[Part[WriteResult | None]]) -> Iterator[None]:
    """Set the message for an interrupt in or after the block: what was written to which groups."""
    try:
        yield
    except BaseException:  # an interrupt may come out as another error
        _tell_interrupted(parts)
        raise
    written.so_far.set("; ".join(_written(parts)))


def _tell_interrupted(parts: Iterable[Part[WriteResult | None]]) -> None:
    told: list[str] = []
    for part in parts:
        so_far: str = part.context.run(written.so_far.get)
        if so_far and part.result is None and part.error is None:
            told.append(f"group {part.group}: {so_far}")
    more = [f"{counted(len(told) - _MOST_TOLD, 'more group')} at work: run status"] if told[_MOST_TOLD:] else []
    written.so_far.set("; ".join([*told[:_MOST_TOLD], *more, *_written(parts)]) or written.NOTHING)


def _written(parts: Iterable[Part[WriteResult | None]]) -> list[str]:
    """Return a text that names the groups that are handed over, and one that names those that are incomplete."""
    done = [part.group for part in parts if part.result is not None and part.error is None]
    partly = [part.group for part in parts if isinstance(part.error, PartlyApplied)]
    return [f"{what}: {some(which)}" for what, which in (("done before", done), ("incomplete", partly)) if which]
