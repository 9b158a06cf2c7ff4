"""Snapshots, splits and saved plans of the Python API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from migrate_groups.arguments import check_bool, checked_texts
from migrate_groups.errors import UsageError
from migrate_groups.files import split_toml
from migrate_groups.files.runs import plan_json
from migrate_groups.files.safe_write import write_whole
from migrate_groups.files.snapshots import any_format
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.selection import Selection, TopicPattern, select
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import SplitSpec, SplitTarget, split


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Which topics of a source group go to which target group.

    targets: the topic patterns of each target group. A pattern is a topic name or a glob, and must match the whole
    name. stay: patterns of the topics that stay with the source group. fan_out: allow a topic to go to several target
    groups.

    A split is refused in these cases:

    - A topic of the source group matches no pattern.
    - A topic goes to several target groups, and ``fan_out`` is False.
    - A topic goes to a target group and also stays.
    - A pattern matches no topic.
    """

    source: str
    targets: Mapping[str, Sequence[str]]
    stay: Sequence[str] = ()
    fan_out: bool = False

    @property
    def spec(self) -> SplitSpec:
        """The split as a `SplitSpec`, which checks its values.

        Raises `UsageError` if patterns are not a list of texts, or if ``fan_out`` is neither True nor False. Raises
        `InvalidInput` if a group's name or a pattern is invalid, if there is no target group, or if a target group has
        no topics.
        """
        check_bool("fan_out", self.fan_out)
        return SplitSpec(
            source=self.source,
            targets=tuple(
                SplitTarget(group=group, topics=topic_patterns(f"targets of {group!r}", topics))
                for group, topics in self.targets.items()
            ),
            stay=topic_patterns("stay", self.stay),
            fan_out=self.fan_out,
        )

    def to_toml(self) -> str:
        """Return the text of the spec file for this split, which ``migrate-groups migrate`` reads.

        Raises `UsageError` or `InvalidInput` if the split is invalid.
        """
        return split_toml.to_toml(self.spec, (), {})


def topic_patterns(name: str, patterns: Sequence[str]) -> tuple[TopicPattern, ...]:
    """Return a pattern for each glob of topic names. name: the argument that the error names.

    Raises `UsageError` if ``patterns`` is not a list of texts, and `InvalidInput` if a pattern is invalid.
    """
    return tuple(map(TopicPattern, checked_texts(name, patterns)))


def load_split(wanted: Split | SplitFile | Path, options: WriteOptions | None = None) -> SplitFile:
    """Return a split with its write options and the bytes of its spec file.

    wanted: the split, the content of a spec file, or its path. options: if None, those in the spec file, or the
    defaults. Raises `InvalidInput` if the split is invalid.
    """
    if isinstance(wanted, Split):
        content = wanted.to_toml().encode()
        return SplitFile(content=content, spec=wanted.spec, options=options or WriteOptions())
    file = wanted if isinstance(wanted, SplitFile) else split_toml.load(Path(wanted))
    return file if options is None else replace(file, options=options)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table of `Row`: the committed offsets of groups, with log start and log end offsets.

    It never changes: methods such as `filter` and `split` return a new snapshot.
    """

    table: SnapshotTable

    @staticmethod
    def read(path: Path) -> Snapshot:
        """Return the snapshot in a ``.csv`` or ``.parquet`` file. A CSV file of ``kafka-consumer-groups`` is read too.

        Raises `InvalidInput` if the file can't be read or is not a valid snapshot.
        """
        return Snapshot(any_format.load(Path(path)))

    @staticmethod
    def of_rows(rows: Iterable[Row]) -> Snapshot:
        """Return a snapshot with these rows, sorted by group, topic and partition.

        Raises `InvalidInput` if two rows have the same cluster, ``taken_at``, group, source group, topic and partition.
        """
        return Snapshot(SnapshotTable.of_rows(rows))

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write this snapshot to a ``.csv`` or ``.parquet`` file. If the write fails, no incomplete file is left.

        replace: replace an existing file. Raises `UsageError` for another extension. Raises `InvalidInput` if the file
        exists and ``replace`` is False, or if the file can't be written.
        """
        any_format.save(self.table, Path(path), replace=replace)

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows, sorted by group, topic and partition."""
        return self.table.rows()

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"<Snapshot: {self.table.in_words()}>"

    def filter(
        self,
        *,
        groups: Sequence[str] = (),
        topics: Sequence[str] = (),
        partitions: Sequence[range] = (),
    ) -> Snapshot:
        """Return the rows of these groups, topics (names or globs) and partition numbers. An empty argument keeps all.

        Raises `UsageError` if an argument is not a list. Raises `InvalidInput` if one of the groups, topics or ranges
        matches nothing, or if no row is left.
        """
        selection = Selection(
            groups=checked_texts("groups", groups),
            topics=topic_patterns("topics", topics),
            partitions=_checked_ranges(partitions),
        )
        return Snapshot(select(self.table, selection))

    def split(self, wanted: Split | Path) -> Snapshot:
        """Return the source group's rows, each with its target group.

        Rows of topics that stay, and rows of other groups, are left out. If no row has a group (as after a rewind), all
        rows are split.

        wanted: the split, or the path of a spec file.

        Raises `InvalidInput` in these cases:

        - A topic of the source group matches no pattern.
        - A topic goes to several target groups without ``fan_out``.
        - A topic goes to a target group and also stays.
        - A pattern matches no topic.
        - A target group is the source group.
        - Only some rows have a group.
        - The source group has no rows, or several rows for one partition.
        - The rows were split before.
        """
        return Snapshot(split(self.table, load_split(wanted).spec)[0])

    def given_to(self, *groups: str, fan_out: bool = False) -> Snapshot:
        """Return all rows with another target group.

        groups: one target group. With ``fan_out``, several: each gets all rows. If no group is given, the rows must
        have target groups already, and are returned unchanged.

        Raises:
            UsageError: several groups are given without ``fan_out``; a given group is the group that the snapshot was
                taken from; or no group is given and a row has no target group.
            InvalidInput: a target group would get several rows for one partition; or no group is given, and a row's
                group is still the group that the row was taken from.
        """
        return Snapshot(name_groups(self.table, groups, fan_out=fan_out, restore=False))


def _checked_ranges(partitions: Sequence[range]) -> tuple[range, ...]:
    """Return a list of ranges as a tuple. Raises `UsageError` for anything else, such as a single range."""
    # An empty text and an empty range are empty lists too, which would keep all partitions.
    is_list = isinstance(partitions, Sequence) and not isinstance(partitions, str | bytes | range)
    if is_list and all(isinstance(each, range) for each in partitions):
        return tuple(partitions)
    raise UsageError(f"partitions is {partitions!r}; expected a list of ranges, such as [range(3, 6)]")


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A plan of a write of committed offsets, with the snapshot rows that it was made from.

    `Cluster.apply` writes the plan as it is, or refuses it if the groups have changed since.
    """

    plan: Plan
    rows: Snapshot

    @staticmethod
    def read(path: Path) -> PlannedWrite:
        """Return the plan in a ``.json`` file. Raises `InvalidInput` if the file is not a plan or was edited."""
        saved = plan_json.load(Path(path))
        return PlannedWrite(saved.plan, Snapshot(saved.rows))

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write the plan to a JSON file, which ``migrate-groups apply`` reads.

        replace: replace an existing file. Raises `InvalidInput` if the file exists and ``replace`` is False, or if the
        file can't be written.
        """
        content = plan_json.to_bytes(self.plan, self.rows)
        write_whole(Path(path), lambda file: file.write(content), replace=replace)
