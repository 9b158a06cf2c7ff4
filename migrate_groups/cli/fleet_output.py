"""What the user sees of a fleet: what each group's terminal says, the progress, and the outcome of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from migrate_groups.cli import event_log, written
from migrate_groups.cli.console import confirm, show_as, speaker, talk
from migrate_groups.cli.terminal import Terminal
from migrate_groups.errors import ClusterUnavailable, InvalidInput, MigrateGroupsError, PartlyApplied, Refused
from migrate_groups.migration.events import not_known
from migrate_groups.text import brief, counted, some

if TYPE_CHECKING:
    from migrate_groups.clock import Clock
    from migrate_groups.migration.events import Done
    from migrate_groups.migration.hand_over.fleet import Part
    from migrate_groups.migration.write_result import WriteResult
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.run_states import Verb
    from migrate_groups.show.fleet import FleetDocument, FleetPart
    from migrate_groups.snapshots.row import Row

ERRORS = {
    each.exit_code: each for each in (MigrateGroupsError, InvalidInput, Refused, PartlyApplied, ClusterUnavailable)
}
_SAY_AGAIN = 10.0
_MOST_TOLD = 5


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
        from msgspec import structs

        from migrate_groups.migration.make_plan import refuse_forbidden
        from migrate_groups.planning.check import Verdict

        if plan is None:
            return self.row(part.error, done)
        try:
            refuse_forbidden(plan.refusals(at_the_write=False))
        except Refused as error:
            return self.row(error, "")
        row = self.row(part.error, str(plan.verdict), len(plan.to_write()))
        warnings = [f"{check.name}: {check.reason}" for check in plan.checks if check.verdict is Verdict.WARN]
        return structs.replace(row, reason=row.reason or brief("; ".join(warnings)) or None)

    def tell_end(self, part: Part[Any], row: FleetPart) -> None:
        """Say why the work has failed, if it has, and write the event ``done``. Called in the context of the part."""
        if part.error is not None:
            speaker.set(f"{self}: ")
            talk(*_told(part.error))
        _tell_done(row)


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

    def working(self, doing: str, done: Done = not_known) -> AbstractContextManager[None]:
        """Show nothing."""
        return nullcontext()

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


class FleetProgress:
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
    """Return what to print after an error of a group. Called in the context in which it was worked on."""
    see = written.status_command(error)
    lines = [f"error: {brief(str(error))}", written.meaning(error), see and f"see: {see}"]
    return [line for line in lines if line]


def row_of_result(named: Named, part: Part[WriteResult | None], moved: str, done: str) -> FleetPart:
    """Return the outcome of a write. moved: the verdict if it has written. done: if there was nothing left to do."""
    if part.result is None:
        return named.row(part.error, done)
    execution = part.result.execution
    return named.row(part.error, moved, len(execution.changes), execution.outage.seconds)


def _document(rows: Iterable[FleetPart], left_out: Mapping[str, str], *, dry_run: bool) -> FleetDocument:
    """Return the outcomes of a fleet, failures first. left_out: as in `FleetDocument`."""
    from migrate_groups.show.fleet import FleetDocument

    ordered = tuple(sorted(rows, key=lambda each: each.sort_key))
    return FleetDocument(dry_run=dry_run, groups=ordered, left_out=dict(left_out))


def _tell_done(row: FleetPart) -> None:
    """Write the event ``done`` of one group."""
    event_log.group_done(row.run_dir, row.group, row.exit_code, row.reason)


class FleetDialogue(NamedTuple):
    """What the user sees of a fleet before and after the work, and is asked.

    question: asked with the number of groups or runs, such as ``Hand over {}?``. thing: ``group`` or ``run``. left_out:
    as in `FleetDocument`.
    """

    output_format: str
    yes: bool
    question: str
    thing: str
    left_out: Mapping[str, str] = {}

    def show_plans(self, rows: Iterable[FleetPart], plans: Sequence[Plan], saved: Path | None, after: str) -> int:
        """Show the outcome of each plan of a dry run, and return the number of offsets to write.

        after: the command to type next. Raises an error with the most serious exit code if groups are refused.
        """
        shown = _document(rows, self.left_out, dry_run=True)
        show_as(
            self.output_format, shown.result(plans, saved.name if saved else None, "" if shown.exit_code else after)
        )
        _fail(shown)
        talk(f"next: {after}")
        return sum(each.offsets or 0 for each in shown.groups)

    def agreed(self, rows: Mapping[str, FleetPart], planned: Iterable[str]) -> list[str]:
        """Show the outcome of each plan, ask, and return those on which the work begins.

        planned: those that have a plan. Raises `Refused` if the user does not agree.
        """
        talk(_document(rows.values(), self.left_out, dry_run=True).result())
        due = [group for group in planned if not rows[group].exit_code]
        for group in rows.keys() - set(due):
            _tell_done(rows[group])
        if due and not (self.yes or confirm(self.question.format(counted(len(due), self.thing)))):
            raise Refused("the answer was no; nothing was written")
        return due

    def conclude(self, rows: Iterable[FleetPart], page: Callable[[FleetDocument], None] = lambda done: None) -> None:
        """Show the outcomes. page: writes a page of them.

        Raises an error with the most serious exit code if groups failed.
        """
        done = _document(rows, self.left_out, dry_run=False)
        page(done)
        # The command may still be interrupted, for instance while its clients close.
        show_as(self.output_format, done.result())
        _fail(done)


def _fail(found: FleetDocument) -> None:
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
