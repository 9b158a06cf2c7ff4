"""The command that compares offsets and lag before and after a hand-over: reconcile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli.console import talk
from migrate_groups.cli.reports import ReportFormatOption, show_reconciliation
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.errors import HandOverBroken
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.mapping import SplitMapping


def reconcile(
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="BEFORE", help="What was handed over: a run directory of migrate, a split file, or a snapshot."
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Argument(metavar="AFTER", help="A snapshot of the new groups; a run directory has one.")
    ] = None,
    *,
    more_before: Annotated[
        list[str] | None,
        typer.Option("--before", metavar="PATH", help="Another file, folder or quoted glob of BEFORE; repeatable."),
    ] = None,
    more_after: Annotated[
        list[str] | None, typer.Option("--after", metavar="PATH", help="The same of AFTER; repeatable.")
    ] = None,
    spec: Annotated[Path | None, typer.Option("--spec", help="The split, where BEFORE is the old group's.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="A new folder for the tables and the reports.")
    ] = None,
    quarantine: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A new folder for rows that can't be right; otherwise one stops the job."),
    ] = None,
    output_format: ReportFormatOption = "table",
) -> None:
    """Compare offsets and lag before and after, with Spark.

    Exit 6 where a partition is missing, behind, below the log's start or unexpected. BEFORE and AFTER may be files,
    folders or globs, CSV or Parquet.

    Example: migrate-groups reconcile split.toml.run
    """
    require_spark()
    from migrate_groups.files.runs.compared import compared

    asked = compared(
        [*_one(before), *(more_before or [])], [*_one(after), *(more_after or [])], has_spec=spec is not None
    )
    with spark_here(asked.rows) as spark:
        from migrate_groups.spark.reconciliation.job import run_reconcile

        found = run_reconcile(
            spark,
            asked.before,
            asked.after,
            split=_split(spec),
            planned=asked.planned,
            out=output,
            quarantine=quarantine,
        )
    show_reconciliation(found, output_format, output)
    if found.quarantined:
        talk(f"the verdict leaves out {counted(found.quarantined, 'row')} in {quarantine}")
    if not found.clean:
        raise HandOverBroken(f"{counted(found.problems, 'partition')} did not start where the old group stopped")


def _split(spec: Path | None) -> SplitMapping | None:
    if spec is None:
        return None
    from migrate_groups.files import split_toml
    from migrate_groups.snapshots.split import cover
    from migrate_groups.spark.reconciliation.mapping import SplitMapping

    wanted = split_toml.load(spec).spec
    return SplitMapping(wanted.source, lambda topics: cover(wanted, topics).targets)


def _one(path: str | None) -> list[str]:
    return [] if path is None else [path]
