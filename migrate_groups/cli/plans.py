"""Plans on the command line: reads what a plan is made from, shows a plan, and saves it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from migrate_groups.cli.console import load_table, show
from migrate_groups.errors import EXIT_CHANGES, UsageError

if TYPE_CHECKING:
    from migrate_groups.files.runs.plan_json import PlanFile
    from migrate_groups.migration.hand_over.apply import ApplyRequest
    from migrate_groups.planning.plan import Plan
    from migrate_groups.snapshots.snapshot import Row

PlanFormat = Literal["table", "markdown", "json"]
FormatOption = Annotated[
    PlanFormat, typer.Option("--format", help="How the plan is shown; markdown is made for a pull request's comment.")
]
PlanOut = Annotated[
    Path | None, typer.Option("--plan-out", metavar="PLAN", help="Save the plan: a .json file, which apply takes.")
]

DetailedExitcode = Annotated[
    bool, typer.Option("--detailed-exitcode", help="With --dry-run: exit 10 when there is something to write.")
]
ForcePlan = Annotated[bool, typer.Option("--force", help="Replace a --plan-out file that exists already.")]

AnyKind = Annotated[
    bool, typer.Option("--any-kind", help="Take what looks like a group of Streams or Connect for a plain one.")
]
SecondClientOption = Annotated[
    Literal["auto", "required", "none"] | None,
    typer.Option(help="Whether the second client must confirm.", show_default="auto"),
]

Rows = Callable[[], "Iterable[Row]"]
"""Returns the rows that a plan was made from; called only if the plan is shown or saved as JSON."""


def read_application(
    file: Path, given: Mapping[str, Any], to_group: Sequence[str] | None, *, fan_out: bool
) -> ApplyRequest:
    """Return what `apply` writes: the offsets in a file (a snapshot or a saved plan), and the options of the write.

    given: the options from the command line by name; None: not passed.

    Raises `InvalidInput` if the file is invalid. Raises `UsageError` if an option contradicts a saved plan, because a
    plan is applied as reviewed, and if the plan can be applied by `migrate` only.
    """
    from migrate_groups.migration.hand_over.apply import ApplyRequest
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.snapshots.regroup import name_groups

    chosen = {name: value for name, value in given.items() if value is not None}
    saved = _saved_plan(file)
    if saved is None:
        options = WriteOptions(**chosen)
        rows = name_groups(load_table(file), to_group or [], fan_out=fan_out, restore=options.restore)
        return ApplyRequest(rows=rows, options=options)
    if to_group or fan_out:
        raise UsageError(f"{file} is a plan, which names its groups: --to-group and --fan-out don't go with it")
    for name, value in chosen.items():
        if value != getattr(saved.plan.options, name):
            option = name.replace("_", "-")
            reviewed = getattr(saved.plan.options, name)
            raise UsageError(f"--{option} {value} contradicts {file}, reviewed with {reviewed}: make a new plan")
    # Only `migrate` can do this, because the rows of a snapshot don't say when a topic last had members.
    if saved.plan.options.uncommitted == "latest":
        raise UsageError(
            f"{file} has uncommitted = latest, the log end from when a member was last seen on the topic, which only "
            "migrate can tell: migrate --approved takes it; or make a plan with --uncommitted earliest or leave"
        )
    return ApplyRequest(rows=saved.rows, options=saved.plan.options, approved=saved.plan)


def check_dry_run_options(path: Path | None, *, force: bool, dry_run: bool, detailed: bool) -> None:
    """Check ``--detailed-exitcode``, and that the plan can be saved to ``path``, before any work is done.

    Raises `UsageError` if an option is wrong, `InvalidInput` if the file can't be written.
    """
    if detailed and not dry_run:
        raise UsageError("--detailed-exitcode goes with --dry-run")
    if path is None:
        return
    if path.suffix.lower() != ".json":
        raise UsageError(f"--plan-out {path}: expected a .json file; --format json prints the plan")
    from migrate_groups.files.safe_write import check_writable

    check_writable(path, replace=force)


def conclude_dry_run(plan: Plan, *, detailed: bool) -> None:
    """Raise `Refused` if a check refuses the plan; with ``detailed``, exit with 10 if there is something to write."""
    from migrate_groups.migration.prepare import refuse_forbidden

    refuse_forbidden(plan.refusals(at_the_write=False))
    if detailed and plan.to_write():
        raise typer.Exit(EXIT_CHANGES)


def show_plan(plan: Plan, rows: Rows, output_format: PlanFormat, plan_out: Path | None, *, force: bool) -> None:
    """Save the plan to ``plan_out``, if given, and print it on stdout."""
    if plan_out is not None:
        from migrate_groups.files.runs import plan_json
        from migrate_groups.files.safe_write import write_whole

        write_whole(plan_out, lambda file: file.write(plan_json.to_bytes(plan, rows())), replace=force)
    if output_format == "table":
        show_table(plan)
    else:
        sys.stdout.buffer.write(_document(plan, rows, output_format, plan_out))
        sys.stdout.buffer.flush()


def show_table(plan: Plan) -> None:
    """Print the plan as a table on stdout."""
    from migrate_groups.show import terminal

    show(terminal.plan(plan))


def _document(plan: Plan, rows: Rows, output_format: PlanFormat, plan_out: Path | None) -> bytes:
    if output_format == "markdown":
        from migrate_groups.show import markdown

        return markdown.plan(plan, plan_out.name if plan_out else None).encode()
    from migrate_groups.files.runs import plan_json

    return plan_json.to_bytes(plan, rows())


def _saved_plan(file: Path) -> PlanFile | None:
    from migrate_groups.files.runs import plan_json

    if file.suffix.lower() == ".json":
        return plan_json.load(file)
    # The first byte is peeked at and not read, because `load_table` reads stdin from its start if it is a snapshot.
    if str(file) == "-" and cast("BufferedReader", sys.stdin.buffer).peek(1)[:1] == b"{":
        return plan_json.read(sys.stdin.buffer.read(), "standard input")
    return None
