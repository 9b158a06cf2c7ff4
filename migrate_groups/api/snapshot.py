"""Snapshots, splits and saved plans for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from migrate_groups.files import split_toml
from migrate_groups.files.runs import plan_json
from migrate_groups.files.safe_write import write_whole
from migrate_groups.files.snapshots import any_format
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.rewind_to import PastEnd, RewindTo
from migrate_groups.snapshots.selection import Selection, TopicPattern, select
from migrate_groups.snapshots.snapshot import Row
from migrate_groups.snapshots.snapshot import Snapshot as Table
from migrate_groups.snapshots.split import SplitSpec, SplitTarget, split


class LooksUp(Protocol):
    """The method of a `Cluster` that looks up offsets by time. A protocol, so that this module does not import it."""

    def rewind(
        self, snapshot: Snapshot, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return the snapshot's partitions with the offsets that ``target`` asks for, as `Cluster.rewind` does."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The topics of a source group that go to each target group.

    targets: topic patterns by target group. A pattern is a glob that must match the whole name; a plain name is a glob.
    stay: patterns of topics that stay with the source group on purpose. fan_out: allow a topic in several target
    groups. The split is refused if a topic of the source group matches no pattern, or, without ``fan_out``, those of
    several groups.
    """

    source: str
    targets: Mapping[str, Sequence[str]]
    stay: Sequence[str] = ()
    fan_out: bool = False

    @property
    def spec(self) -> SplitSpec:
        """The checked split. Raises `InvalidInput` for an empty name, no target, or a group that is named twice."""
        return SplitSpec(
            source=self.source,
            targets=tuple(
                SplitTarget(group=group, topics=tuple(map(TopicPattern, topics)))
                for group, topics in self.targets.items()
            ),
            stay=tuple(map(TopicPattern, self.stay)),
            fan_out=self.fan_out,
        )

    def to_toml(self) -> str:
        """Return the text of the spec file for this split, which `migrate-groups migrate` reads."""
        lines = [f"source = {json.dumps(self.source)}", *(["fan_out = true"] if self.fan_out else [])]
        for group, topics in self.targets.items():
            lines += ["", "[[target]]", f"group = {json.dumps(group)}", f"topics = {json.dumps(list(topics))}"]
        if self.stay:
            lines += ["", "[stay]", f"topics = {json.dumps(list(self.stay))}"]
        return "\n".join(lines) + "\n"


def load_split(wanted: Split | Path, options: WriteOptions | None = None) -> SplitFile:
    """Return a split with the options of its write: ``options``, else those of the spec file, else the defaults.

    Raises `InvalidInput`, which names the key of a spec file that is wrong.
    """
    if isinstance(wanted, Split):
        content = wanted.to_toml().encode()
        return SplitFile(content=content, spec=wanted.spec, options=options or WriteOptions())
    file = split_toml.load(wanted)
    return file if options is None else replace(file, options=options)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table of `Row`: the committed offsets of groups, with log start and log end offsets."""

    table: Table

    @staticmethod
    def read(path: Path) -> Snapshot:
        """Return the snapshot in a ``.csv`` or ``.parquet`` file, or in the CSV of ``kafka-consumer-groups``.

        Raises `InvalidInput`, which names the line or row of an invalid cell.
        """
        return Snapshot(any_format.load(Path(path)))

    @staticmethod
    def of_rows(rows: Iterable[Row]) -> Snapshot:
        """Return a snapshot with these rows. Raises `InvalidInput` if a row is in them twice."""
        return Snapshot(Table.of_rows(rows))

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write a ``.csv`` or ``.parquet`` file, whole or not at all.

        replace: replace the file if it exists.

        Raises `UsageError` for another extension; `InvalidInput` if the file can't be written.
        """
        any_format.save(self.table, Path(path), replace=replace)

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows, sorted by group, topic and partition."""
        return self.table.rows()

    def __len__(self) -> int:
        return len(self.table)

    def filter(
        self,
        *,
        groups: Sequence[str] = (),
        topics: Sequence[str] = (),
        partitions: Sequence[range] = (),
    ) -> Snapshot:
        """Return the rows of these groups, topics (globs) and partitions. An empty argument keeps all.

        Raises `InvalidInput` if a group or a topic pattern matches nothing, or if no row is left.
        """
        patterns = tuple(map(TopicPattern, topics))
        selection = Selection(groups=tuple(groups), topics=patterns, partitions=tuple(partitions))
        return Snapshot(select(self.table, selection))

    def split(self, wanted: Split | Path) -> Snapshot:
        """Return the rows under their target groups, each with its source group. Rows of topics that stay are left out.

        Raises `InvalidInput` if a topic matches no pattern of the split, or, without ``fan_out``, those of several
        groups.
        """
        return Snapshot(split(self.table, load_split(wanted).spec)[0])

    def given_to(self, *groups: str, fan_out: bool = False) -> Snapshot:
        """Return all rows with this target group; with ``fan_out``, once for each of several target groups.

        Raises `UsageError` for several groups without ``fan_out``, and if no group is given and the rows name none.
        """
        return Snapshot(name_groups(self.table, groups, fan_out=fan_out, restore=False))

    def rewind(
        self, cluster: LooksUp, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return the partitions with the offsets that ``target`` asks for, such as a time; see `Cluster.rewind`."""
        return cluster.rewind(self, target, past_end=past_end, strict=strict)


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A plan with the rows that it was made from. `Cluster.apply` writes it as it is, or refuses it."""

    plan: Plan
    rows: Snapshot

    @staticmethod
    def read(path: Path) -> PlannedWrite:
        """Return the plan in a ``.json`` file. Raises `InvalidInput` if the file is damaged or was edited."""
        saved = plan_json.load(Path(path))
        return PlannedWrite(saved.plan, Snapshot(saved.rows))

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write the plan as JSON, which `migrate-groups apply` reads. Raises `InvalidInput` if it can't be written."""
        content = plan_json.to_bytes(self.plan, self.rows)
        write_whole(Path(path), lambda file: file.write(content), replace=replace)
