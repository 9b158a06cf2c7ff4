"""Show the user at the command line what a running command reports, and ask whether to write."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate_groups.cli import written
from migrate_groups.cli.application_commands import BY_HAND, SECONDS_TO_START, ApplicationCommands
from migrate_groups.cli.console import confirm, show, show_as, talk
from migrate_groups.cli.json_output import print_document
from migrate_groups.cli.plans import PlanFormat, Rows, save_plan
from migrate_groups.cli.progress import Reporter
from migrate_groups.errors import Refused, UsageError
from migrate_groups.planning.written_by import NOT_KNOWN, WrittenBy
from migrate_groups.text import counted, shell_command, some

if TYPE_CHECKING:
    from migrate_groups.cli.event_log import EventLog
    from migrate_groups.migration.write_result import WriteResult
    from migrate_groups.model.groups import ObservedGroup
    from migrate_groups.planning.change import Change
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.planned_stop import PlannedStop
    from migrate_groups.planning.receipt import Receipt
    from migrate_groups.planning.run_states import Verb
    from migrate_groups.show.event import EventName
    from migrate_groups.show.result import Result
    from migrate_groups.snapshots.snapshot import SnapshotTable

_SAY_AGAIN = 15.0


@dataclass(slots=True, kw_only=True)
class Terminal(Reporter):
    """The user at the command line: shows what a running command reports, and asks.

    - yes: write without a question.
    - output_format: how plans and outcomes are shown.
    - plan_out: the file for the plan; None: the plan is not saved.
    - force: replace the file ``plan_out`` if it exists.
    - commands: stop and start the applications; by default the user does it.
    - write: the verb with which the question begins, such as ``Write`` or ``Restore``.
    - start: what the user may do after a hand-over from source groups.
    - old_may_start: whether the old applications may start after the write, so that the plan says after how long.
    - by: who writes, and why.
    - events: where each event is written as well; None: nowhere.
    - sources: the groups that hand over, as far as the plan does not name them.
    - sleep: waits between two looks at a running command; an error that it raises ends the wait.
    """

    yes: bool = False
    output_format: PlanFormat = "table"
    plan_out: Path | None = None
    force: bool = False
    commands: ApplicationCommands = BY_HAND
    write: str = "Write"
    start: str = "START THE NEW GROUPS NOW"
    old_may_start: bool = False
    by: WrittenBy = NOT_KNOWN
    events: EventLog | None = None
    sources: Collection[str] = ()
    sleep: Callable[[float], object] = time.sleep
    _targets: Collection[str] = field(default=(), init=False)
    _offsets: int | None = field(default=None, init=False)
    _stop: PlannedStop | None = field(default=None, init=False)
    _may_restart: bool = field(default=False, init=False)
    _lingers_said: bool = field(default=False, init=False)
    _told: tuple[Mapping[str, list[str]], float] | None = field(default=None, init=False)

    def check_can_be_asked(self) -> None:
        """Raise `UsageError` if stdin is not a terminal and ``--yes`` was not passed."""
        if not (self.yes or sys.stdin.isatty()):
            raise UsageError("stdin is not a terminal: pass --yes to write, or --dry-run to look")

    def _tell(self, event: EventName, **state: Any) -> None:
        """Write an event to ``--events``, if given. state: the fields of `EventDocument` that are known."""
        if self.events is not None:
            groups = {"source_groups": tuple(sorted(self.sources)), "target_groups": tuple(sorted(self._targets))}
            self.events.tell(event, run=written.run.get(), **groups, **state)

    def stop_planned(self, stop: PlannedStop) -> None:
        """Store which members of the source group must stop, to show them with the plan and the question."""
        self._stop = stop

    def planned(self, plan: Plan, rows: Rows) -> None:
        """Show the plan before a write, and save it if ``plan_out`` is set.

        With the output format ``json``, the plan is shown as a table on stderr.
        """
        shown = self._saved(plan, rows)
        if self.output_format == "json":
            talk(shown)
        else:
            show_as(self.output_format, shown)

    def dry_run(self, plan: Plan, rows: Rows, command: str = "") -> None:
        """Show the plan of a dry run on stdout, and save it if ``plan_out`` is set.

        command: what to type next, for a comment.
        """
        shown = self._saved(plan, rows, command)
        if self.output_format == "json":
            from migrate_groups.files.runs import plan_json

            print_document(plan_json.to_bytes(plan, rows()))
        else:
            show_as(self.output_format, shown)
        if self._stop is not None and plan.verdict == "pending":
            talk("the offsets are provisional: the old group still moves")
        for each in self.commands.given:
            talk(f"not run in a dry run: {each.option} {each.program}")

    def _note_plan(self, plan: Plan) -> None:
        """Store what later events name."""
        self.sources = plan.source_groups or self.sources
        self._targets = {change.group for change in plan.changes}
        self._offsets = len(plan.changes)

    def _saved(self, plan: Plan, rows: Rows, command: str = "") -> Result:
        """Save the plan if ``plan_out`` is set, tell ``--events`` of it, and return it as a result to show."""
        from migrate_groups.show import plan_result as views

        save_plan(plan, rows, self.plan_out, force=self.force)
        self._tell_planned(plan)
        return views.plan(plan, self._notes(plan), self.plan_out.name if self.plan_out else None, command)

    def _tell_planned(self, plan: Plan) -> None:
        self._note_plan(plan)
        self._tell(
            "planned",
            verdict=str(plan.verdict),
            reasons=tuple(f"{check.name}: {check.reason}" for check in plan.refusals(at_the_write=True)),
            offsets=len(plan.to_write()),
            seconds=sum(self._stop.parts.values()) if self._stop else None,
        )

    def agrees(self, plan: Plan, *, provisional: bool) -> bool:
        """Ask on stderr whether to write the plan, and return the answer. If ``yes`` is set, return True."""
        if not (self.yes or self._confirms(plan)):
            return False
        # Not yet that the old applications may go on, because another run may be handing over their topics.
        written.so_far.set(written.NOTHING)
        return True

    def stop_agreed(self, stop: PlannedStop) -> None:
        """Run the command of ``--stop-command``, if given, and wait for its end.

        Raises `Refused` if it fails, or has not ended when the wait for the stop would be over.
        """
        self._tell("waiting")
        # If an earlier run has written, a target group may have started, so the old applications must stay stopped.
        if not stop.resumed:
            written.so_far.set(
                f"{written.NOTHING}; the old applications may go on, or start again, unless a new one has run"
            )
        command = self.commands.stop
        if command is None:
            return
        from migrate_groups.files.runs import stop_json
        from migrate_groups.files.runs.run_dir import RunDir

        file = RunDir(command.run_dir).stop
        topics = ",".join(sorted(stop.moved or ()))
        talk(f"stopping the old applications: {command.program}")
        # If an earlier run has written, a target group may have started.
        self._may_restart = not stop.resumed
        if self._may_restart:
            written.so_far.set(f"{written.NOTHING}; {command.option} has run: start the old applications again")
        stop_json.save(stop, file)
        command.start({"GROUP": stop.source.group, "TOPICS": topics, "STOP_FILE": str(file.absolute())})
        command.wait(stop.wait, self.sleep)
        if command.failure:
            raise Refused(f"{command.failure}; nothing was written")

    def restart_if_not_written(self) -> None:
        """Run the command of ``--restart-command``, if given, if ``--stop-command`` has run and no run has written.

        While the latter still runs, it would stop again what the former starts.
        """
        command = self.commands.restart
        if command is None or not self._may_restart:
            return
        if self.commands.stop is not None and self.commands.stop.is_running:
            talk(f"{self.commands.stop.option} still runs: START THE OLD APPLICATIONS by hand, once it has ended")
            return
        talk(f"nothing was written; starting the old applications again: {command.program}")
        command.start()
        command.wait(SECONDS_TO_START, self.sleep)
        if command.failure:
            talk(f"{command.failure}: START THE OLD APPLICATIONS NOW, by hand")
        else:
            written.so_far.set(f"{written.NOTHING}; {command.option} has started the old applications again")

    def still_running(
        self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float
    ) -> None:
        """Print on stderr why groups that must stop still run: at each change, and every 15 s.

        What a killed member means is said once.
        """
        from migrate_groups.planning.checks.source import LINGERS

        running = {group: why for group, why in reasons.items() if why}
        self.sources = self.sources or tuple(reasons)
        if self._told is None or self._told[0] != running or seconds - self._told[1] >= _SAY_AGAIN:
            for line in (f"{seconds:4.0f} s  {group} {reason}" for group, why in running.items() for reason in why):
                talk(line.replace(f"; {LINGERS}", "") if self._lingers_said else line)
                self._lingers_said |= LINGERS in line
            if running:
                self._tell(
                    "waiting", reasons=tuple(f"{group} {each}" for group, why in running.items() for each in why)
                )
            else:
                self._tell("stopped", seconds=round(seconds, 3))
            self._told = running, seconds

    def writing(self, told_by: str) -> None:
        """Store a sentence that says where to see what was written. It is printed if the command fails."""
        written.so_far.set(told_by)
        self._may_restart = False

    def would_delete(self, groups: Mapping[str, SnapshotTable]) -> None:
        """Show the committed offsets that will be deleted with these groups, and the command that saves these offsets.

        With the output format ``json``, the offsets are shown on stderr.
        """
        from migrate_groups.show.short_results import committed

        self._targets = groups
        self._tell("planned", offsets=sum(map(len, groups.values())))
        for group, going in groups.items():
            self._show_text(f"group {group}", committed(list(going.rows())))
            talk(f"to delete with group {group}: {counted(len(going), 'committed offset')}")
        talk(f"to keep them: migrate-groups {shell_command('snapshot', groups, '-o kept.csv')}")

    def ask_to_delete(self, groups: Sequence[str]) -> None:
        """Ask on stderr whether to delete the groups, unless ``yes`` is set. Raises `Refused` if not."""
        named = f"group {groups[0]}" if len(groups) == 1 else f"{counted(len(groups), 'group')} ({some(groups)})"
        if not (self.yes or confirm(f"Delete {named}?")):
            raise Refused("the answer was no; nothing was deleted")

    def deleted(self, group: str) -> None:
        """Print that a group was deleted: on stdout, or on stderr if the output format is not ``table``."""
        self._targets = [group]
        self._tell("written")
        self._show_text(f"deleted: {group}")

    def read_back(self, verb: Verb, sources: Collection[str], *, wrote: bool) -> None:
        """Print that all offsets are written and read back, or were in place, and which applications may start now.

        After a hand-over, also start the command of ``--start-command``, if given.
        """
        from migrate_groups.planning.run_states import Verb

        self._tell("written", offsets=self._offsets, not_confirmed=0)
        if verb is not Verb.DELETE_OFFSETS:
            self._tell("START")
        launch = self.commands.start if verb is Verb.HAND_OVER else None
        running = "; --start-command may still be running" if launch else ""
        written.so_far.set(f"all offsets are written and read back{running}; {written.so_far.get()}")
        done = "written and read back"
        if not wrote:
            done = "handed over already" if verb is Verb.HAND_OVER and sources else "every offset was in place already"
            done += ", nothing was written"
        if launch:
            talk(f"{done}; starting the new groups: {launch.program}")
            launch.start()
            if launch.failure:
                talk(f"{launch.failure}: START THE NEW GROUPS NOW, by hand")
        else:
            start = ""
            if verb is Verb.HAND_OVER:
                start = f": {self.start}" if sources else ": START THE APPLICATIONS NOW"
            elif sources and verb in (Verb.ROLLBACK, Verb.HAND_BACK):
                start = ": START THE OLD APPLICATIONS NOW"
            talk(f"{done}{start}")

    def doing(self, line: str) -> None:
        """Print the line."""
        self.said(line)

    def _notes(self, plan: Plan) -> list[str]:
        """Return the sentences above a plan: who must stop, and after how long applications may start."""
        from migrate_groups.show import planned_stop

        if self._stop is not None:
            return [*planned_stop.who(self._stop), planned_stop.how_long(self._stop)]
        is_refused = bool(plan.refusals(at_the_write=False))
        return [planned_stop.until_old_may_start(plan)] if self.old_may_start and not is_refused else []

    def ending(self) -> None:
        """Wait for the command of ``--start-command``, if it has been started."""
        if self.commands.start is not None:
            self.commands.start.wait(SECONDS_TO_START, self.sleep)

    def _confirms(self, plan: Plan) -> bool:
        from migrate_groups.show import planned_stop

        changes = plan.to_write()
        if self._stop is None:
            return confirm(f"{self._in_words(changes)}?")
        if self._stop.must_stop:  # the plan has said this, but its table may be long
            talk(*planned_stop.who(self._stop))
        return confirm(planned_stop.question(self._stop, counted(len(changes), "offset")))

    def _in_words(self, changes: Sequence[Change]) -> str:
        """Return what a write does, such as ``Restore 2 offsets in big and delete 3 offsets in billing``."""
        kept = [change for change in changes if change.after is not None]
        gone = [change for change in changes if change.after is None]
        parts = [
            f"{word} {counted(len(part), 'offset')} in {some({change.group for change in part})}"
            for word, part in ((self.write, kept), ("delete" if kept else "Delete", gone))
            if part
        ]
        return " and ".join(parts) or f"{self.write} 0 offsets"

    def show_result(self, outcome: WriteResult) -> None:
        """Show the outcome of a write, and the path of the receipt that records the write.

        With another output format than ``table``, the outcome goes to stderr. Raises `PartlyApplied` if the write
        is not complete, or if a group that must have stopped still consumes.
        """
        from migrate_groups.show import plan_result as views

        self._tell_written(outcome)
        talk(f"receipt: {outcome.path}")
        self._show_text(views.execution(outcome.execution))
        self.show_receipt(outcome.receipt)
        outcome.check()
        self._tell_moved(outcome)

    def _tell_written(self, outcome: WriteResult) -> None:
        if failed := len(outcome.execution.failed):
            self._tell("written", offsets=len(outcome.execution.changes) - failed, not_confirmed=failed)

    def _tell_moved(self, outcome: WriteResult) -> None:
        self._tell("moved", offsets=self._offsets, seconds=outcome.execution.outage.seconds)

    def show_receipt(self, receipt: Receipt) -> None:
        """Print the receipt (the record of a write) on stdout if the output format is ``json``."""
        if self.output_format == "json":
            from migrate_groups.files.runs import receipt_json

            print_document(receipt_json.to_bytes(receipt))

    def _show_text(self, *lines: str | Result) -> None:
        (show if self.output_format == "table" else talk)(*lines)
