"""The command that compares offsets and lag before and after a hand-over: reconcile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from migrate_groups.cli import written
from migrate_groups.cli.console import show_as, talk, write_pages
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.errors import HandOverBroken
from migrate_groups.text import counted, shell_command

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import Reconciliation

ReportFormat = Literal["table", "markdown", "json", "csv"]
ReportFormatOption = Annotated[
    ReportFormat,
    typer.Option(
        "--format",
        help="How the verdict is shown. markdown is for the comment of a pull request, json is one document on stdout. "
        "csv has a row for each group and topic.",
    ),
]

_SUMMARY = "group_topic_summary.csv"


def reconcile(
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN|BEFORE",
            help="What was handed over: the run directory of migrate, a split file, or a snapshot.",
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Argument(metavar="AFTER", help="A snapshot of the new groups.", show_default="that of the run directory"),
    ] = None,
    *,
    more_before: Annotated[
        list[str] | None,
        typer.Option(
            "--before", metavar="PATH", help="Another file, folder or quoted glob of BEFORE; may be repeated."
        ),
    ] = None,
    more_after: Annotated[
        list[str] | None,
        typer.Option("--after", metavar="PATH", help="Another file, folder or quoted glob of AFTER; may be repeated."),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", metavar="SPEC", help="The split, if BEFORE is a snapshot of the old group."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="A new folder for the tables, report.md and report.html."),
    ] = None,
    quarantine: Annotated[
        Path | None,
        typer.Option(
            "--quarantine",
            metavar="DIR",
            help="A new folder for invalid rows.",
            show_default="an invalid row ends the command",
        ),
    ] = None,
    output_format: ReportFormatOption = "table",
) -> None:
    """Compare the offsets of the new groups with those that were handed over, with Spark.

    BEFORE and AFTER may be files, folders or quoted globs, CSV or Parquet. It asks no cluster, and needs Java 17 or
    later.

    Each partition is exact (the same offset), ahead (a higher one, which proves nothing), or no-commit; or it has a
    problem, and the exit code is 6: missing, behind, unexpected or below-log-start.

    Example: migrate-groups reconcile split.toml.run
    """
    require_spark()
    from migrate_groups.files import split_toml
    from migrate_groups.files.read import is_folder
    from migrate_groups.migration.reconcile import reconcile as compared

    given, then = [*_one(before), *(more_before or [])], [*_one(after), *(more_after or [])]
    split = None if spec is None else split_toml.load(spec).spec
    if before is not None and is_folder(Path(before)):
        written.run.set(Path(before))
    found = compared(given, then, split, spark_here, out=output, quarantine=quarantine)
    show_reconciliation(found, output_format, output)
    if found.quarantined:
        talk(f"the verdict leaves out {counted(found.quarantined, 'row')} in {quarantine}")
    if not found.clean:
        raise HandOverBroken(f"{counted(found.problems, 'partition')} did not start where the old group stopped")
    if before is not None and after is None and Path(before).is_dir() and _can_be_audited(Path(before)):
        talk(f"next: migrate-groups {shell_command('audit', [before])}")


def show_reconciliation(found: Reconciliation, output_format: ReportFormat, out: Path | None) -> None:
    """Print the result of ``reconcile`` on stdout, and write report.md and report.html to ``out``.

    out: the folder with the tables of the result; None: no report is written.
    """
    from migrate_groups.show import markdown
    from migrate_groups.show.reconciliation import page, result

    show_as(output_format, result(found, str(out / _SUMMARY) if out else None))
    if out:
        write_pages(out, "tables", {"report.md": markdown.draw(result(found, _SUMMARY)), "report.html": page(found)})
        talk(f"tables, report.md and report.html written to {out}")


def _can_be_audited(run_dir: Path) -> bool:
    """Return whether ``run_dir`` has the log end offsets of ``__consumer_offsets`` that ``audit`` needs."""
    from migrate_groups.files.runs import stop_checkpoint_parquet
    from migrate_groups.files.runs.run_dir import RunDir

    return bool(stop_checkpoint_parquet.load(RunDir(run_dir).checkpoint))


def _one(path: str | None) -> list[str]:
    return [] if path is None else [path]
