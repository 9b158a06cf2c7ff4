"""The command that does the whole cut-over: migrate."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options, plans
from migrate_groups.cli.connect import Connection, open_reader, open_writer
from migrate_groups.cli.console import talk
from migrate_groups.cli.person import Person, show_result
from migrate_groups.errors import UsageError
from migrate_groups.snapshots.times import parse_duration

if TYPE_CHECKING:
    from migrate_groups.files.split_toml import SplitFile
    from migrate_groups.migration.hand_over.migrate import MigrateRequest
    from migrate_groups.migration.result import WriteResult
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.planning.plan import Plan

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="The split: a TOML file.")]


def migrate(
    spec: Spec,
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    dry_run: options.DryRun = False,
    output_format: plans.FormatOption = "table",
    plan_out: plans.PlanOut = None,
    approved: Annotated[
        Path | None, typer.Option("--approved", metavar="PLAN", help="The plan that was reviewed.")
    ] = None,
    wait: Annotated[str, typer.Option("--wait", help="How long to wait for the old group's stop.")] = "10m",
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Default: <SPEC>.run beside the spec.")] = None,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", metavar="GROUP=NAME", help="Another name for a group: a rehearsal.")
    ] = None,
    on_existing: Annotated[
        Literal["refuse", "forward", "overwrite"] | None, typer.Option(help="Overrules the spec.")
    ] = None,
    uncommitted: Annotated[
        Literal["refuse", "earliest", "latest", "leave"] | None, typer.Option(help="Overrules the spec.")
    ] = None,
    out_of_range: Annotated[Literal["refuse", "earliest"] | None, typer.Option(help="Overrules the spec.")] = None,
    vanished: Annotated[Literal["refuse", "restore"] | None, typer.Option(help="Overrules the spec.")] = None,
    any_kind: plans.AnyKind = False,
    second_client: plans.SecondClientOption = None,
    hold: Annotated[
        bool, typer.Option("--hold", help="Keep everybody out of the stopped old group until the guard is over.")
    ] = False,
    settle: Annotated[str | None, typer.Option(help="Overrules the spec.")] = None,
    guard: Annotated[str | None, typer.Option(help="Overrules the spec.")] = None,
    yes: options.Yes = False,
    detailed_exitcode: plans.DetailedExitcode = False,
    force: plans.ForcePlan = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Do the whole cut-over in one process.

    Ask first, wait for the stop, snapshot, split, check, write, read back with both clients, watch the old group.

    Example: migrate-groups migrate split.toml --dry-run --bootstrap-server localhost:9092
    """
    # Arrow's own memory pool takes 25 MB more for small tables (docs/kafka-behaviour.md#other-libraries). The variable
    # is set here, because pyarrow reads it when it is imported.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    plans.check_dry_run_options(plan_out, force=force, dry_run=dry_run, detailed=detailed_exitcode)
    from migrate_groups.files import split_toml
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.migration.hand_over.migrate import MigrateRequest, plan_migration
    from migrate_groups.migration.hand_over.migrate import migrate as hand_over

    file = _renamed(split_toml.load(spec), rename)
    chosen = _overruled(
        file.options,
        on_existing=on_existing,
        uncommitted=uncommitted,
        out_of_range=out_of_range,
        vanished=vanished,
        any_kind=any_kind or None,
        second_client=second_client,
        settle=settle,
        guard=guard,
    )
    wanted = MigrateRequest(
        file=file,
        options=chosen,
        run=RunDir(run_dir) if run_dir else RunDir.beside(spec),
        wait=parse_duration(wait, "--wait"),
        hold=hold,
        approved=_approved(approved),
    )
    connection = Connection(bootstrap_server, command_config, properties, timeout)
    person = Person(yes=yes, output_format=output_format, plan_out=plan_out, force=force)
    if dry_run:
        with open_reader(connection) as reader:
            prepared = plan_migration(reader, wanted, SystemClock(), person)
        if prepared is not None:
            person.planned(prepared.plan, prepared.rows)
            if prepared.plan.verdict == "pending":
                talk("the offsets are provisional: the old group still moves")
            plans.conclude_dry_run(prepared.plan, detailed=detailed_exitcode)
        return
    person.check_can_be_asked()
    with open_writer(connection) as clients:
        outcome = hand_over(clients, wanted, SystemClock(), person)
    if outcome is not None:
        show_result(outcome, apart=output_format != "table")
        _say_what_is_next(wanted, outcome)


def _say_what_is_next(wanted: MigrateRequest, outcome: WriteResult) -> None:
    spec, folder = wanted.file.spec, shlex.quote(str(wanted.run.folder))
    groups = shlex.join(target.group for target in spec.targets)
    if outcome.execution.wrote_nothing:
        talk(
            "nothing was written: every offset was in place already, written by another run, whose receipt can undo it"
        )
    talk(
        f"next: migrate-groups reconcile {folder}",
        f"later: migrate-groups snapshot {groups} -o later.parquet, reconcile {folder} later.parquet",
        f"back: migrate-groups rollback {folder} (before the new groups commit), hand-back {folder} (after"
        + (f": all of {spec.source} must stop for it)" if spec.stay else ")"),
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


def _overruled(chosen: WriteOptions, *, settle: str | None, guard: str | None, **named: object) -> WriteOptions:
    changes: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    durations = {"settle": settle, "guard": guard}
    changes |= {name: parse_duration(text, f"--{name}") for name, text in durations.items() if text is not None}
    return replace(chosen, **changes)
