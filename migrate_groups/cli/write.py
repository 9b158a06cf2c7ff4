"""Commands that write to a cluster: apply."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from migrate_groups.cli import options
from migrate_groups.cli.connect import open_reader, open_writer
from migrate_groups.cli.console import SystemClock, load_table, show, talk
from migrate_groups.errors import PartlyApplied, Refused, UsageError
from migrate_groups.offsets.times import parse_duration
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.cluster.ports import GroupWriter
    from migrate_groups.cluster.witness import Witness
    from migrate_groups.offsets.snapshot import Snapshot
    from migrate_groups.plan.options import WriteOptions
    from migrate_groups.plan.plan import Plan
    from migrate_groups.plan.receipt import Receipt

PlanFormat = Literal["table", "json"]


def apply(
    file: options.InputFile,
    *,
    bootstrap_server: options.BootstrapServer,
    to_group: Annotated[list[str] | None, typer.Option("--to-group", help="Write to this group.")] = None,
    fan_out: Annotated[bool, typer.Option("--fan-out", help="Allow several --to-group: each gets all.")] = False,
    restore: Annotated[bool, typer.Option("--restore", help="Write a group's snapshot back to itself.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its checks; write nothing.")] = False,
    output_format: Annotated[PlanFormat, typer.Option("--format", help="How the plan is shown.")] = "table",
    receipt: Annotated[Path | None, typer.Option("--receipt", help="Default: <FILE>.receipt.json.")] = None,
    on_existing: Annotated[
        Literal["refuse", "forward", "overwrite"], typer.Option(help="What a target's other offsets mean.")
    ] = "refuse",
    uncommitted: Annotated[
        Literal["refuse", "end", "start", "leave"], typer.Option(help="What partitions without a commit get.")
    ] = "refuse",
    witness: Annotated[
        Literal["auto", "required", "none"], typer.Option(help="Whether the second client must confirm.")
    ] = "auto",
    settle: options.Settle = "10s",
    guard: Annotated[str, typer.Option("--guard", help="How long the old group is watched afterwards.")] = "30s",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Write a snapshot's offsets to its groups, once every check passes, and read them back.

    Example: migrate-groups apply split.csv --dry-run --bootstrap-server localhost:9092
    """
    from migrate_groups.offsets.regroup import name_groups
    from migrate_groups.plan.options import WriteOptions

    chosen = WriteOptions(
        uncommitted=uncommitted,
        on_existing=on_existing,
        settle=parse_duration(settle, "--settle"),
        guard=parse_duration(guard, "--guard"),
        witness=witness,
        restore=restore,
    )
    named = name_groups(load_table(file), to_group or [], fan_out=fan_out, restore=restore)
    if dry_run:
        with open_reader(bootstrap_server, timeout) as reader:
            from migrate_groups.migration.prepare import make_plan, refuse_forbidden

            plan = make_plan(reader, named, chosen)
        _show_plan(plan, output_format)
        refuse_forbidden(plan.refusals(at_the_write=False))
        return
    target = receipt or _receipt_beside(file)
    if not (yes or sys.stdin.isatty()):
        raise UsageError("nobody can be asked here: pass --yes to write, or --dry-run to look")
    from migrate_groups.files.safe_write import check_writable

    check_writable(target, replace=receipt is None)
    with open_writer(bootstrap_server, timeout) as (writer, second):
        _finish(_write(writer, second, named, chosen, output_format, target, ask=not yes))


def _write(
    writer: GroupWriter,
    second: Witness,
    named: Snapshot,
    chosen: WriteOptions,
    output_format: PlanFormat,
    target: Path,
    *,
    ask: bool,
) -> Receipt:
    from migrate_groups.files import plan_json
    from migrate_groups.files.safe_write import write_whole
    from migrate_groups.migration.guard import guard
    from migrate_groups.migration.prepare import make_plan, plan_at_the_write, refuse_forbidden
    from migrate_groups.migration.write import apply_plan

    def record(state: Receipt) -> None:
        content = plan_json.to_bytes(plan_json.receipt_document(state))
        write_whole(target, lambda stream: stream.write(content), replace=True)

    clock = SystemClock()
    shown = make_plan(writer, named, chosen)
    _show_plan(shown, output_format)
    refuse_forbidden(shown.refusals(at_the_write=True))
    if ask and shown.to_write() and not typer.confirm(f"Write {counted(len(shown.to_write()), 'offset')}?", err=True):
        raise Refused("the answer was no; nothing was written")
    plan = plan_at_the_write(writer, named, shown, clock)
    receipt = apply_plan(writer, None if chosen.witness == "none" else second, plan, clock, record)
    if not receipt.failed and chosen.guard and any(change.source_group for change in plan.changes):
        talk(f"written and read back: start the new groups now; the old ones are watched for {chosen.guard:g} s")
        receipt = guard(writer, receipt, chosen.guard, clock)
        record(receipt)
    talk(f"receipt: {target}")
    return receipt


def _finish(receipt: Receipt) -> None:
    from migrate_groups.show import terminal

    show(terminal.receipt(receipt))
    if receipt.failed:
        raise PartlyApplied(f"{counted(len(receipt.failed), 'partition')} not confirmed; the receipt says which")
    if receipt.source_moved:
        raise PartlyApplied(f"{receipt.source_moved[0]}; stop it before the new groups start, and apply a new snapshot")


def _show_plan(plan: Plan, output_format: PlanFormat) -> None:
    if output_format == "json":
        from migrate_groups.files import plan_json

        sys.stdout.buffer.write(plan_json.to_bytes(plan_json.plan_document(plan)))
        sys.stdout.buffer.flush()
    else:
        from migrate_groups.show import terminal

        show(terminal.plan(plan))


def _receipt_beside(file: Path) -> Path:
    if str(file) == "-":
        raise UsageError("the offsets come from stdin: say with --receipt where the receipt goes")
    return file.with_name(f"{file.name}.receipt.json")
