"""The command that does the whole cut-over: migrate."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options, plans
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import talk
from migrate_groups.cli.on_start import SECONDS_AFTER_GUARD, OnStart
from migrate_groups.cli.person import Person
from migrate_groups.cli.target_cluster import Copies, TargetCluster
from migrate_groups.cli.write_options import GivenOptions
from migrate_groups.cli.written import NOTHING_TO_UNDO
from migrate_groups.errors import MigrateGroupsError, PartlyApplied, UsageError
from migrate_groups.snapshots.times import parse_duration

if TYPE_CHECKING:
    from migrate_groups.files.split_toml import SplitFile
    from migrate_groups.migration.hand_over.migrate import MigrateRequest
    from migrate_groups.migration.result import WriteResult
    from migrate_groups.planning.plan import Plan

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
            help="A reviewed plan of --plan-out: refuse to write if groups, topics, partitions or options differ.",
        ),
    ] = None,
    wait: Annotated[
        str,
        typer.Option(
            "--wait",
            metavar="DURATION",
            help="How long to wait until the old group has stopped, and then for a mirror to deliver the last records.",
        ),
    ] = "10m",
    run_dir: Annotated[
        Path | None,
        typer.Option(
            "--run-dir",
            metavar="DIR",
            help="The folder for the plan, the receipt and what reconcile and audit need.",
            show_default="<SPEC>.run",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            "--rename",
            metavar="GROUP=NAME",
            help="Use another name for a group of the spec, for a rehearsal; may be repeated.",
        ),
    ] = None,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold",
            help="Join the stopped old group, so that no other consumer can join it until the guard is over. Only if "
            "no topic stays with the old group.",
        ),
    ] = False,
    on_start: Annotated[
        str | None,
        typer.Option(
            "--on-start",
            metavar="COMMAND",
            help="Run this command, without a shell, as soon as the new applications may start. It should start them "
            f"and return: it is awaited until {SECONDS_AFTER_GUARD:g} s after the guard. If it fails, or has not ended "
            "then, the exit code is 4. A re-run runs it again if no new group has started.",
        ),
    ] = None,
    yes: options.Yes = False,
    detailed_exitcode: plans.DetailedExitcode = False,
    force: plans.ForcePlan = False,
    write_options: GivenOptions,
    target: TargetCluster,
    copies: Copies,
    connection: Connection,
) -> None:
    """Hand a group's topics over to new groups: the whole cut-over in one command.

    It shows the plan and asks. Then it waits until the consumers have stopped, reads the committed offsets, checks
    them, writes them to the new groups, and reads them back with both clients. Then it watches the old group. Write
    options given here replace those of the spec.

    \b
    SPEC, for example:
      source = "orders"
      [[target]]
      group = "billing"
      topics = ["invoices", "payments.*"]
      [stay]
      topics = ["legacy.*"]

    With --to-bootstrap-server or --to-command-config, the new groups are on another cluster, to which a mirror copies
    the topics. Each offset becomes its exact place in the copy, which is found by the content of the records.

    Example: migrate-groups migrate split.toml --dry-run --bootstrap-server localhost:9092
    """  # noqa: D301  (\b keeps the lines of the sample apart)
    # Arrow's own memory pool takes 25 MB more for small tables (docs/kafka-behaviour.md#other-libraries). The variable
    # is set here, because pyarrow reads it when it is imported.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    plans.check_dry_run_options(plan_out, force=force, dry_run=dry_run, detailed=detailed_exitcode)
    from migrate_groups.files import split_toml
    from migrate_groups.files.runs import receipt_json
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.migration.hand_over.migrate import MigrateRequest, plan_migration
    from migrate_groups.migration.hand_over.migrate import migrate as hand_over

    copies.check(target)
    file = _renamed(split_toml.load(spec), rename)
    if not target.is_named:
        file.spec.check_other_groups()
    wanted = MigrateRequest(
        file=file,
        options=replace(file.options, **write_options.given(), accept_reread=copies.accept_reread),
        run=RunDir(run_dir) if run_dir else RunDir.beside(spec),
        wait=parse_duration(wait, "--wait"),
        hold=hold,
        approved=_approved(approved),
    )
    written_to = target.connection(connection) if target.is_named else connection
    launch = None if on_start is None else OnStart(on_start, wanted.run.folder)
    person = Person(yes=yes, output_format=output_format, plan_out=plan_out, force=force, on_start=launch)
    if dry_run:
        with copies.mirror_if_named(connection, target) as mirror, written_to.open_reader() as reader:
            prepared = plan_migration(reader, replace(wanted, mirror=mirror), SystemClock(), person)
        if prepared is None:
            person.show_receipt(receipt_json.load(wanted.run.receipt))
            return
        person.dry_run(prepared.plan, prepared.rows)
        _say_of_dry_run(prepared.plan, launch)
        approved_by = f"with --approved {shlex.quote(str(plan_out))}, and " if plan_out else ""
        plans.conclude_dry_run(
            prepared.plan, f"the same command {approved_by}without --dry-run", detailed=detailed_exitcode
        )
        return
    person.check_can_be_asked()
    try:
        with copies.mirror_if_named(connection, target) as mirror, written_to.open_writer() as clients:
            outcome = hand_over(clients, replace(wanted, mirror=mirror), SystemClock(), person)
    except MigrateGroupsError:
        if launch and (failure := launch.wait()):
            talk(failure)
        raise
    if outcome is None:
        person.show_receipt(receipt_json.load(wanted.run.receipt))
        return
    failure = launch.wait() if launch else ""
    try:
        person.show_result(outcome)
    except PartlyApplied as error:
        raise PartlyApplied(f"{error}; {failure}" if failure else str(error)) from None
    _say_what_is_next(wanted, outcome)
    if failure:
        raise PartlyApplied(
            f"{failure}; the offsets are written and confirmed: see which new applications run, and start the others "
            "by hand"
        )


def _say_of_dry_run(plan: Plan, launch: OnStart | None) -> None:
    if plan.verdict == "pending":
        talk("the offsets are provisional: the old group still moves")
    if launch is not None:
        talk(f"not run in a dry run: --on-start {launch.program}")


def _say_what_is_next(wanted: MigrateRequest, outcome: WriteResult) -> None:
    spec, folder = wanted.file.spec, shlex.quote(str(wanted.run.folder))
    groups = shlex.join(target.group for target in spec.targets)
    also = f": all of {spec.source} must stop for it" if spec.stay else ""
    talk(
        f"next: migrate-groups reconcile {folder}",
        f"later: migrate-groups snapshot {groups} -o later.parquet, reconcile {folder} later.parquet",
        NOTHING_TO_UNDO
        if outcome.execution.wrote_nothing
        else f"back: migrate-groups rollback {folder} (on the target cluster, before the new groups commit)"
        if outcome.execution.translation
        else f"back: migrate-groups rollback {folder} (before the new groups commit), hand-back {folder} (after{also})",
    )


def _approved(path: Path | None) -> tuple[str, Plan] | None:
    if path is None:
        return None
    from migrate_groups.files.runs import plan_json

    return str(path), plan_json.load(path).plan


def _renamed(file: SplitFile, renames: list[str] | None) -> SplitFile:
    pairs = [each.partition("=") for each in renames or []]
    wrong = ["".join(pair) for pair in pairs if not all(pair)]
    if wrong:
        raise UsageError(f"--rename {wrong[0]!r}; expected GROUP=NAME")
    return replace(file, spec=file.spec.renamed({old: new for old, _, new in pairs}))
