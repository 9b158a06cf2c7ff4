"""The command that shows what a run has done, and what may be done with it now: status."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, warn_of_hidden_topics
from migrate_groups.cli.target_cluster import TargetCluster
from migrate_groups.text import counted, shell_command

if TYPE_CHECKING:
    from migrate_groups.clock import Clock
    from migrate_groups.migration.clusters import Clusters
    from migrate_groups.migration.hand_over.fleet import Part
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.migration.run_status import RunStatus
    from migrate_groups.planning.receipt import Receipt
    from migrate_groups.planning.run_states import Verb

_RECEIPT = ".receipt.json"


def status(
    run: options.Run,
    *,
    output_format: Annotated[
        Literal["table", "markdown", "json", "csv"],
        typer.Option(
            "--format",
            help="How the status is shown. markdown is for a comment, json is one document on stdout. csv has the "
            "commands.",
        ),
    ] = "table",
    target: TargetCluster,
    connection: Connection,
) -> None:
    """Show what a run has done, and which commands may follow.

    It reads the receipt, asks the brokers, and writes nothing. For rollback, hand-back and delete-offsets it makes the
    plan of their dry runs. Of the folder of a fleet it shows a line for each run. If the new groups are on another
    cluster, pass that cluster with --to-bootstrap-server or --to-command-config.

    Example: migrate-groups status split.toml.run
    """
    from migrate_groups.cli.fleet_output import ERRORS
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.migration.hand_over.fleet import Part, work_on_each
    from migrate_groups.show import run_status as views

    target.check()
    several = RunDir(run).of_groups()
    parts: Sequence[Part[RunStatus]] = []
    with target.open_readers(connection) as clusters:
        if several:

            def look(part: Part[RunStatus], clock: Clock) -> RunStatus:
                return _of_run(RunDir(run).folder / part.group, clusters)

            parts = work_on_each([Part(each.folder.name) for each in several], look, SystemClock())
            shown = views.fleet_status(run, {part.group: part.result or part.error for part in parts})
        else:
            found = _of_run(run, clusters)
            shown = views.status(found, run, _lines(run, found.receipt))
        warn_of_hidden_topics(clusters.source)
    show_as(output_format, shown)
    if failed := [part.error.exit_code for part in parts if part.error]:
        raise ERRORS[failed[0]](f"{len(failed)} of {counted(len(parts), 'run')} not known: see the errors in the table")


def _of_run(run: Path, clusters: Clusters[GroupReader]) -> RunStatus:
    from migrate_groups.files.runs.receipt_file import open_receipt
    from migrate_groups.files.runs.run_dir import RunDir, receipt_in
    from migrate_groups.migration.run_status import run_status

    # A run that has written nothing yet has a baseline, and no receipt.
    with open_receipt(receipt_in(run), read_only=True, must_exist=not RunDir(run).baseline.is_file()) as file:
        return run_status(clusters, file, SystemClock(), _lines(run, file.receipt))


def _lines(run: Path, receipt: Receipt) -> dict[Verb, str]:
    """Return the command line of each command on a run."""
    from migrate_groups.planning.run_states import Verb

    lines = {verb: f"migrate-groups {shell_command(verb.value, [str(run)])}" for verb in Verb}
    kept = " --from KEPT" if receipt.last_hand_over and receipt.last_hand_over.is_fail_over else ""
    return lines | {Verb.HAND_OVER: f"migrate-groups {_again(run)}{kept}"}


def _again(run: Path) -> str:
    """Return the command that made the run, as far as the path shows it."""
    if run.is_file():
        applied = str(run).removesuffix(_RECEIPT)
        if applied != str(run) and Path(applied).is_file():
            return shell_command("apply", [applied])
        return shell_command("apply", ["FILE"], f"--receipt {shlex.quote(str(run))}")
    # The run of one group of a fleet is in the folder of the fleet.
    for folder in (run, run.parent):
        if folder.suffix == ".run" and (spec := folder.with_suffix("")).is_file():
            return shell_command("migrate", [str(spec)])
    return shell_command("migrate", ["SPEC"], f"--run-dir {shlex.quote(str(run))}")
