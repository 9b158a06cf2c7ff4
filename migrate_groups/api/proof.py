"""The function `reconcile` of the Python API, which compares offsets and lag before and after a migration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.api.snapshot import Split, load_split
from migrate_groups.migration.reconcile import reconcile as compared
from migrate_groups.spark.session import opener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from migrate_groups.spark.reconciliation.result import Reconciliation

Paths = Path | str | Sequence[Path | str]


def reconcile(
    before: Paths,
    after: Paths = (),
    *,
    split: Split | Path | None = None,
    output: Path | None = None,
    quarantine: Path | None = None,
    spark: SparkSession | None = None,
) -> Reconciliation:
    """Compare committed offsets and lag before and after a migration with Spark, and return the result.

    If a partition has a problem, no error is raised, and ``clean`` of the result is False.

    Args:
        before: one run directory of `migrate`, or snapshots from before the migration. Snapshots may be files, folders
            or globs, also remote ones.
        after: snapshots of the target groups from after the migration. They may be left out for a run directory in
            which all offsets were confirmed, because it has a snapshot from after the migration.
        split: the split. It is needed if ``before`` is a snapshot of the source group.
        output: a new folder for the tables of the result. If None, no tables are written.
        quarantine: a new folder for invalid rows. If None, an invalid row raises `InvalidInput`.
        spark: a Spark session. If None, a session of the active Spark is used, or of a local Spark that is started for
            this call.

    Raises:
        UsageError: ``before`` or ``after`` is missing, or a run directory is combined with ``split`` or further
            snapshots.
        InvalidInput: a file can't be read or is invalid, or ``before`` and ``after`` can't be compared.
        MissingDependency: Spark or Java is not installed.
        Refused: the run in ``before`` wrote nothing, or was rolled back or handed back.
        Undetermined: the run in ``before`` has not finished, or no partition has a committed offset, before or after.
    """
    spec = None if split is None else load_split(split).spec
    return compared(_paths(before), _paths(after), spec, opener(spark), out=output, quarantine=quarantine)


def _paths(given: Paths) -> list[str]:
    return [str(given)] if isinstance(given, Path | str) else [str(each) for each in given]
