"""Read the input of ``apply`` from files and options, and show, check and save plans."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from migrate_groups.cli.console import load_table, talk
from migrate_groups.cli.options import REVIEW
from migrate_groups.cli.typed_command import without_dry_run
from migrate_groups.errors import EXIT_CHANGES, UsageError
from migrate_groups.text import counted, named

if TYPE_CHECKING:
    from migrate_groups.clock import Clock
    from migrate_groups.files.runs.plan_json import PlanFile
    from migrate_groups.migration.hand_over.apply import ApplyRequest
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.planning.plan import Plan
    from migrate_groups.snapshots.row import Row

PlanFormat = Literal["table", "markdown", "json", "csv"]
FormatOption = Annotated[
    PlanFormat,
    typer.Option(
        "--format",
        help="How the plan is shown. markdown is for the comment of a pull request. csv has the plan's partitions. "
        "json prints one document on stdout: the plan of a dry run, which apply takes as FILE, or the receipt of a "
        "write.",
    ),
]
PlanOut = Annotated[
    Path | None,
    typer.Option(
        "--plan-out",
        metavar="PLAN",
        rich_help_panel=REVIEW,
        help="Save the plan to this .json file, which apply takes as FILE.",
    ),
]
DetailedExitcode = Annotated[
    bool,
    typer.Option(
        "--detailed-exitcode",
        rich_help_panel=REVIEW,
        help="With --dry-run: exit with 10 if there are offsets to write.",
    ),
]
ForcePlan = Annotated[
    bool, typer.Option("--force", rich_help_panel=REVIEW, help="Replace a --plan-out file that exists.")
]

Rows = Callable[[], "Iterable[Row]"]
"""A function that returns the snapshot rows that a plan was made from. It is called only if the JSON is needed."""


def read_application(
    file: Path, given: Mapping[str, Any], to_group: Sequence[str] | None, *, fan_out: bool
) -> ApplyRequest:
    """Return what ``apply`` writes: the offsets in a file (a snapshot or a saved plan), and the write options.

    given: the write options on the command line, by name. to_group: the target groups of every row. If empty, each
    row's ``group`` is its target group.

    Raises `InvalidInput` if the file is invalid, and `UsageError` if a target group or an option is not allowed for
    this file.
    """
    from migrate_groups.migration.hand_over.apply import ApplyRequest
    from migrate_groups.planning.intent import shorter_settle
    from migrate_groups.planning.options import FREE, in_words
    from migrate_groups.snapshots.regroup import name_groups

    saved = _saved_plan(file)
    if saved is None:
        options = _write_options(given)
        rows = name_groups(load_table(file), to_group or [], fan_out=fan_out, restore=options.restore)
        return ApplyRequest(rows=rows, options=options)
    if to_group or fan_out:
        raise UsageError(f"{file} is a plan, which names its groups: --to-group and --fan-out don't go with it")
    for name, value in given.items():
        if name not in FREE and value != getattr(saved.plan.options, name):
            option = name.replace("_", "-")
            reviewed = in_words(getattr(saved.plan.options, name))
            raise UsageError(
                f"--{option} {in_words(value)} contradicts {file}, reviewed with {reviewed}: make a new plan"
            )
    if saved.plan.translation is not None:
        raise UsageError(
            f"{file} is a plan for another cluster, whose source group apply can't check: pass it to migrate --approved"
        )
    if saved.plan.options.on_uncommitted == "latest":
        raise UsageError(
            f"{file} was planned with --on-uncommitted latest, which only migrate can do: pass the plan to migrate "
            "--approved, or make a plan with --on-uncommitted earliest or leave"
        )
    options = replace(saved.plan.options, **{name: value for name, value in given.items() if name in FREE})
    if shorter := shorter_settle(str(file), saved.plan.options, options):
        talk(shorter)
    return ApplyRequest(rows=saved.rows, options=options, approved=replace(saved.plan, options=options))


def check_source_groups(wanted: ApplyRequest, file: Path, *, no_source_group: bool) -> None:
    """Check that a file without source groups was passed with ``--no-source-group``, and no other file.

    The results of ``rewind`` and ``compare`` do not need the option: these commands leave out the source group on
    purpose. Only other snapshots without a source group lack the cluster id. Raises `UsageError`.
    """
    sources = {each.handed_over_by for each in wanted.rows.rows()}
    if no_source_group and sources != {None}:
        hands_over = named("group", [each for each in sources if each is not None])
        raise UsageError(f"{file}: {hands_over} hands over these offsets: drop --no-source-group")
    if no_source_group or wanted.approved:
        return
    if any(row.source_group is None and row.cluster_id is None for row in wanted.rows.rows()):
        raise UsageError(
            f"{file} does not say which group hands over its offsets, so nothing shows whether consumers have stopped: "
            "pass --no-source-group if no group hands them over; otherwise use apply --from-group OLD --to-group NEW"
        )


def application_of_group(
    source: str, given: Mapping[str, Any], to_group: Sequence[str], *, fan_out: bool
) -> Callable[[GroupReader, Clock], ApplyRequest]:
    """Return a function that reads the committed offsets of the group ``source`` and returns the input of ``apply``.

    given: the write options on the command line, by name. fan_out: allow several target groups.

    Raises `UsageError` if a target group is missing, or if a target group or an option is not allowed.
    """
    from migrate_groups.migration.hand_over.apply import read_request
    from migrate_groups.snapshots.regroup import check_target_groups

    if not to_group:
        raise UsageError("--from-group says which group hands over: name the new one with --to-group")
    check_target_groups(to_group, fan_out=fan_out)
    if source in to_group:
        raise UsageError(f"group {source} is --from-group and --to-group; name a new group")
    options = _write_options(given)
    if options.restore:
        raise UsageError("--restore writes a snapshot back to its own group: it goes with FILE, not with --from-group")
    return lambda reader, clock: read_request(reader, source, to_group, options, clock)


def check_dry_run_options(path: Path | None, *, force: bool, dry_run: bool, detailed: bool) -> None:
    """Check the options of a dry run, and that the plan can be saved.

    path: the file of ``--plan-out``. force: the file may exist. Raises `UsageError` for ``--detailed-exitcode`` without
    ``--dry-run``, and if ``path`` is not a .json file. Raises `InvalidInput` if the file can't be written.
    """
    if detailed and not dry_run:
        raise UsageError("--detailed-exitcode goes with --dry-run")
    if path is None:
        return
    if path.suffix.lower() != ".json":
        raise UsageError(f"--plan-out {path}: expected a .json file; --format json prints the plan")
    from migrate_groups.files.safe_write import check_writable

    check_writable(path, replace=force)


def conclude_dry_run(plan: Plan, next_step: str = "", *, detailed: bool = False) -> None:
    """Print on stderr that the dry run passed, which checks are pending or not known, and the next step.

    next_step: by default the same command without the options of a dry run. Raises `Refused` if a check refuses the
    plan. detailed: exit with code 10 if there are offsets to write.
    """
    from migrate_groups.migration.make_plan import refuse_forbidden

    refuse_forbidden(plan.refusals(at_the_write=False))
    found = {word: [each.name for each in plan.checks if each.verdict == word] for word in ("pending", "not known")}
    left = (f", {counted(len(names), 'check')} {word}: {', '.join(names)}" for word, names in found.items() if names)
    talk("dry run passed" + "".join(left))
    talk(f"next: {next_step or without_dry_run()}")
    if detailed and plan.to_write():
        talk(f"exit {EXIT_CHANGES}: there are offsets to write")
        raise typer.Exit(EXIT_CHANGES)


def save_plan(plan: Plan, rows: Rows, path: Path | None, *, force: bool) -> None:
    """Save the plan and the snapshot rows that it was made from. If ``path`` is None, do nothing.

    force: replace an existing file. Raises `InvalidInput` if the file can't be written.
    """
    if path is not None:
        from migrate_groups.files.runs import plan_json
        from migrate_groups.files.safe_write import write_whole

        write_whole(path, lambda file: file.write(plan_json.to_bytes(plan, rows())), replace=force)


def _write_options(given: Mapping[str, Any]) -> WriteOptions:
    from migrate_groups.planning.options import WriteOptions

    # Only `migrate` can do this, because the rows of a snapshot don't say when a topic last had members.
    if given.get("on_uncommitted") == "latest":
        raise UsageError("--on-uncommitted latest is for migrate only: pass earliest, leave or refuse")
    return WriteOptions(**given)


def _saved_plan(file: Path) -> PlanFile | None:
    from migrate_groups.files.runs import plan_json

    if file.suffix.lower() == ".json":
        return plan_json.load(file)
    # The first bytes are peeked at and not read, because `load_table` reads stdin from its start if it is a snapshot.
    if str(file) == "-" and cast("BufferedReader", sys.stdin.buffer).peek(1).lstrip().startswith(b"{"):
        return plan_json.read(sys.stdin.buffer.read(), "standard input")
    return None
