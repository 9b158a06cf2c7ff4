"""Compare the offsets of target groups with those that were handed over, with Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.files.runs.compared import compared
from migrate_groups.snapshots.split import SplitSpec, cover

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import Reconciliation
    from migrate_groups.spark.session import OpenSpark


def reconcile(
    before: Sequence[str],
    after: Sequence[str],
    spec: SplitSpec | None,
    open_spark: OpenSpark,
    *,
    out: Path | None,
    quarantine: Path | None,
) -> Reconciliation:
    """Compare committed offsets and lag before and after a migration, and return the result.

    before, after: as `compared` takes them. spec: the split; needed if ``before`` is a snapshot of the source group.
    out: a new folder for the tables; None: no tables are written. quarantine: a new folder for invalid rows; None: an
    invalid row raises `InvalidInput`.

    Raises the errors of `compared` and of `run_reconcile`.
    """
    asked = compared(before, after, has_spec=spec is not None)
    with open_spark(asked.rows) as spark:
        from migrate_groups.spark.reconciliation.job import run_reconcile
        from migrate_groups.spark.reconciliation.mapping import SplitMapping

        found = run_reconcile(
            spark,
            asked.before,
            asked.after,
            split=None if spec is None else SplitMapping(spec.source, lambda topics: cover(spec, topics).targets),
            planned=asked.planned,
            out=out,
            quarantine=quarantine,
        )
    return replace(found, hints=(*found.hints, *asked.hints))
