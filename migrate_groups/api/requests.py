"""Build the input of ``apply`` and ``migrate`` from the arguments of the Python API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from migrate_groups.api.snapshot import PlannedWrite, Snapshot, Split, load_split
from migrate_groups.arguments import checked_texts
from migrate_groups.errors import UsageError
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.migration.hand_over.apply import ApplyRequest
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.planning.checks.application import AppPrincipal
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.regroup import name_groups


def apply_request(
    what: Snapshot | PlannedWrite, to_groups: Sequence[str], options: WriteOptions | None
) -> ApplyRequest:
    """Return the input of ``apply``: the rows of a snapshot with their target groups, or a saved plan.

    to_groups: one target group for all rows, as a list. If empty, each row's ``group`` is its target group.

    Raises `UsageError` if a target group is missing or not allowed, or if a plan is given with other arguments. Raises
    `InvalidInput` if a target group would get several rows for one partition. Also raises it if ``to_groups`` is
    empty and the snapshot would be written back to its own group, which only ``options.restore`` allows.
    """
    if isinstance(what, PlannedWrite):
        if to_groups or options:
            raise UsageError(
                "a plan has its own groups and options: pass no to_groups and options with it, or make another plan"
            )
        return ApplyRequest(rows=what.rows.table, options=what.plan.options, approved=what.plan)
    chosen = options or WriteOptions()
    rows = name_groups(what.table, checked_texts("to_groups", to_groups), fan_out=False, restore=chosen.restore)
    return ApplyRequest(rows=rows, options=chosen)


def migrate_request(
    split: Split | SplitFile | Path,
    run_dir: Path,
    options: WriteOptions | None,
    approved: Path | None = None,
    app_principals: Sequence[str] = (),
) -> MigrateRequest:
    """Return the input of ``migrate``: a split, the write options, the run directory and the reviewed plan.

    options: if None, those of the spec file, or the defaults. approved: the file of the reviewed plan.
    app_principals: the principals of the new applications, each as ``User:NAME`` or ``GROUP=User:NAME``. Raises
    `InvalidInput` if the split or the plan is invalid, and `UsageError` for a wrong principal.
    """
    file = load_split(split, options)
    reviewed = None if approved is None else (str(approved), PlannedWrite.read(approved).plan)
    principals = [AppPrincipal.parse(each) for each in checked_texts("app_principals", app_principals)]
    run = RunDir(Path(run_dir))
    return MigrateRequest(file=file, run=run, approved=reviewed, app_principals=principals)
