"""Commands that prove what happened: reconcile."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from migrate_groups.cli.console import load_table, show, talk
from migrate_groups.errors import HandOverBroken
from migrate_groups.text import counted

# About 500,000 rows of CSV: below, a job is mostly its own start.
_SMALL_BYTES = 64 * 1024 * 1024


def reconcile(
    before: Annotated[
        str, typer.Argument(metavar="BEFORE", help="What was handed over: the split file, or a snapshot.")
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="A snapshot of the new groups.")],
    *,
    spec: Annotated[Path | None, typer.Option("--spec", help="The split, where BEFORE is the old group's.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="A new folder for the tables.")
    ] = None,
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", help="How the verdict is shown.")
    ] = "table",
) -> None:
    """Compare offsets and lag before and after, with Spark.

    Exit 6 where a partition is missing, behind, below the log's start or unexpected.

    Example: migrate-groups reconcile split.csv after.parquet
    """
    mapping = _mapping(Path(before), spec) if spec else None
    talk("starting Spark on this machine")
    from migrate_groups.spark.session import QUICK_START, local_session

    with local_session(jvm_options=QUICK_START if _is_small(before, after) else "") as spark:
        from migrate_groups.spark.job import run_reconcile

        found = run_reconcile(spark, [before], [after], mapping, output)
    from migrate_groups.show import reconciliation

    if output_format == "json":
        sys.stdout.write(json.dumps(reconciliation.document(found), indent=1) + "\n")
    else:
        show(reconciliation.terminal(found))
    if output:
        talk(f"tables written to {output}")
    if not found.clean:
        raise HandOverBroken(f"{counted(found.problems, 'partition')} did not start where the old group stopped")


def _is_small(*paths: str) -> bool:
    return all(Path(path).is_file() and Path(path).stat().st_size < _SMALL_BYTES for path in paths)


def _mapping(before: Path, spec: Path) -> list[tuple[str, str, int, str]]:
    """Return (source group, topic, partition, new group) for each partition that the spec moves."""
    from migrate_groups.files import split_toml
    from migrate_groups.offsets.split import split

    parts, _ = split(load_table(before), split_toml.load(spec).spec)
    return [(row.source_group or "", row.topic, row.partition, row.group or "") for row in parts.rows()]
