"""Make the requests of the use cases from the arguments of the Python API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from migrate_groups.api.snapshot import PlannedWrite, Snapshot, Split, load_split
from migrate_groups.arguments import checked_texts
from migrate_groups.errors import UsageError
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.migration.hand_over.apply import ApplyRequest
from migrate_groups.migration.hand_over.migrate import MigrateRequest
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.regroup import name_groups


def apply_request(
    what: Snapshot | PlannedWrite, to_groups: Sequence[str], options: WriteOptions | None
) -> ApplyRequest:
    """Return the request that writes the rows of a snapshot, or a saved plan as it is.

    to_groups: the target group of all rows; if empty, each row's ``group``. options: None: the defaults.

    Raises `UsageError` if ``to_groups`` or ``options`` is given with a plan; if ``to_groups`` is no list of texts, has
    several names, an invalid one or the group that the snapshot was taken from, or is given with ``options.restore``;
    or if it is empty and a row has no group. Raises `InvalidInput` if several rows have the same partition and target
    group; or if ``to_groups`` and ``options.restore`` are not given, and a row's group is still the one that it was
    taken from.
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
    split: Split | Path, run_dir: Path, options: WriteOptions | None, approved: Path | None = None
) -> MigrateRequest:
    """Return the request that hands over the source group of a split to its target groups.

    options: None: those of the spec file, or the defaults. approved: the file of a reviewed plan. Raises `InvalidInput`
    if the split or the plan is invalid.
    """
    file = load_split(split, options)
    reviewed = None if approved is None else (str(approved), PlannedWrite.read(approved).plan)
    return MigrateRequest(file=file, options=file.options, run=RunDir(Path(run_dir)), approved=reviewed)
