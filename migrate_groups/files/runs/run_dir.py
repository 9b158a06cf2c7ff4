"""The run directory: all files of one migration, for reviewers and for later commands such as rollback."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from migrate_groups.errors import InvalidInput
from migrate_groups.files.read import is_folder, status
from migrate_groups.files.runs import plan_json, stop_checkpoint_parquet
from migrate_groups.files.safe_write import check_writable, remove, write_whole
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.files.snapshots import reset_csv
from migrate_groups.model.offsets_topic import StopCheckpoint
from migrate_groups.planning.plan import Plan
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, some

_LONGEST = 200
IN_RECEIPT = 80
"""The most characters of group names in the name of a receipt, which has other parts."""


@dataclass(frozen=True, slots=True)
class RunDir:
    """The directory with all files of one migration.

    - ``baseline.parquet``: the committed offsets of the source group, saved in case they expire before the write
    - ``spec.toml``: the split spec, which says which topics go to which target group
    - ``stop.json``: what the command of ``--stop-command`` has to stop
    - ``before.parquet``: the committed offsets of the source group after it stopped
    - ``split.parquet``: the same rows under their target groups
    - ``stop_checkpoints.parquet``: the log end offsets of ``__consumer_offsets``, read after the source group stopped
    - ``plan.json``: the plan whose offsets were written
    - ``offsets.csv``: the written offsets for ``kafka-consumer-groups``
    - ``receipt.json``: the outcome of every write
    - ``after.parquet``: the committed offsets of the target groups, if all offsets were written and read back
    """

    folder: Path

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if the folder can't be used, for instance for lack of permission."""
        status(self.receipt)

    @staticmethod
    def beside(spec: Path) -> RunDir:
        """Return the run directory of the split spec in the file ``spec``: the folder ``<SPEC>.run`` beside it."""
        return RunDir(spec.with_name(f"{spec.name}.run"))

    def of_group(self, group: str) -> RunDir:
        """Return the run directory of one of several migrated groups: a subfolder whose name is `file_name(group)`."""
        return RunDir(self.folder / file_name(group))

    def of_groups(self) -> list[RunDir]:
        """Return the run directories of the groups of a fleet; empty if this is the run directory of one run."""
        if status(self.receipt):
            return []
        saved = (path for name in ("baseline.parquet", "receipt.json") for path in self.folder.glob(f"*/{name}"))
        return [RunDir(folder) for folder in sorted({path.parent for path in saved})]

    def several(self) -> list[RunDir]:
        """Return those of `of_groups` that have begun to write."""
        return [run for run in self.of_groups() if status(run.receipt)]

    def not_begun(self, others_than: Collection[str] = ()) -> list[str]:
        """Return the groups of a fleet that the user agreed to hand over, and for which no write has begun.

        others_than: groups that are left out. Raises `InvalidInput` if a file is damaged.
        """
        without = {file_name(group) for group in others_than}  # their files, perhaps thousands, are not read
        runs = [run for run in self.of_groups() if run.folder.name not in without]
        left = [run.baseline for run in runs if not status(run.receipt)]
        return sorted({row.group or "" for path in left for row in tables.load(path).rows()})

    def refuse_several(self) -> None:
        """Raise `InvalidInput` if the folder has no receipt, but contains the run directories of groups."""
        if runs := self.several():
            raise InvalidInput(
                f"{self.folder} has the runs of {counted(len(runs), 'group')}: name one, such as {runs[0].folder}"
            )

    @property
    def receipt(self) -> Path:
        """The path of the receipt, which records every write of the migration."""
        return self.folder / "receipt.json"

    @property
    def spec(self) -> Path:
        """The path of the saved split spec that the plan was made from."""
        return self.folder / "spec.toml"

    @property
    def baseline(self) -> Path:
        """The path of a snapshot of the source group, saved in case its committed offsets expire before the write."""
        return self.folder / "baseline.parquet"

    @property
    def before(self) -> Path:
        """The path of the snapshot of the source group, taken after the group stopped."""
        return self.folder / "before.parquet"

    @property
    def split(self) -> Path:
        """The path of the snapshot of the source group with the names of the target groups in the column ``group``."""
        return self.folder / "split.parquet"

    @property
    def after(self) -> Path:
        """The path of the snapshot of the target groups, taken after their offsets were written."""
        return self.folder / "after.parquet"

    @property
    def plan(self) -> Path:
        """The path of the plan whose offsets were written to the cluster."""
        return self.folder / "plan.json"

    @property
    def stop(self) -> Path:
        """The path of the JSON file that tells the command of ``--stop-command`` what to stop."""
        return self.folder / "stop.json"

    @property
    def of_return(self) -> RunDir:
        """The run directory of the group's return to its cluster (``hand-back`` of a move)."""
        return RunDir(self.folder / "hand-back")

    @property
    def offsets(self) -> Path:
        """The path of the written offsets as a CSV file for ``kafka-consumer-groups --reset-offsets --from-file``."""
        return self.folder / "offsets.csv"

    @property
    def checkpoint(self) -> Path:
        """The path of the log end offsets of ``__consumer_offsets``, read after the source group stopped."""
        return self.folder / "stop_checkpoints.parquet"

    @contextmanager
    def made(self) -> Iterator[None]:
        """Make the folder if it does not exist. If it is new and empty after the ``with`` block, remove it.

        Raises `InvalidInput` if the folder can't be made, or if a file in it can't or must not be replaced.
        """
        is_new = not is_folder(self.folder)
        self.make()
        try:
            yield
        finally:
            if is_new:
                with suppress(OSError):
                    self.folder.rmdir()  # fails if there is a file in it

    def make(self) -> None:
        """Make the folder if it does not exist, and check that `save` may write its files there.

        Raises `InvalidInput` if the folder can't be made, or if a file in it can't or must not be replaced.
        """
        self.check_place()
        self._check_kept()
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise InvalidInput(f"{self.folder} can't be used: {reason}; name another folder with --run-dir") from error

    def check_place(self) -> None:
        """Raise `InvalidInput` if the path of the folder is a file, or if the folder above it does not exist."""
        if status(self.folder) and not is_folder(self.folder):
            raise InvalidInput(f"{self.folder} is a file, not a folder: name another folder with --run-dir")
        if not is_folder(self.folder.parent):
            raise InvalidInput(
                f"{self.folder} can't be made: folder {self.folder.parent} does not exist; make it first, or name "
                "another folder with --run-dir"
            )

    def save(
        self, spec: bytes, before: SnapshotTable, rows: Sequence[Row], plan: Plan, after: SnapshotTable | None
    ) -> None:
        """Save the files of a finished write: spec, snapshots, plan and ``offsets.csv``.

        spec: the bytes of the split spec. before: the snapshot of the source group. rows: the snapshot rows that the
        plan was made from, with target groups. after: the snapshot of the target groups; if None, an old
        ``after.parquet`` is removed.

        Raises `InvalidInput` if a file can't be written.
        """
        named = SnapshotTable.of_rows(rows)
        # The bytes as they were loaded, because the file may have been edited since.
        write_whole(self.spec, lambda file: file.write(spec), replace=True)
        for table, path in ((before, self.before), (named, self.split)):
            _save_of_run(table, path, plan)
        document, offsets = plan_json.to_bytes(plan, rows), _for_kafkas_tool(named)
        write_whole(self.plan, lambda file: file.write(document), replace=True)
        remove(self.offsets)
        if offsets is not None:
            write_whole(self.offsets, lambda file: file.write(offsets), replace=True)
        remove(self.after)
        if after is not None:
            _save_of_run(after, self.after, plan)

    def check_compared(self, content: str, *, after: bool) -> None:
        """Raise `InvalidInput` if the snapshots that `reconcile` compares are not of the run that wrote a plan.

        content: the hash of the plan (`Plan.content`). after: whether ``after.parquet`` is compared, too.
        """
        for path in (self.split, self.after) if after else (self.split,):
            if tables.plan_of(path) != content:
                raise other_run(path)

    def keep_baseline(self, rows: Iterable[Row]) -> None:
        """Save snapshot rows of the source group as ``baseline.parquet``, which is replaced if it exists.

        If the group does not exist any more, the file stays as it is. Raises `InvalidInput` if it can't be written.
        """
        # If the committed offsets of the source group expire while the run waits, only this file still has them.
        found = [*rows]
        if any(row.group_type for row in found):
            tables.save(SnapshotTable.of_rows(found), self.baseline, replace=True)

    def load_baseline(self, group: str) -> SnapshotTable | None:
        """Return the snapshot in ``baseline.parquet``; None if the file does not exist or is of another group.

        group: the source group. Raises `InvalidInput` if the file is damaged.
        """
        found = tables.load(self.baseline) if status(self.baseline) else None
        return found if found is not None and {row.group for row in found.rows()} == {group} else None

    def keep_stop_checkpoints(self, checkpoints: Sequence[StopCheckpoint], plan: Plan, *, resumed: str | None) -> None:
        """Save log end offsets of ``__consumer_offsets`` as ``stop_checkpoints.parquet``.

        checkpoints: the log end offsets, one `StopCheckpoint` for each cluster. plan: the plan that is written next.
        resumed: the hash of the plan of the run that this run resumes, or None. The log end offsets of that run and of
        those before it are kept. If ``checkpoints`` is empty, the file has no offsets afterwards.

        Raises `InvalidInput` if the file is damaged or can't be written.
        """
        # Without the log end offsets of this run, `audit` can't prove the hand-over: then earlier ones are dropped.
        earlier = _until(stop_checkpoint_parquet.load(self.checkpoint), resumed) if resumed else {}
        named = {**earlier, plan.content: [*earlier.get(plan.content, ()), *checkpoints]}
        stop_checkpoint_parquet.save(named if checkpoints else {}, self.checkpoint)

    def checkpoints(self, content: str) -> list[StopCheckpoint]:
        """Return the log end offsets of ``__consumer_offsets`` of a run, and of the runs that it resumes.

        The earliest run is first. content: the hash of the plan that the run wrote. The list is empty if the file does
        not exist, or has no offsets. Raises `InvalidInput` if the file is damaged, or is of another run.
        """
        saved = stop_checkpoint_parquet.load(self.checkpoint)
        found = _until(saved, content)
        if saved and not found:
            raise other_run(self.checkpoint)
        return [checkpoint for of in found.values() for checkpoint in of]

    def _check_kept(self) -> None:
        """Raise `InvalidInput` if `save` would replace files that no earlier run wrote, or can't replace a file."""
        kept = (self.spec, self.before, self.split, self.plan, self.offsets, self.after)
        there = [path for path in kept if status(path, follow=False)]
        if there and not any(self.folder.glob("receipt.*json")):
            names = some([path.name for path in there])
            raise InvalidInput(
                f"{self.folder} has {names} but no receipt, so a run would replace files of something else: "
                "move them away, or name another folder with --run-dir"
            )
        for path in [*there, self.checkpoint] if self.folder.is_dir() else []:
            check_writable(path, replace=True)
        # A killed run may leave this file and no receipt, so it is refused only if it is no file of stop checkpoints.
        stop_checkpoint_parquet.load(self.checkpoint)


