"""What a reconciliation compares: files that were named, or those of a run directory."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.files.read import is_file
from migrate_groups.files.runs import plan_json, receipt_json
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.planning.plan import Change
from migrate_groups.planning.receipt import NOTHING_WRITTEN
from migrate_groups.snapshots.snapshot import Row

# What a row takes in a file, at the least: measured 13 bytes as Parquet and 116 as CSV.
_ROW_BYTES = {".parquet": 10, ".csv": 50}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Paths of both sides; planned: what a plan set where nothing was committed, as rows of Spark's ``PLANNED``."""

    before: Sequence[str]
    after: Sequence[str]
    planned: Sequence[tuple[str, str, str, int, int]] = ()

    @property
    def rows(self) -> float:
        """About how many there are; of a folder, a glob or a remote file nobody knows, and they may be endless."""
        paths = [Path(path) for path in (*self.before, *self.after)]
        if not all(is_file(path) and path.suffix in _ROW_BYTES for path in paths):
            return math.inf
        return sum(path.stat().st_size / _ROW_BYTES[path.suffix] for path in paths)


def compared(before: Sequence[str], after: Sequence[str], *, has_spec: bool) -> Compared:
    """Return what to compare; the first of ``before`` may be a run directory, which has all that is needed.

    Raises `UsageError` where a side is missing, or named beside a run directory; `InvalidInput` where the directory is
    damaged or incomplete; `Refused` and `Undetermined` where there is nothing to judge of its run.
    """
    run = RunDir(Path(before[0])) if before else None
    if run is not None and (run.receipt.exists() or run.baseline.exists()):
        receipt = receipt_json.load(run.receipt) if run.receipt.exists() else NOTHING_WRITTEN
        receipt.to_judge()
    if run is None or not run.plan.exists():
        if not before or not after:
            raise UsageError("name BEFORE and AFTER, or a run directory of migrate alone")
        return Compared(before=before, after=after)
    if has_spec or len(before) > 1:
        raise UsageError(f"{run.folder} is a run directory, which has its own BEFORE and split: drop --spec, --before")
    return _of_run(run, after)


def _of_run(run: RunDir, after: Sequence[str]) -> Compared:
    saved = plan_json.load(run.plan)
    plan, committed = saved.plan, {_place(row) for row in saved.rows.rows() if row.offset is not None}
    if not after and not run.after.exists():
        groups = shlex.join(sorted({change.group for change in plan.changes}))
        raise InvalidInput(
            f"{run.folder} has no {run.after.name}, since the write was not read back whole: run "
            f"migrate-groups snapshot {groups} -o after.parquet, then pass after.parquet as AFTER"
        )
    return Compared(
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
