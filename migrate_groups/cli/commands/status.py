"""The command that shows what a run has done, and what may be done with it now: status."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, warn_of_hidden_topics
from migrate_groups.cli.target_cluster import TargetCluster
from migrate_groups.text import shell_command

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
    plan of their dry runs. If the new groups are on another cluster, pass that cluster with --to-bootstrap-server or
    --to-command-config.

    Example: migrate-groups status split.toml.run
    """
    from migrate_groups.files.runs.receipt_file import open_receipt
    from migrate_groups.files.runs.run_dir import receipt_in
    from migrate_groups.migration.run_status import run_status
    from migrate_groups.planning.run_states import Verb
    from migrate_groups.show import run_status as views

    target.check()
    lines = {verb: f"migrate-groups {shell_command(verb.value, [str(run)])}" for verb in Verb}
    lines[Verb.HAND_OVER] = f"migrate-groups {_again(run)}"
    path = receipt_in(run)
    with (
        open_receipt(path, read_only=True, must_exist=True) as file,
        connection.open_reader() as reader,
        target.reader_if_named(connection) as elsewhere,
    ):
        found = run_status(reader, file, SystemClock(), lines, elsewhere)
        warn_of_hidden_topics(reader)
    show_as(output_format, views.status(found, run, lines))


def _again(run: Path) -> str:
    """Return the command that made the run, as far as the path shows it."""
    if run.is_file():
        applied = str(run).removesuffix(_RECEIPT)
        if applied != str(run) and Path(applied).is_file():
            return shell_command("apply", [applied])
        return shell_command("apply", ["FILE"], f"--receipt {shell_command(str(run), [])}")
    spec = run.with_suffix("")
    if run.suffix == ".run" and spec.is_file():
        return shell_command("migrate", [str(spec)])
    return shell_command("migrate", ["SPEC"], f"--run-dir {shell_command(str(run), [])}")
