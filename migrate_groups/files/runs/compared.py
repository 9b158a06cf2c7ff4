"""Find the snapshots that `reconcile` compares: files named on the command line, or the files of a run directory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.files.kinds import SNAPSHOT, beginning_of, mistaken
from migrate_groups.files.read import if_missing, is_file, status
from migrate_groups.files.runs import plan_json, receipt_json
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.planning.plan import Change
from migrate_groups.planning.receipt import NOTHING_WRITTEN
from migrate_groups.snapshots.row import Row
from migrate_groups.text import shell_command

# Lower bounds of the bytes of a row (measured: 13 in Parquet, 116 in CSV), so that `Compared.rows` is rather too high.
_ROW_BYTES = {".parquet": 10, ".csv": 50}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The paths of the snapshots that `reconcile` compares.

    before: files, folders or globs with the committed offsets from before the migration. For a run directory, it is the
    snapshot that has the source group's offsets under the names of the target groups.

    after: files, folders or globs with the committed offsets of the target groups from after the migration.

    planned: the partitions for which the source group had no committed offset and the plan set one. Each tuple has
    cluster id, target group, topic, partition number and offset. It is empty without a run directory.
    """

    before: Sequence[str]
    after: Sequence[str]
    planned: Sequence[tuple[str, str, str, int, int]] = ()

    @property
    def rows(self) -> float:
        """An estimate of the number of rows in all files, usually too high; infinite for a folder, glob or remote file.

        If the estimate is low, the caller starts Spark with settings for a small job.
        """
        paths = [Path(path) for path in (*self.before, *self.after)]
        if not all(is_file(path) and path.suffix in _ROW_BYTES for path in paths):
            return math.inf
        return sum(path.stat().st_size / _ROW_BYTES[path.suffix] for path in paths)


def compared(before: Sequence[str], after: Sequence[str], *, has_spec: bool) -> Compared:
    """Return the paths of the snapshots to compare.

    before: paths of snapshots, or one run directory, which has the snapshots. after: paths of snapshots; with a run
    directory, they replace its snapshot of the target groups, and may be left out. has_spec: whether the caller has a
    split spec, which can't be combined with a run directory.

    Raises `UsageError` if ``before`` is missing; if ``after`` is missing without a run directory; or if a run directory
    is combined with a second path in ``before`` or with a spec. Raises `InvalidInput` if a file does not exist or is
    not a snapshot, if the run directory is damaged, or if neither it nor ``after`` has a snapshot of the target groups.
    Raises `Undetermined` if the run directory's receipt has an unfinished write; `Refused` if its run handed nothing
    over, or if a partition was rolled back or handed back.
    """
    run = RunDir(Path(before[0])) if before else None
    if run is not None and (run.receipt.exists() or run.baseline.exists()):
        receipt = receipt_json.load(run.receipt) if run.receipt.exists() else NOTHING_WRITTEN
        receipt.to_judge()
    if run is not None:
        run.refuse_several()
    if run is None or not run.plan.exists():
        _check_files([*before, *after])
        if not before or not after:
            raise UsageError("BEFORE or AFTER is missing: name both, or only a run directory of migrate")
        return Compared(before=before, after=after)
    if has_spec or len(before) > 1:
        raise UsageError(
            f"{run.folder} is a run directory, which has its own BEFORE and split: drop --spec and --before"
        )
    return _of_run(run, after)


def _check_files(paths: Iterable[str]) -> None:
    """Raise `InvalidInput` if a path does not exist, or is a file of another kind than a snapshot.

    Spark would find this out only after seconds. Globs and remote files are not checked.
    """
    for text in paths:
        if ":/" in text or {*text} & {*"*?[{"}:
            continue
        path = Path(text)
        if status(path) is None:
            raise InvalidInput(f"{path} does not exist: {if_missing(path) or 'check the path'}")
        if is_file(path) and (error := mistaken(beginning_of(path), text, SNAPSHOT)):
            raise error


def _of_run(run: RunDir, after: Sequence[str]) -> Compared:
    saved = plan_json.load(run.plan)
    plan, committed = saved.plan, {_place(row) for row in saved.rows.rows() if row.offset is not None}
    if not after and not run.after.exists():
        snapshot = shell_command("snapshot", sorted({change.group for change in plan.changes}), "-o after.parquet")
        raise InvalidInput(
            f"{run.folder} has no {run.after.name}, because the write was not confirmed: run "
            f"migrate-groups {snapshot}, then pass after.parquet as AFTER"
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
