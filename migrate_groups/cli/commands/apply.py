"""The command that writes the offsets of a file, or of a group, to groups: apply."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from migrate_groups.api.operator import written_by
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options, plans, written
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import talk
from migrate_groups.cli.terminal import Terminal
from migrate_groups.cli.typed_command import CONNECTION, without_dry_run
from migrate_groups.cli.write_options import AppliedOptions
from migrate_groups.cli.written import NOTHING_TO_UNDO
from migrate_groups.errors import UsageError
from migrate_groups.planning.options import FREE
from migrate_groups.text import shell_command

if TYPE_CHECKING:
    from migrate_groups.clock import Clock
    from migrate_groups.migration.hand_over.apply import ApplyRequest
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.planning.execution import Execution
    from migrate_groups.planning.plan import Plan

_WITH_A_PLAN = CONNECTION | FREE | {"receipt", "reference"}
"""The parameters that may stand beside a saved plan, and that are worth typing again."""
_STREAMS = {Path("/dev/fd"), Path("/dev/stdin"), Path("/proc")}
"""Files and folders beside which no receipt is kept. A shell passes the pipe ``<(…)`` as the file ``/dev/fd/63``."""


def apply(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A snapshot (.csv, .parquet), a kafka-consumer-groups CSV, a plan (.json), or - for stdin.",
        ),
    ] = None,
    *,
    from_group: Annotated[
        list[str] | None,
        typer.Option(
            "--from-group",
            metavar="OLD",
            help="In place of FILE: all committed offsets of this group, which has stopped.",
        ),
    ] = None,
    to_group: Annotated[
        list[str] | None,
        typer.Option("--to-group", metavar="GROUP", help="Write all rows to this group, whatever group they name."),
    ] = None,
    fan_out: Annotated[
        bool, typer.Option("--fan-out", help="Allow --to-group several times: each of these groups gets all rows.")
    ] = False,
    restore: Annotated[bool, typer.Option("--restore", help="Write a group's own snapshot back to the group.")] = False,
    no_source_group: Annotated[
        bool,
        typer.Option(
            "--no-source-group",
            help="Required for a file that names no old group and no cluster, such as a CSV of kafka-consumer-groups: "
            "no group hands over these offsets, so none is checked.",
        ),
    ] = False,
    dry_run: options.DryRun = False,
    output_format: plans.FormatOption = "table",
    plan_out: plans.PlanOut = None,
    detailed_exitcode: plans.DetailedExitcode = False,
    receipt: Annotated[
        Path | None,
        typer.Option(
            "--receipt",
            metavar="FILE",
            help="The file for the receipt, which records the outcome of each partition and which rollback reads.",
            show_default="<FILE>.receipt.json; with --to-group <FILE>.<GROUP>.receipt.json; with --from-group "
            "<OLD>.<GROUP>.receipt.json",
        ),
    ] = None,
    yes: options.Yes = False,
    reference: options.Reference = "",
    events: options.Events = None,
    force: plans.ForcePlan = False,
    write_options: AppliedOptions,
    connection: Connection,
) -> None:
    """Write the offsets of a file to groups: check, show the plan, ask, write and read back.

    FILE may be a plan that a dry run saved. Then exactly this plan is written, or nothing if the groups have moved
    since. With --from-group in place of FILE, a stopped group hands over all its committed offsets to --to-group.

    The old group must have stopped when the snapshot is taken, and stay stopped. To copy a group that keeps
    running, write the file with rewind --group OLD --to-current: it names no old group, so no old group has to
    stop.

    Example: migrate-groups apply split.csv --dry-run --bootstrap-server localhost:9092

    Example: migrate-groups apply --from-group old --to-group new
    """
    from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
    from migrate_groups.migration.hand_over.apply import apply as write
    from migrate_groups.migration.hand_over.apply import plan_apply
    from migrate_groups.migration.receipt_refusals import refuse_by_record
    from migrate_groups.migration.write_result import result_of
    from migrate_groups.planning.run_states import Verb

    plans.check_dry_run_options(plan_out, force=force, dry_run=dry_run, detailed=detailed_exitcode)
    if receipt is not None and str(receipt) == "-":
        raise UsageError("--receipt -: the same command goes on from the receipt; name a file")
    by = written_by(reference)
    given = write_options.given() | ({"restore": True} if restore else {})
    source = _source(file, from_group, to_group or [], given, fan_out=fan_out, no_source_group=no_source_group)
    path = receipt or source.receipt
    written.run.set(path)
    if plan_out and path and os.path.realpath(plan_out) == os.path.realpath(path):
        raise UsageError(f"--plan-out {plan_out} is also the file of the receipt: name another file")
    clock = SystemClock()
    terminal = Terminal(yes=yes, output_format=output_format, plan_out=plan_out, force=force, events=events)
    if dry_run:
        with open_receipt(path, read_only=True) if path else nullcontext(ReceiptFile(None)) as record:
            with connection.open_reader() as reader:
                wanted = source.read(reader, clock)
                plan = plan_apply(reader, wanted, record, terminal)
            if plan is None:
                terminal.show_receipt(record.receipt)
                return
        # The reader of a comment has the plan in a folder of their own.
        there = _after_dry_run(plan, plan_out and Path(plan_out.name), file)
        terminal.dry_run(plan, wanted.rows.rows, "" if plan.verdict == "pending" else there)
        plans.conclude_dry_run(plan, _after_dry_run(plan, plan_out, file), detailed=detailed_exitcode)
        return
    if path is None:
        is_stdin = str(file) == "-"
        also = ", and pass --yes, because stdin is not a terminal that can answer" if is_stdin and not yes else ""
        raise UsageError(
            f"the offsets come from {'stdin' if is_stdin else file}: say with --receipt where the receipt goes{also}"
        )
    terminal.check_can_be_asked()
    with open_receipt(path, by=by) as record:
        refuse_by_record(record.receipt, Verb.HAND_OVER)
        with connection.open_writer() as clients:
            execution = write(clients, source.read(clients.writer, clock), record, clock, terminal)
            if execution is None:
                terminal.show_receipt(record.receipt)
            else:
                terminal.show_result(result_of(execution, record, source.again))
                # `reconcile` compares the groups that the file names, and not those of --to-group.
                _say_what_is_next(execution, None if to_group else file, path)


def _after_dry_run(plan: Plan, plan_out: Path | None, file: Path | None) -> str:
    sources = sorted({change.source_group for change in plan.changes if change.source_group is not None})
    if plan.verdict == "pending" and sources:
        return (
            f"stop the old applications, then migrate-groups {shell_command('verify', sources, '--wait 5m')}, and "
            f"{'apply a new snapshot' if file else without_dry_run()}"
        )
    return without_dry_run(only=_WITH_A_PLAN, to=[str(plan_out)]) if plan_out else without_dry_run()


def _say_what_is_next(execution: Execution, file: Path | None, receipt: Path) -> None:
    """Print the next command, and the command that undoes the write.

    file: the snapshot that ``reconcile`` can compare with the new groups; None: there is no such snapshot.
    """
    groups = sorted({change.group for change in execution.changes})
    if not any(change.source_group for change in execution.changes):
        watches = [shell_command("watch", [group]) for group in groups]
        talk(*(f"next: start the applications, then migrate-groups {watch}" for watch in watches))
        return
    snapshot = f"migrate-groups {shell_command('snapshot', groups, '-o after.parquet')}"
    if file is not None and file.suffix.lower() in (".csv", ".parquet"):
        snapshot += f"; migrate-groups {shell_command('reconcile', [str(file), 'after.parquet'])}"
    after = "" if execution.options.copy else ", hand-back (after)"
    rollback = shell_command("rollback", [str(receipt)])
    talk(
        f"next: {snapshot}",
        NOTHING_TO_UNDO
        if execution.wrote_nothing
        else f"back: migrate-groups {rollback} (before the new groups commit){after}",
    )


class _Source(NamedTuple):
    """The source of the offsets that ``apply`` writes: a file or a group.

    read: returns the offsets and the write options. receipt: the default path of the receipt, which records the write;
    None if FILE is stdin or a pipe. again: what the user must run to resume an unfinished write.
    """

    read: Callable[[GroupReader, Clock], ApplyRequest]
    receipt: Path | None
    again: str


def _source(
    file: Path | None,
    from_group: list[str] | None,
    to_group: list[str],
    given: Mapping[str, Any],
    *,
    fan_out: bool,
    no_source_group: bool,
) -> _Source:
    """Return the source of the offsets to write: FILE or ``--from-group``.

    to_group: the target groups; if empty, each row's ``group`` is its target group. given: the write options on the
    command line, by name. Raises `UsageError` if FILE and ``--from-group`` are both given or both missing.
    """
    from migrate_groups.files.runs.run_dir import IN_RECEIPT, file_name

    if from_group:
        source = options.one_group(from_group, "--from-group")
        if file is not None:
            raise UsageError(f"FILE ({file}) and --from-group {source} contradict each other: pass one of them")
        if no_source_group:
            raise UsageError(f"--no-source-group contradicts --from-group {source}: pass one of them")
        read = plans.application_of_group(source, given, to_group, fan_out=fan_out)
        old, new = file_name(source, most=IN_RECEIPT), file_name(*to_group, most=IN_RECEIPT)
        receipt = Path(f"{old}.{new}.receipt.json")
        return _Source(read, receipt, "the same command")
    if file is None:
        raise UsageError("no offsets to write: name a FILE, or the old group with --from-group")
    wanted = plans.read_application(file, given, to_group, fan_out=fan_out)
    plans.check_source_groups(wanted, file, no_source_group=no_source_group)
    targets = file_name(*to_group, most=IN_RECEIPT)
    is_stream = str(file) == "-" or _STREAMS & {file, *file.parents}
    beside = None if is_stream else file.with_name(f"{file.name}{targets and '.'}{targets}.receipt.json")
    return _Source(lambda *_: wanted, beside, f"the same command with a new snapshot in {file}")
