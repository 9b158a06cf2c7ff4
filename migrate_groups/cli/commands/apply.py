"""The command that writes the offsets of a file to groups: apply."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options, plans
from migrate_groups.cli.connect import Connection, open_reader, open_writer
from migrate_groups.cli.person import Person, show_result
from migrate_groups.errors import UsageError
from migrate_groups.snapshots.times import parse_duration

_MOST_OF_GROUPS = 80


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
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", help="Default: <FILE>.receipt.json, with --to-group <FILE>.<GROUP>.receipt.json."),
    ] = None,
    on_existing: Annotated[
        Literal["refuse", "forward", "overwrite"] | None,
        typer.Option(help="What a target's other offsets mean.", show_default="refuse"),
    ] = None,
    uncommitted: Annotated[
        Literal["refuse", "earliest", "leave"] | None,
        typer.Option(help="What partitions without a commit get; latest is for migrate alone.", show_default="refuse"),
    ] = None,
    out_of_range: Annotated[
        Literal["refuse", "earliest"] | None,
        typer.Option(help="What becomes of offsets below the log start offset.", show_default="refuse"),
    ] = None,
    vanished: Annotated[
        Literal["refuse", "restore"] | None,
        typer.Option(help="What an old group's commits mean that have expired since.", show_default="refuse"),
    ] = None,
    any_kind: plans.AnyKind = False,
    second_client: plans.SecondClientOption = None,
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
    from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
    from migrate_groups.migration.hand_over.apply import apply as write
    from migrate_groups.migration.hand_over.apply import plan_application
    from migrate_groups.migration.record import refuse_by_record
    from migrate_groups.migration.result import result_of
    from migrate_groups.planning.run_states import Verb

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
        "second_client": second_client,
    }
    connection = Connection(bootstrap_server, command_config, properties, timeout)
    wanted = plans.read_application(file, given, to_group, fan_out=fan_out)
    path = _receipt_of(file, to_group or [], receipt)
    person = Person(yes=yes, output_format=output_format, plan_out=plan_out, force=force)
    if dry_run:
        with open_receipt(path, read_only=True) if path else nullcontext(ReceiptFile(None)) as record:
            with open_reader(connection) as reader:
                plan = plan_application(reader, wanted, record, person)
            if plan is not None:
                person.planned(plan, wanted.rows.rows)
                plans.conclude_dry_run(plan, detailed=detailed_exitcode)
        return
    person.check_can_be_asked()
    if path is None:
        raise UsageError("the offsets come from stdin: say with --receipt where the receipt goes")
    with open_receipt(path) as record:
        refuse_by_record(record.receipt, Verb.HAND_OVER)
        with open_writer(connection) as clients:
            execution = write(clients, wanted, record, SystemClock(), person)
            if execution is not None:
                again = f"the same command with a new snapshot in {file}"
                show_result(result_of(execution, record, again), apart=output_format != "table")


def _receipt_of(file: Path, to_group: list[str], named: Path | None) -> Path | None:
    """Return the path of the receipt: ``--receipt``, or beside the file, with the groups of ``--to-group`` in its name.

    Returns None for stdin without ``--receipt``. A dry run then works without a receipt.
    """
    if named is not None:
        return named
    if str(file) == "-":
        return None
    groups = "+".join(quote(group, safe="") for group in sorted(to_group))
    if len(groups) > _MOST_OF_GROUPS:  # because a file name has at most 255 characters
        groups = f"{groups[:_MOST_OF_GROUPS]}-{hashlib.sha256(groups.encode()).hexdigest()[:16]}"
    return file.with_name(f"{file.name}{groups and '.'}{groups}.receipt.json")
