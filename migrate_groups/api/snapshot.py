"""Snapshots and splits, as a program handles them."""

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
    """What looks records up by time, and log start and end offsets: a `Cluster`."""

    def rewind(
        self, snapshot: Snapshot, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return the partitions of a snapshot set to a target."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Which topics of a source group go to which target groups.

    targets: topic patterns by group; a pattern is a glob over whole names, a plain name is one. stay: topics that are
    left with the source group on purpose. Each topic of the source group is in exactly one place, or the split is
    refused; ``fan_out`` allows several.
    """

    source: str
    targets: Mapping[str, Sequence[str]]
    stay: Sequence[str] = ()
    fan_out: bool = False

    @property
    def spec(self) -> SplitSpec:
        """The checked split. Raises `InvalidInput` for an empty name, no target, a group that stands twice."""
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
        """Return the split as a spec file, which `migrate-groups migrate` takes as well."""
        lines = [f"source = {json.dumps(self.source)}", *(["fan_out = true"] if self.fan_out else [])]
        for group, topics in self.targets.items():
            lines += ["", "[[target]]", f"group = {json.dumps(group)}", f"topics = {json.dumps(list(topics))}"]
        if self.stay:
            lines += ["", "[stay]", f"topics = {json.dumps(list(self.stay))}"]
        return "\n".join(lines) + "\n"


def load_split(wanted: Split | Path, options: WriteOptions | None = None) -> SplitFile:
    """Return a split with the options of its write: those given, else those of its file, else the default ones.

    Raises `InvalidInput` naming the key of a file that is wrong.
    """
    if isinstance(wanted, Split):
        content = wanted.to_toml().encode()
        return SplitFile(content=content, spec=wanted.spec, options=options or WriteOptions())
    file = split_toml.load(wanted)
    return file if options is None else replace(file, options=options)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Committed offsets of groups at one moment, with log start and end offsets: a table of `Row`."""

    table: Table

    @staticmethod
    def read(path: Path) -> Snapshot:
        """Return the snapshot in a ``.csv`` or ``.parquet`` file, or in the CSV of ``kafka-consumer-groups``.

        Raises `InvalidInput` where a cell can't be right, naming the line.
        """
        return Snapshot(any_format.load(Path(path)))

    @staticmethod
    def of_rows(rows: Iterable[Row]) -> Snapshot:
        """Return the snapshot of these rows."""
        return Snapshot(Table.of_rows(rows))

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write a ``.csv`` or ``.parquet`` file, whole or not at all. Raises `InvalidInput` where it can't be written.

        ``replace``: also where the file exists.
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
        """Return the rows of these groups, topics (globs) and partitions; an empty choice leaves all.

        Raises `InvalidInput` where a pattern matches nothing.
        """
        kept = self.table.keep({"group": groups}) if groups else self.table
        return Snapshot(select(kept, Selection(topics=tuple(map(TopicPattern, topics)), partitions=tuple(partitions))))

    def split(self, wanted: Split | Path) -> Snapshot:
        """Return the rows under their target groups, each with the group that it hands over from.

        Raises `InvalidInput` where a topic is in no place, or in two.
        """
        return Snapshot(split(self.table, load_split(wanted).spec)[0])

    def given_to(self, *groups: str, fan_out: bool = False) -> Snapshot:
        """Return all rows under this group; under each of several with ``fan_out``. Raises `UsageError`."""
        return Snapshot(name_groups(self.table, groups, fan_out=fan_out, restore=False))

    def rewind(
        self, cluster: LooksUp, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return these partitions set to a time, an offset or a shift, as `Cluster.rewind` looks it up."""
        return cluster.rewind(self, target, past_end=past_end, strict=strict)


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A plan with the rows that it was made from: what is reviewed, and applied exactly as it was, or refused."""

    plan: Plan
    rows: Snapshot

    @staticmethod
    def read(path: Path) -> PlannedWrite:
        """Return the plan in a ``.json`` file. Raises `InvalidInput` where it is damaged, or was altered."""
        saved = plan_json.load(Path(path))
        return PlannedWrite(saved.plan, Snapshot(saved.rows))

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write the plan as JSON, which `migrate-groups apply` takes. Raises `InvalidInput`."""
        content = plan_json.to_bytes(self.plan, self.rows)
        write_whole(Path(path), lambda file: file.write(content), replace=replace)
