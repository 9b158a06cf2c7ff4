"""Find the snapshots that the command ``reconcile`` compares: named files, or the files of a run directory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import InvalidInput, Refused, Undetermined, UsageError
from migrate_groups.files.kinds import SNAPSHOT, beginning_of, mistaken
from migrate_groups.files.read import if_missing, is_file, status
from migrate_groups.files.runs import plan_json, receipt_json
from migrate_groups.files.runs.receipt_file import run_of_return
from migrate_groups.files.runs.run_dir import RunDir, other_run
from migrate_groups.planning.change import Change, Outcome, share_groups
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import NOTHING_WRITTEN
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, named, shell_command, some

# Lower bounds of the bytes of a row (measured: 13 in Parquet, 116 in CSV), so that `Compared.rows` is rather too high.
_ROW_BYTES = {".parquet": 10, ".csv": 50}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The snapshots of committed offsets that the command ``reconcile`` compares.

    before, after: files, folders or globs with the committed offsets from before and after the migration. planned: a
    tuple (cluster id, target group, topic, partition number, offset) for each partition for which the plan has an
    offset although the source group had none; None if there is no plan. hints: sentences for the user, about what a
    receipt does not show.
    """

    before: Sequence[str]
    after: Sequence[str]
    planned: Sequence[tuple[str, str, str, int, int]] | None = None
    hints: tuple[str, ...] = ()

    @property
    def rows(self) -> float:
        """A high estimate of the number of rows in all files; infinite for a folder, a glob or a remote file."""
        paths = [Path(path) for path in (*self.before, *self.after)]
        if not all(is_file(path) and path.suffix in _ROW_BYTES for path in paths):
            return math.inf
        return sum(path.stat().st_size / _ROW_BYTES[path.suffix] for path in paths)


def compared(before: Sequence[str], after: Sequence[str], *, has_spec: bool) -> Compared:
    """Return the snapshots that the command ``reconcile`` compares.

    before: snapshots, or one run directory, or the folder of a fleet, which has several. after: snapshots; may be empty
    with a run directory. has_spec: whether the user passed ``--spec``, which can't be combined with a run directory.

    Raises `UsageError` if the arguments can't be combined; `InvalidInput` if a file is missing or invalid;
    `Undetermined` if a write of the run has not finished; `Refused` if the run handed over no offset, or an offset was
    rolled back or handed back to the source group.
    """
    run = RunDir(Path(before[0])) if before else None
    several = run.several() if run else []
    runs = several or ([run] if run else [])
    judged = [_judged(each) for each in runs]
    if run is None or not (several or run.plan.exists()):
        _check_files([*before, *after])
        if not before or not after:
            raise UsageError("BEFORE or AFTER is missing: name both, or only a run directory of migrate")
        return Compared(before=before, after=after)
    if has_spec or len(before) > 1:
        raise UsageError(
            f"{run.folder} is a run directory, which has its own BEFORE and split: drop --spec and --before"
        )
    found = [
        _of_run(each, after, of_run.content if of_run else None) for each, of_run in zip(runs, judged, strict=True)
    ]
    hints = [hint for of_run in judged if of_run for hint in _hints(of_run)]
    if several and (waiting := run.not_begun()):
        hints.append(f"not handed over, so not compared: {some(waiting)}")
    return Compared(
        before=[path for each in found for path in each.before],
        after=after or [path for each in found for path in each.after],
        planned=[place for each in found for place in each.planned or ()],
        hints=tuple(dict.fromkeys(hints)),
    )


def _judged(run: RunDir) -> Execution | None:
    """Return the hand-over of a run; None if the folder is not known to be one of a run."""
    if not (run.receipt.exists() or run.baseline.exists()):
        return None
    receipt = receipt_json.load(run.receipt) if run.receipt.exists() else NOTHING_WRITTEN
    if back := run_of_return(run.receipt, receipt):
        raise Refused(f"no hand-over to judge: the group has moved back since: reconcile {back}")
    return receipt.hand_over_to_judge()


def _hints(hand_over: Execution) -> tuple[str, ...]:
    """Return what the record of a hand-over says, or does not show, of later consumption and the second client.

    Also who handed over.
    """
    hints = []
    if hand_over.moved:
        hints.append(
            f"{some(hand_over.source_groups)} consumed after the hand-over, or may have, so records may be processed "
            f"twice: audit counts them; {hand_over.moved_in_words}"
        )
    if hand_over.source_groups and not (hand_over.guard_readings or hand_over.options.copy):
        groups = some(hand_over.source_groups)
        hints.append(f"{groups} was not watched after the write: audit shows whether it consumed again")
    if alone := hand_over.count()[Outcome.CONFIRMED_BY_ONE]:
        hints.append(f"{counted(alone, 'partition')} confirmed by one client only, as the receipt says")
    if hand_over.by.operator:
        hints.append(f"handed over by {hand_over.by}")
    return tuple(hints)


def _check_files(paths: Iterable[str]) -> None:
    """Raise `InvalidInput` if a path does not exist, or is a file of another kind than a snapshot.

    Globs and remote files are not checked.
    """
    # Spark would find this out only after seconds.
    for text in paths:
        if ":/" in text or {*text} & {*"*?[{"}:
            continue
        path = Path(text)
        if status(path) is None:
            raise InvalidInput(f"{path} does not exist: {if_missing(path) or 'check the path'}")
        if is_file(path) and (error := mistaken(beginning_of(path), text, SNAPSHOT)):
            raise error


def _of_run(run: RunDir, after: Sequence[str], written: str | None) -> Compared:
    """Return the snapshots of a run directory. written: the hash of the plan in the receipt; None: no receipt."""
    saved = plan_json.load(run.plan)
    if written is not None and saved.plan.content != written:
        raise other_run(run.plan)
    plan, committed = saved.plan, {_place(row) for row in saved.rows.rows() if row.offset is not None}
    if shares := share_groups(plan.changes):
        raise Undetermined(
            f"no verdict: start offsets of {named('share group', shares)} do not show which records it has "
            "acknowledged (KIP-932); audit shows whether the old group has stayed stopped"
        )
    if not after and not run.after.exists():
        snapshot = shell_command("snapshot", sorted({change.group for change in plan.changes}), "-o after.parquet")
        raise InvalidInput(
            f"{run.folder} has no {run.after.name}, because the write was not confirmed: run "
            f"migrate-groups {snapshot}, then pass after.parquet as AFTER"
        )
    run.check_compared(saved.plan.content, after=not after)
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
