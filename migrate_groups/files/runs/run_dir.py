"""The folder of one migration: everything that a review, a way back or a proof needs later."""

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
    """The files of a run.

    ``baseline.parquet`` (the source group before the wait), ``spec.toml``, ``before.parquet`` (the group when it had
    stopped), ``split.parquet`` (the same rows under their new groups), ``fence.parquet`` (how far the offsets topic had
    been written then), ``plan.json``, ``offsets.csv`` (for Kafka's own tool), ``receipt.json``, and ``after.parquet``
    (the new groups once all was written and read back).
    """

    folder: Path

    def __post_init__(self) -> None:
        """Raise `InvalidInput` where nobody can look into the folder: then of all that is in it nothing can be said."""
        status(self.receipt)

    @staticmethod
    def beside(spec: Path) -> RunDir:
        """Return the folder that belongs to a spec: ``<SPEC>.run`` beside it."""
        return RunDir(spec.with_name(f"{spec.name}.run"))

    @property
    def receipt(self) -> Path:
        """The receipt."""
        return self.folder / "receipt.json"

    @property
    def spec(self) -> Path:
        """The spec that was written from."""
        return self.folder / "spec.toml"

    @property
    def baseline(self) -> Path:
        """The source group's snapshot from before the wait, or from when it was first seen stopped."""
        return self.folder / "baseline.parquet"

    @property
    def before(self) -> Path:
        """The old group's snapshot from when it had stopped."""
        return self.folder / "before.parquet"

    @property
    def split(self) -> Path:
        """The rows of `before` under their new groups."""
        return self.folder / "split.parquet"

    @property
    def after(self) -> Path:
        """The new groups' snapshot from right after the write."""
        return self.folder / "after.parquet"

    @property
    def plan(self) -> Path:
        """The plan that was written."""
        return self.folder / "plan.json"

    @property
    def offsets(self) -> Path:
        """The offsets that were written, for Kafka's own tool."""
        return self.folder / "offsets.csv"

    @property
    def fence(self) -> Path:
        """The offsets topic's ends from just before each run's snapshot."""
        return self.folder / "fence.parquet"

    def make(self) -> None:
        """Make the folder.

        Raises `InvalidInput` where it can't be made, or contains files of something else that would be replaced.
        """
        self._check_kept()
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{self.folder} can't be used: {error.strerror or error}") from error

    def save(self, spec: bytes, before: Snapshot, rows: Sequence[Row], plan: Plan, after: Snapshot | None) -> None:
        """Write what the write was made from, and what it came to; without that, what an earlier one left goes.

        ``spec``: the file's bytes as they were loaded, whatever has become of it since.
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
        """Write the baseline: where the group's commits expire during the wait, nothing else holds them."""
        tables.save(Snapshot.of_rows(rows), self.baseline, replace=True)

    def load_baseline(self, group: str) -> Snapshot | None:
        """Return the baseline that a run before this one left of a group, None where there is none."""
        found = tables.load(self.baseline) if status(self.baseline) else None
        return found if found is not None and {row.group for row in found.rows()} == {group} else None

    def keep_fence(self, fence: Fence | None, *, resumed: bool) -> None:
        """Write this run's fence, after those of the runs that it resumes; None: nobody can tell any more."""
        earlier = fence_parquet.load(self.fence) if resumed else []
        fence_parquet.save([*earlier, fence] if fence else [], self.fence)

    def _check_kept(self) -> None:
        """Raise `InvalidInput` where what `save` replaces is not what a run before this one has left."""
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
        fence_parquet.load(self.fence)  # a run that was killed may have left it without a receipt


def _for_kafkas_tool(rows: Snapshot) -> bytes | None:
    """Return the offsets as Kafka's own tool takes them, None where it could not read the name of a group."""
    try:
        return reset_csv.to_bytes(rows)[0]
    except InvalidInput:
        return None


def receipt_in(path: Path) -> Path:
    """Return the receipt that a path means: the file itself, or the one in a run directory. Raises `InvalidInput`."""
    return RunDir(path).receipt if is_folder(path) else path
