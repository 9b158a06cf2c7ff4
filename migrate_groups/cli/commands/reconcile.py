"""Commands that prove what happened: reconcile."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli.console import talk
from migrate_groups.cli.reports import ReportFormatOption, show_reconciliation
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.errors import HandOverBroken, InvalidInput, UsageError
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.planning.plan import Change
    from migrate_groups.snapshots.snapshot import Row
    from migrate_groups.spark.reconciliation.mapping import Split

# What a row takes in a file, at the least: measured 13 bytes as Parquet and 116 as CSV.
_ROW_BYTES = {".parquet": 10, ".csv": 50}


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
    asked = _asked(before, after, more_before or [], more_after or [], spec)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is compared: paths, and the offsets that a plan set where nothing was committed."""

    before: list[str]
    after: list[str]
    planned: list[tuple[str, str, str, int, int]]

    @property
    def rows(self) -> float:
        """About how many there are; of a folder, a glob or a remote file nobody knows, and they may be endless."""
        from migrate_groups.files.read import is_file

        paths = [Path(path) for path in (*self.before, *self.after)]
        if not all(is_file(path) and path.suffix in _ROW_BYTES for path in paths):
            return math.inf
        return sum(path.stat().st_size / _ROW_BYTES[path.suffix] for path in paths)


def _asked(
    before: str | None, after: str | None, more_before: list[str], more_after: list[str], spec: Path | None
) -> _Asked:
    from migrate_groups.files.runs import receipt_json
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.planning.receipt import NOTHING_WRITTEN

    run = RunDir(Path(before)) if before is not None else None
    if run is not None and (run.receipt.exists() or run.baseline.exists()):
        receipt = receipt_json.load(run.receipt) if run.receipt.exists() else NOTHING_WRITTEN
        receipt.to_judge()
    if run is None or not run.plan.exists():
        asked = _Asked(before=[*_one(before), *more_before], after=[*_one(after), *more_after], planned=[])
        if not asked.before or not asked.after:
            raise UsageError("name BEFORE and AFTER, or a run directory of migrate alone")
        return asked
    if spec or more_before:
        raise UsageError(f"{run.folder} is a run directory, which has its own BEFORE and split: drop --spec, --before")
    return _of_run(run, [*_one(after), *more_after])


def _of_run(run: RunDir, after: list[str]) -> _Asked:
    from migrate_groups.files.runs import plan_json

    saved = plan_json.load(run.plan)
    plan, committed = saved.plan, {_place(row) for row in saved.rows.rows() if row.offset is not None}
    if not after and not run.after.exists():
        groups = shlex.join(sorted({change.group for change in plan.changes}))
        raise InvalidInput(
            f"{run.folder} has no {run.after.name}, since the write was not read back whole: run "
            f"migrate-groups snapshot {groups} -o after.parquet, then pass after.parquet as AFTER"
        )
    return _Asked(
        before=[str(run.split)],
        after=after or [str(run.after)],
        planned=[
            (plan.cluster_id, change.group, change.topic, change.partition, change.after.offset)
            for change in plan.changes
            if change.after is not None and _place(change) not in committed
        ],
    )


def _place(of: Row | Change) -> tuple[str | None, str, int]:
    return of.group, of.topic, of.partition


def _split(spec: Path | None) -> Split | None:
    if spec is None:
        return None
    from migrate_groups.files import split_toml
    from migrate_groups.snapshots.split import cover
    from migrate_groups.spark.reconciliation.mapping import Split

    wanted = split_toml.load(spec).spec
    return Split(wanted.source, lambda topics: cover(wanted, topics).targets)


def _one(path: str | None) -> list[str]:
    return [] if path is None else [path]