def _until(checkpoints: Mapping[str, list[StopCheckpoint]], content: str) -> dict[str, list[StopCheckpoint]]:
    """Return the checkpoints of the runs up to the one that wrote the plan with this hash; empty if it has none.

    A later run is left out: it was killed before it wrote anything.
    """
    plans = [*checkpoints]
    return {plan: checkpoints[plan] for plan in plans[: plans.index(content) + 1]} if content in checkpoints else {}


def _save_of_run(table: SnapshotTable, path: Path, plan: Plan) -> None:
    write_whole(path, lambda file: tables.write_parquet(table, file, plan=plan.content), replace=True)


def other_run(path: Path) -> InvalidInput:
    """Return the error for a file of a run directory that another run wrote than the one in the receipt."""
    return InvalidInput(
        f"{path} is not of the run that receipt.json records: restore the file of this run, because nothing else can "
        "take its place"
    )


def _for_kafkas_tool(rows: SnapshotTable) -> bytes | None:
    """Return the bytes of a CSV file for ``kafka-consumer-groups``; None if the tool can't set such offsets."""
    try:
        return reset_csv.to_bytes(rows)[0]
    except InvalidInput:
        return None


def receipt_in(path: Path) -> Path:
    """Return the path of the receipt in a run directory. If ``path`` is not a folder, return ``path``.

    The receipt need not exist. Raises `InvalidInput` if the path can't be used, or if the folder has no receipt but
    contains the run directories of groups.
    """
    if not is_folder(path):
        return path
    run = RunDir(path)
    run.refuse_several()
    return run.receipt


def file_name(*groups: str, most: int = _LONGEST) -> str:
    """Return a file name for groups. Other groups never get the same file name.

    Special characters are percent-encoded, and several names are joined by ``+``. More than ``most`` characters are
    cut, and a hash is appended.
    """
    name = "+".join(quote(group, safe="") for group in sorted(groups))
    if name[:1] in (".", "-"):  # such a file is hidden, or a command takes its name for an option
        name = f"%{ord(name[0]):X}{name[1:]}"
    if len(name) <= most:
        return name
    # File systems allow 255 bytes, and a group's name may have 32,767.
    return f"{name[:most]}={hashlib.sha256(name.encode()).hexdigest()[:16]}"


def plan_of_group(plans: Path, group: str) -> Path:
    """Return the file of a group's plan in the folder of the plans of several groups."""
    return plans / f"{file_name(group)}.json"
