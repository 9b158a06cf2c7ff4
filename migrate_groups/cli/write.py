"""Commands that write to a cluster: apply."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from migrate_groups.cli import options, plans
from migrate_groups.cli.connect import Connection, open_reader, open_writer
from migrate_groups.cli.console import SystemClock
from migrate_groups.cli.writing import Journal, agree, carry_out, check_can_ask, finish
from migrate_groups.errors import UsageError
from migrate_groups.offsets.times import parse_duration

if TYPE_CHECKING:
    from migrate_groups.cli.plans import PlanInput
    from migrate_groups.cluster.ports import GroupWriter
    from migrate_groups.cluster.witness import Witness
    from migrate_groups.plan.plan import Plan
    from migrate_groups.plan.receipt import Receipt

    ShowPlan = Callable[[Plan], None]


def apply(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A snapshot (.csv, .parquet), a kafka-consumer-groups CSV, a plan (.json), or - for stdin.",
        ),
    ],
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    to_group: Annotated[list[str] | None, typer.Option("--to-group", help="Write to this group.")] = None,
    fan_out: Annotated[bool, typer.Option("--fan-out", help="Allow several --to-group: each gets all.")] = False,
    restore: Annotated[bool, typer.Option("--restore", help="Write a group's snapshot back to itself.")] = False,
    dry_run: options.DryRun = False,
    output_format: plans.FormatOption = "table",
    plan_out: plans.PlanOut = None,
    detailed_exitcode: plans.DetailedExitcode = False,
    receipt: Annotated[Path | None, typer.Option("--receipt", help="Default: <FILE>.receipt.json.")] = None,
    on_existing: Annotated[
        Literal["refuse", "forward", "overwrite"] | None,
        typer.Option(help="What a target's other offsets mean.", show_default="refuse"),
    ] = None,
    uncommitted: Annotated[
        Literal["refuse", "start", "leave"] | None,
        typer.Option(help="What partitions without a commit get; end is for migrate alone.", show_default="refuse"),
    ] = None,
    out_of_range: Annotated[
        Literal["refuse", "start"] | None,
        typer.Option(help="What becomes of offsets below the log's start.", show_default="refuse"),
    ] = None,
    vanished: Annotated[
        Literal["refuse", "restore"] | None,
        typer.Option(help="What an old group's commits mean that have expired since.", show_default="refuse"),
    ] = None,
    any_kind: plans.AnyKind = False,
    witness: plans.WitnessOption = None,
    settle: Annotated[
        str | None,
        typer.Option(help="How long the old group must be quiet, for instance 10s; 0s is none.", show_default="10s"),
    ] = None,
    guard: Annotated[
        str | None, typer.Option(help="How long the old group is watched afterwards.", show_default="30s")
    ] = None,
    yes: options.Yes = False,
    force: plans.ForcePlan = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Write offsets to groups: plan, check, ask, read back.

    FILE may be a plan that a dry run saved: then exactly that is written, or nothing where it is stale.

    Example: migrate-groups apply split.csv --dry-run --bootstrap-server localhost:9092
    """
    from migrate_groups.plan.receipt import HAND_OVER

    plans.check_dry_run_options(plan_out, force=force, dry_run=dry_run, detailed=detailed_exitcode)
    if receipt is not None and str(receipt) == "-":
        raise UsageError("--receipt -: the same command goes on from the receipt; name a file")
    given = {
        "uncommitted": uncommitted,
        "on_existing": on_existing,
        "settle": None if settle is None else parse_duration(settle, "--settle"),
        "guard": None if guard is None else parse_duration(guard, "--guard"),
        "out_of_range": out_of_range,
        "vanished": vanished,
        "any_kind": any_kind or None,
        "restore": restore or None,
        "witness": witness,
    }
    connection = Connection(bootstrap_server, command_config, properties, timeout)
    wanted = plans.plan_input(file, given, to_group, fan_out=fan_out)
    show_plan = partial(
        plans.show_plan, rows=wanted.rows.rows, output_format=output_format, plan_out=plan_out, force=force
    )
    if dry_run:
        path = receipt or (None if str(file) == "-" else _receipt_beside(file))
        earlier = Journal(path, HAND_OVER, dry_run=True).read() if path else None
        _dry_run(connection, wanted, show_plan, earlier, detailed=detailed_exitcode)
        return
    check_can_ask(yes=yes)
    journal = Journal(receipt or _receipt_beside(file), HAND_OVER)
    with open_writer(connection) as (writer, second):
        written = _write(writer, second, wanted, show_plan, journal, yes=yes)
        again = f"the same command with a new snapshot in {file}"
        finish(written, journal, again=again, apart=output_format != "table")


def _dry_run(
    connection: Connection,
    wanted: PlanInput,
    show_plan: ShowPlan,
    earlier: Receipt | None,
    *,
    detailed: bool,
) -> None:
    with open_reader(connection) as reader:
        plan = wanted.plan(reader, earlier)
    show_plan(plan)
    plans.conclude_dry_run(plan, detailed=detailed)


def _write(
    writer: GroupWriter, second: Witness, wanted: PlanInput, show_plan: ShowPlan, journal: Journal, *, yes: bool
) -> Receipt:
    from migrate_groups.migration.prepare import plan_at_the_write

    earlier = journal.read()
    shown = wanted.plan(writer, earlier)
    agree(shown, journal, yes=yes, show_plan=show_plan)
    plan = plan_at_the_write(writer, wanted.rows, shown, SystemClock(), earlier)
    return carry_out(writer, second, plan, journal, "written and read back: start the new groups now")


def _receipt_beside(file: Path) -> Path:
    if str(file) == "-":
        raise UsageError("the offsets come from stdin: say with --receipt where the receipt goes")
    return file.with_name(f"{file.name}.receipt.json")
