"""The run directory: the files of one migration for review, rollback, hand-back, reconcile and audit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import InvalidInput
from migrate_groups.files.read import is_folder, status
from migrate_groups.files.runs import fence_parquet, plan_json
from migrate_groups.files.safe_write import check_writable, remove, write_whole
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.files.snapshots import reset_csv
from migrate_groups.model.fence import Fence
from migrate_groups.planning.plan import Plan
from migrate_groups.snapshots.snapshot import Row, Snapshot
from migrate_groups.text import some


@dataclass(frozen=True, slots=True)
class RunDir:
    """The directory with the files of a run.

    ``baseline.parquet`` (a snapshot of the source group, kept while the run waits for it to stop), ``spec.toml``,
    ``before.parquet`` (a snapshot of the source group after it stopped), ``split.parquet`` (the same rows under their
    target groups), ``fence.parquet`` (the log end offsets of ``__consumer_offsets`` just before ``before.parquet``),
    ``plan.json``, ``offsets.csv`` (for ``kafka-consumer-groups``), ``receipt.json``, and ``after.parquet`` (a snapshot
    of the target groups, if all offsets were written and read back).
    """

    folder: Path

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if this user may not search the folder, because no file in it can be read then."""
        status(self.receipt)

    @staticmethod
    def beside(spec: Path) -> RunDir:
        """Return the run directory of a split spec: ``<SPEC>.run`` beside it."""
        return RunDir(spec.with_name(f"{spec.name}.run"))

    @property
    def receipt(self) -> Path:
        """The path of the receipt."""
        return self.folder / "receipt.json"

    @property
    def spec(self) -> Path:
        """The path of the split spec that the write was made from."""
        return self.folder / "spec.toml"

    @property
    def baseline(self) -> Path:
        """The path of the snapshot of the source group from before it stopped.

        It is replaced when the stopped group is seen with committed offsets.
        """
        return self.folder / "baseline.parquet"

    @property
    def before(self) -> Path:
        """The path of the snapshot of the source group after it stopped."""
        return self.folder / "before.parquet"

    @property
    def split(self) -> Path:
        """The path of the snapshot with the rows of `before` under their target groups."""
        return self.folder / "split.parquet"

    @property
    def after(self) -> Path:
        """The path of the snapshot of the target groups right after the write."""
        return self.folder / "after.parquet"

    @property
    def plan(self) -> Path:
        """The path of the plan that was written to the cluster."""
        return self.folder / "plan.json"

    @property
    def offsets(self) -> Path:
        """The path of the written offsets as a CSV file for ``kafka-consumer-groups --reset-offsets --from-file``."""
        return self.folder / "offsets.csv"

    @property
    def fence(self) -> Path:
        """The path of the fences: the log end offsets of ``__consumer_offsets`` just before each run's snapshot."""
        return self.folder / "fence.parquet"

    def make(self) -> None:
        """Make the folder, if it does not exist.

        Raises `InvalidInput` if it can't be made, or if `save` would replace files that no earlier run wrote, or can't
        replace one.
        """
        self._check_kept()
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{self.folder} can't be used: {error.strerror or error}") from error

    def save(self, spec: bytes, before: Snapshot, rows: Sequence[Row], plan: Plan, after: Snapshot | None) -> None:
        """Save the files of a finished write: spec, snapshots, plan and ``offsets.csv``.

        spec: the bytes of the split spec as they were loaded, because the file may have been edited since. before: the
        snapshot of the source group. rows: its rows under their target groups. after: the snapshot of the target
        groups; None removes the ``after.parquet`` of an earlier run.
        """
        named = Snapshot.of_rows(rows)
        write_whole(self.spec, lambda file: file.write(spec), replace=True)
        tables.save(before, self.before, replace=True)
        tables.save(named, self.split, replace=True)
        document, offsets = plan_json.to_bytes(plan, rows), _for_kafkas_tool(named)
        write_whole(self.plan, lambda file: file.write(document), replace=True)
        remove(self.offsets)
        if offsets is not None:
            write_whole(self.offsets, lambda file: file.write(offsets), replace=True)
        remove(self.after)
        if after is not None:
            tables.save(after, self.after, replace=True)

    def keep_baseline(self, rows: Iterable[Row]) -> None:
        """Write `baseline`. If the source group's offsets expire while the run waits, only this file still has them."""
        tables.save(Snapshot.of_rows(rows), self.baseline, replace=True)

    def load_baseline(self, group: str) -> Snapshot | None:
        """Return the `baseline` that an earlier run left, or None if there is none or if it is of another group."""
        found = tables.load(self.baseline) if status(self.baseline) else None
        return found if found is not None and {row.group for row in found.rows()} == {group} else None

    def keep_fence(self, fence: Fence | None, *, resumed: bool) -> None:
        """Write the fence of this run: the log end offsets of ``__consumer_offsets``.

        resumed: keep the fences of the earlier runs that this run resumes, and append this one. If ``fence`` is None
        (not known), the file gets no fence at all, because `audit` can't prove the hand-over without this run's fence.
        """
        earlier = fence_parquet.load(self.fence) if resumed else []
        fence_parquet.save([*earlier, fence] if fence else [], self.fence)

    def _check_kept(self) -> None:
        """Raise `InvalidInput` if `save` would replace files that no earlier run wrote, or can't replace one."""
        kept = (self.spec, self.before, self.split, self.plan, self.offsets, self.after)
        there = [path for path in kept if status(path, follow=False)]
        if there and not any(self.folder.glob("receipt.*json")):
            names = some([path.name for path in there])
            raise InvalidInput(
                f"{self.folder} has {names} and no receipt of a run, which would replace that: move it away, or name "
                "another folder with --run-dir"
            )
        for path in [*there, self.fence] if self.folder.is_dir() else []:
            check_writable(path, replace=True)
        # A killed run may leave a fence and no receipt, so fence.parquet is refused only if its content is no fence.
        fence_parquet.load(self.fence)


def _for_kafkas_tool(rows: Snapshot) -> bytes | None:
    """Return the bytes of ``offsets.csv``, or None if ``kafka-consumer-groups`` can't read a group's name from it."""
    try:
        return reset_csv.to_bytes(rows)[0]
    except InvalidInput:
        return None


def receipt_in(path: Path) -> Path:
    """Return the path of a receipt, given the receipt or its run directory. Raises as `is_folder`."""
    return RunDir(path).receipt if is_folder(path) else path
