"""Run one hand-over (target groups take over topics of a source group) for the command ``migrate``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate_groups.cli.console import talk
from migrate_groups.cli.written import NOTHING_TO_UNDO
from migrate_groups.errors import MigrateGroupsError, PartlyApplied
from migrate_groups.text import shell_command, some

if TYPE_CHECKING:
    from migrate_groups.cli.terminal import Terminal
    from migrate_groups.clock import Clock
    from migrate_groups.migration.clusters import Mirror
    from migrate_groups.migration.hand_over.fail_over import FailOver
    from migrate_groups.migration.hand_over.prepared import MigrateRequest, Prepared
    from migrate_groups.migration.ports import Clients, GroupReader
    from migrate_groups.migration.write_result import WriteResult
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.translation import KeptOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """A hand-over: target groups take over topics of a source group, with its committed offsets.

    wanted: the input of the hand-over. terminal: shows texts to the user, and asks before the write. kept: the offsets
    to write if the source group's cluster is lost.
    """

    wanted: MigrateRequest
    terminal: Terminal
    clock: Clock
    kept: KeptOffsets | None = None

    def across(self, mirror: Mirror | None) -> HandOver:
        """Return the same hand-over with a mirror that was opened since; None if all groups are on one cluster."""
        return replace(self, wanted=replace(self.wanted, mirror=mirror))

    def dry_run(self, reader: GroupReader, command: str = "") -> Plan | None:
        """Show the plan of the hand-over, and return it.

        command: what to type next, for a comment. If an earlier run has written the offsets and a target group has
        started, show the record of that run and return None, or raise `PartlyApplied` if the source group still
        consumes. Raises `Refused`, `UsageError` or `InvalidInput` if no plan is possible.
        """
        prepared: Prepared | FailOver | None
        if self.kept is not None:
            from migrate_groups.migration.hand_over.fail_over import plan_fail_over

            prepared = plan_fail_over(reader, self.wanted, self.kept, self.clock, self.terminal)
        else:
            prepared = self.prepared(reader)
        if prepared is None:
            self._show_receipt()
            return None
        self.terminal.dry_run(prepared.plan, prepared.rows, command)
        return prepared.plan

    def prepared(self, reader: GroupReader) -> Prepared | None:
        """Return the plan of the hand-over and its facts; None if it is over. Raises the errors of `plan_migration`."""
        from migrate_groups.migration.hand_over.migrate import plan_migration

        return plan_migration(reader, self.wanted, self.clock, self.terminal)

    def write(self, clients: Clients) -> WriteResult | None:
        """Write the offsets to the target groups, and return the result.

        If an earlier run has written the offsets and a target group has started, return None, or raise `PartlyApplied`
        if the source group still consumes. Raises `Refused`, `UsageError` or `InvalidInput` if the hand-over is not
        possible. Each of these errors means that this call wrote nothing.
        """
        from migrate_groups.migration.hand_over.migrate import migrate

        if self.kept is not None:
            from migrate_groups.migration.hand_over.fail_over import fail_over

            return fail_over(clients, self.wanted, self.kept, self.clock, self.terminal)
        launch = self.terminal.commands.start
        try:
            return migrate(clients, self.wanted, self.clock, self.terminal)
        except MigrateGroupsError:
            if launch and launch.failure:
                talk(launch.failure)
            self.terminal.restart_if_not_written()
            raise

    def conclude(self, outcome: WriteResult | None) -> None:
        """Show the result of `write`, and print the next commands.

        outcome: the result of `write`. If None, only the receipt is shown, which records the earlier run that wrote the
        offsets. Raises `PartlyApplied` if the write is not complete, if the source group still consumes, or if the
        command of ``--start-command`` failed.
        """
        if outcome is None:
            self._show_receipt()
            return
        self.show_result(outcome)
        self._say_what_is_next(outcome)
        self.check_started()

    def show_result(self, outcome: WriteResult) -> None:
        """Show the result of `write`. Raises `PartlyApplied` as the terminal does, and names a failed start as well."""
        try:
            self.terminal.show_result(outcome)
        except PartlyApplied as error:
            failure = self._failure_of_start
            raise PartlyApplied(f"{error}; {failure}" if failure else str(error)) from None

    def check_started(self) -> None:
        """Raise `PartlyApplied` if the command of ``--start-command`` failed."""
        if failure := self._failure_of_start:
            raise PartlyApplied(
                f"{failure}; the offsets are written and read back: see which new applications run, and start the "
                "others by hand"
            )

    @property
    def _failure_of_start(self) -> str:
        launch = self.terminal.commands.start
        return launch.failure if launch else ""

    def _show_receipt(self) -> None:
        from migrate_groups.files.runs import receipt_json

        self.terminal.show_receipt(receipt_json.load(self.wanted.run.receipt))

    def _say_what_is_next(self, outcome: WriteResult) -> None:
        spec, folder = self.wanted.file.spec, str(self.wanted.run.folder)
        later = shell_command("snapshot", [target.group for target in spec.targets], "-o later.parquet")
        rollback, hand_back = shell_command("rollback", [folder]), shell_command("hand-back", [folder])
        also = f": all of {spec.source} must stop for it" if spec.stay else ""
        if spec.share_groups:
            talk(
                f"next: migrate-groups {shell_command('audit', [folder])} (late commits of {spec.source}; exit code 7, "
                "because a share group commits nothing to the log)",
                NOTHING_TO_UNDO
                if outcome.execution.wrote_nothing
                else f"back: migrate-groups {rollback} (before a member joins {some(spec.share_groups)}, never after)",
            )
            return
        is_move = outcome.execution.translation is not None
        if is_move:
            later += " with --bootstrap-server of the new groups' cluster"
        talk(
            f"next: migrate-groups {shell_command('reconcile', [folder])}",
            f"later: migrate-groups {later}; migrate-groups {shell_command('reconcile', [folder, 'later.parquet'])}",
            NOTHING_TO_UNDO
            if outcome.execution.wrote_nothing
            else f"back: migrate-groups {rollback} (before the new groups commit)"
            if outcome.execution.is_fail_over or outcome.execution.options.copy
            else f"back, with both clusters: migrate-groups {rollback} (before new groups commit), {hand_back} (after)"
            if is_move
            else f"back: migrate-groups {rollback} (before the new groups commit), {hand_back} (after{also})",
        )
