"""The command that does the whole cut-over: migrate."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from migrate_groups.api.operator import written_by
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options, plans, written
from migrate_groups.cli.application_commands import SECONDS_TO_START, ApplicationCommands
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.fleet import FleetCommand
from migrate_groups.cli.fleet_output import FleetTerminal
from migrate_groups.cli.hand_over import HandOver
from migrate_groups.cli.target_cluster import Copies, TargetCluster
from migrate_groups.cli.terminal import Terminal
from migrate_groups.cli.typed_command import without_dry_run
from migrate_groups.cli.write_options import GivenOptions
from migrate_groups.errors import UsageError
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import named, some

if TYPE_CHECKING:
    from migrate_groups.clock import Clock
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.files.split_toml import SplitFile
    from migrate_groups.migration.clusters import Mirror
    from migrate_groups.migration.hand_over.fleet import Part
    from migrate_groups.migration.hand_over.groups_to_move import Reviewed
    from migrate_groups.model.renames import Rename
    from migrate_groups.planning.translation import KeptOffsets

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="A TOML file that says which topics go to which group.")]


def migrate(
    spec: Spec,
    *,
    dry_run: options.DryRun = False,
    output_format: plans.FormatOption = "table",
    plan_out: plans.PlanOut = None,
    approved: Annotated[
        Path | None,
        typer.Option(
            "--approved",
            metavar="PLAN",
            rich_help_panel=options.REVIEW,
            help="A reviewed plan of --plan-out: refuse to write if groups, topics, partitions, or options that change "
            "what is written, differ.",
        ),
    ] = None,
    wait: Annotated[
        str,
        typer.Option(
            "--wait",
            metavar="DURATION",
            help="How long to wait until the old group has stopped. With a mirror, it also limits the wait for the "
            "mirror before the stop, and the one after it.",
        ),
    ] = options.WAIT,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            "--run-dir",
            metavar="RUN",
            help="The folder for the plan, the receipt and what reconcile and audit need.",
            show_default="<SPEC>.run",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            "--rename",
            metavar="OLD=NEW",
            rich_help_panel=options.REVIEW,
            help="Use another name for a group of the spec, for a rehearsal, such as orders=stage-orders or "
            "'*=stage-*'; may be repeated.",
        ),
    ] = None,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold",
            rich_help_panel=options.SAFETY,
            help="Join the stopped old group, so that no other consumer gets its partitions until the guard is over. "
            "Then watch the group again, as long as the guard. Only if no topic stays with the old group.",
        ),
    ] = False,
    stop_command: Annotated[
        str | None,
        typer.Option(
            "--stop-command",
            metavar="COMMAND",
            rich_help_panel=options.APPLICATIONS,
            help="Run this command, without a shell, once the plan is agreed and all checks but those of the stop have "
            "passed. It should stop the old applications and return within --wait; if it fails, nothing is written.",
        ),
    ] = None,
    start_command: Annotated[
        str | None,
        typer.Option(
            "--start-command",
            metavar="COMMAND",
            rich_help_panel=options.APPLICATIONS,
            help="Run this command, without a shell, as soon as the new applications may start. It should start them "
            f"and return: it is awaited until {SECONDS_TO_START:g} s after the guard. If it fails, or has not ended "
            "then, the exit code is 4. A re-run runs it again if no new group has started.",
        ),
    ] = None,
    restart_command: Annotated[
        str | None,
        typer.Option(
            "--restart-command",
            metavar="COMMAND",
            rich_help_panel=options.APPLICATIONS,
            help="With --stop-command: run this command, without a shell, if nothing was written after the stop. It "
            "should start the old applications again.",
        ),
    ] = None,
    app_principal: Annotated[
        list[str] | None,
        typer.Option(
            "--app-principal",
            metavar="[GROUP=]PRINCIPAL",
            rich_help_panel=options.APPLICATIONS,
            help="Check by Kafka's ACLs that this principal, such as User:billing, may read its new group and topics; "
            "may be repeated. Without GROUP it is the principal of all new groups.",
        ),
    ] = None,
    kept: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="KEPT",
            help="The old group's cluster is lost: start the new groups at the offsets in this .json file of compare "
            "-o. --bootstrap-server is then the new groups' cluster.",
        ),
    ] = None,
    yes: options.Yes = False,
    reference: options.Reference = "",
    events: options.Events = None,
    detailed_exitcode: plans.DetailedExitcode = False,
    force: plans.ForcePlan = False,
    write_options: GivenOptions,
    target: TargetCluster,
    copies: Copies,
    connection: Connection,
) -> None:
    """Hand a group's topics over to new groups: the whole cut-over in one command.

    It shows the plan and asks. Then it waits until the consumers have stopped, reads the committed offsets, checks
    them, writes them to the new groups, and reads them back. Then it watches the old group. Write options given here
    replace those of the spec.

    \b
    SPEC, for example:
      source = "orders"
      [[target]]
      group = "billing"
      topics = ["invoices", "payments.*"]
      [stay]
      topics = ["legacy.*"]

    With --to-bootstrap-server or --to-command-config, the new groups are on another cluster, to which a mirror copies
    the topics. Each offset is translated exactly to the offset in the copy, by the content of the records.

    A SPEC with groups = ["billing", "search-*"] hands over whole groups side by side: a fleet. On one cluster it names
    the new ones: rename = ["*=eu.*"]. --plan-out and --approved name a folder then.

    Example: migrate-groups migrate split.toml --dry-run --bootstrap-server localhost:9092
    """  # noqa: D301  (\b keeps the lines of the sample apart)
    # Arrow's own memory pool takes 25 MB more for small tables (docs/kafka-behaviour.md#other-libraries). The variable
    # is set here, because pyarrow reads it when it is imported.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from migrate_groups.files import split_toml
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.migration.hand_over.groups_to_move import WholeGroups
    from migrate_groups.migration.hand_over.prepared import MigrateRequest
    from migrate_groups.planning.checks.application import AppPrincipal

    if kept is None:
        copies.check(target)
    else:
        _check_alone(target, copies, {"--hold": hold, "--approved": approved, "--stop-command": stop_command})
    principals = [AppPrincipal.parse(each) for each in app_principal or []]
    rules, file = _rules(rename), split_toml.load_any(spec)
    run = RunDir(run_dir) if run_dir else RunDir.beside(spec)
    run.check_place()
    is_fleet = isinstance(file, split_toml.GroupsFile)
    if is_fleet and kept:
        raise UsageError("--from starts the groups of one old group: pass a spec with source, not with groups")
    if is_fleet and any(each.group for each in principals):
        raise UsageError("--app-principal: for a fleet name the principal without a group")
    plans.check_dry_run_options(
        None if is_fleet else plan_out, force=force, dry_run=dry_run, detailed=detailed_exitcode
    )
    given = write_options.given() | {
        "accept_reread": copies.accept_reread,
        "trust_copy": tuple(copies.trust_copy or ()),
    }
    seconds, by, clock = parse_duration(wait, "--wait"), written_by(reference), SystemClock()

    def hand_over(
        file: SplitFile, run: RunDir, reviewed: Reviewed | None, clock: Clock, part: Part[Any] | None = None
    ) -> HandOver:
        written.run.set(run.folder)
        wanted = MigrateRequest(
            file=replace(file, options=replace(file.options, **given)),
            run=run,
            wait=seconds,
            hold=hold,
            approved=reviewed,
            by=by,
            app_principals=principals,
        )
        terminal = (partial(FleetTerminal, part=part) if is_fleet else Terminal)(
            yes=yes or is_fleet,
            output_format=output_format,
            plan_out=None if is_fleet else plan_out,
            force=force,
            commands=ApplicationCommands.of(stop_command, start_command, restart_command, run.folder),
            events=events,
            sleep=clock.sleep,
        )
        return HandOver(wanted=wanted, terminal=terminal, clock=clock, kept=_kept(kept))

    mirror = copies.open_mirror(connection, target, writes=not dry_run) if target.is_named else nullcontext()
    written_to = target.connection(connection) if target.is_named else connection
    if isinstance(file, split_toml.SplitFile):
        one = hand_over(replace(file, spec=file.spec.renamed(rules)), run, _approved(approved), clock)
        if not target.is_named and kept is None:
            one.wanted.file.spec.check_other_groups()
        if dry_run:
            _dry_run(one, mirror, written_to, detailed=detailed_exitcode)
        else:
            _write(one, mirror, written_to)
        return
    fleet = FleetCommand(
        wanted=WholeGroups(file=file, renames=rules, reviewed=approved),
        run=run,
        plans=plan_out,
        hand_over=hand_over,
        clock=clock,
        yes=yes,
        stops=stop_command is not None,
        wait=seconds,
    )
    fleet.check(output_format, force=force)
    if not dry_run:
        Terminal(yes=yes).check_can_be_asked()
    with mirror as opened:
        if dry_run:
            fleet.dry_run(opened, written_to, output_format, detailed=detailed_exitcode)
        else:
            fleet.write(opened, written_to, output_format)


def _dry_run(
    one: HandOver, mirror: AbstractContextManager[Mirror | None], written_to: Connection, *, detailed: bool
) -> None:
    saved = one.terminal.plan_out
    with mirror as opened, written_to.open_reader() as reader:
        # The reader of a comment has the plan in a folder of their own.
        plan = one.across(opened).dry_run(reader, _after_dry_run(saved and Path(saved.name)))
    if plan is not None:
        plans.conclude_dry_run(plan, _after_dry_run(saved), detailed=detailed)


def _write(one: HandOver, mirror: AbstractContextManager[Mirror | None], written_to: Connection) -> None:
    one.terminal.check_can_be_asked()
    with mirror as opened, written_to.open_writer() as clients:
        outcome = one.across(opened).write(clients)
    one.conclude(outcome)


def _after_dry_run(saved: Path | None) -> str:
    return without_dry_run(*(("--approved", str(saved)) if saved else ()))


def _approved(path: Path | None) -> Reviewed | None:
    if path is None:
        return None
    from migrate_groups.files.runs import plan_json

    return str(path), plan_json.load(path).plan


def _kept(path: Path | None) -> KeptOffsets | None:
    if path is None:
        return None
    from migrate_groups.files import kept_offsets_json

    return kept_offsets_json.load(path)


def _check_alone(target: TargetCluster, copies: Copies, others: Mapping[str, object]) -> None:
    """Raise `UsageError` for options that do not go with ``--from``. others: some of them, with their values."""
    given = {"--to-bootstrap-server or --to-command-config": target.is_named, **others}
    given |= {"--rename-topic": copies.rename_topic, "--trust-copy": copies.trust_copy}
    if wrong := [option for option, value in given.items() if value]:
        raise UsageError(
            f"--from asks nothing of the old group's cluster: leave out {some(wrong)}, or unset its variable, and pass "
            "the new groups' cluster as --bootstrap-server"
        )


def _rules(renames: list[str] | None) -> list[Rename]:
    from migrate_groups.model.renames import Rename

    rules = [Rename.parse(each, "--rename") for each in renames or []]
    if twice := [old for old, count in Counter(each.old for each in rules).items() if count > 1]:
        raise UsageError(f"--rename is given more than once for {named('group', twice)}: give one name")
    return rules
