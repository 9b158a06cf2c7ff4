"""Find the snapshots that `reconcile` compares: files named on the command line, or the files of a run directory."""

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

# Lower bounds of the size of a row (measured: 13 bytes in Parquet, 116 in CSV), so that
# `Compared.rows` is rather too high.
_ROW_BYTES = {".parquet": 10, ".csv": 50}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The snapshots that are compared: their paths.

    before: the source group's committed offsets, under their target groups. after: the target groups' committed
    offsets. planned: the offsets that the plan set in partitions without a committed offset of the source group, as
    rows of `spark.reconciliation.reconcile.PLANNED`.
    """

    before: Sequence[str]
    after: Sequence[str]
    planned: Sequence[tuple[str, str, str, int, int]] = ()

    @property
    def rows(self) -> float:
        """An estimate of the number of rows, rather too high; infinite for a folder, a glob or a remote file."""
        paths = [Path(path) for path in (*self.before, *self.after)]
        if not all(is_file(path) and path.suffix in _ROW_BYTES for path in paths):
            return math.inf
        return sum(path.stat().st_size / _ROW_BYTES[path.suffix] for path in paths)


def compared(before: Sequence[str], after: Sequence[str], *, has_spec: bool) -> Compared:
    """Return the snapshots to compare: those at the paths ``before`` and ``after``, or those of a run directory.

    If ``before`` is one run directory, its snapshots are compared. Paths in ``after`` then replace its own snapshot of
    the target groups. has_spec: whether the command got a split spec.

    Raises `UsageError` if BEFORE or AFTER is missing, or if a second BEFORE or a spec is given with a run directory;
    `InvalidInput` if the run directory is damaged or has no snapshot of the target groups; `Undetermined` if its
    receipt has an unfinished write; `Refused` if nothing was handed over, or if a partition was rolled back or handed
    back.
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
