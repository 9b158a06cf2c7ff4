"""Snapshots, splits and saved plans of the Python API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

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
from migrate_groups.snapshots.rewind_to import PastEnd, RewindTo
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.selection import Selection, TopicPattern, select
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import SplitSpec, SplitTarget, split


class LooksUp(Protocol):
    """An object that looks up offsets, for instance by time. It stands for `Cluster`, which can't be imported here."""

    def rewind(
        self, snapshot: Snapshot, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return the partitions of a snapshot with the offsets that ``target`` requests, in rows without a group.

        past_end: what to do for a partition without a record at or after the time of a `ToTime`: use the log end offset
        (``end``), return no offset (``skip``) or raise `Refused` (``fail``). strict: raise `Refused` if the requested
        offset is outside the log, if the log starts after the time of a `ToTime`, or if ``target`` needs a committed
        offset and a partition has none.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Which topics of a source group go to which target group.

    targets: for each target group its topic patterns. A pattern is a glob that must match the whole name of a topic; a
    plain name is a glob too. stay: patterns of the topics that stay with the source group on purpose. fan_out: whether
    a topic may go to several target groups.

    The split of a source group is refused in these cases:

    - A topic matches no pattern.
    - A topic matches patterns of several target groups, and ``fan_out`` is False.
    - A topic matches a pattern of a target group and a pattern of ``stay``.
    - A pattern matches no topic.
    """

    source: str
    targets: Mapping[str, Sequence[str]]
    stay: Sequence[str] = ()
    fan_out: bool = False

    @property
    def spec(self) -> SplitSpec:
        """The split as a `SplitSpec`, which checks its values.

        Raises `UsageError` if patterns are not a list of texts, or if ``fan_out`` is neither True nor False;
        `InvalidInput` if a group's name is empty, not UTF-8 or used twice, if there is no target group, if a target
        group has no topics, or if a pattern is invalid.
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
        """Return the text of the spec file for this split, which `migrate-groups migrate` reads.

        Raises the errors of `spec`.
        """
        return split_toml.to_toml(self.spec, (), {})


def topic_patterns(name: str, patterns: Sequence[str]) -> tuple[TopicPattern, ...]:
    """Return patterns for the names of topics, made from globs. name: the argument, for the error.

    Raises `UsageError` if ``patterns`` is not a list of texts; `InvalidInput` if a pattern is invalid.
    """
    return tuple(map(TopicPattern, checked_texts(name, patterns)))


def load_split(wanted: Split | Path, options: WriteOptions | None = None) -> SplitFile:
    """Return a split with its write options and the bytes of its spec file.

    wanted: the split, or the path of a spec file. options: the write options; None: those in the spec file, or for a
    `Split` the defaults. Raises `InvalidInput` if the split is invalid. The message names the wrong key of a spec file.
    """
    if isinstance(wanted, Split):
        content = wanted.to_toml().encode()
        return SplitFile(content=content, spec=wanted.spec, options=options or WriteOptions())
    file = split_toml.load(Path(wanted))
    return file if options is None else replace(file, options=options)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table of `Row`: the committed offsets of groups, with log start and log end offsets.

    A method that changes something returns another snapshot.
    """

    table: SnapshotTable

    @staticmethod
    def read(path: Path) -> Snapshot:
        """Return the snapshot in a ``.csv`` or ``.parquet`` file, or in the CSV of ``kafka-consumer-groups``.

        Raises `InvalidInput` if the file can't be read or is not a valid snapshot. The message names the line or row of
        an invalid cell.
        """
        return Snapshot(any_format.load(Path(path)))

    @staticmethod
    def of_rows(rows: Iterable[Row]) -> Snapshot:
        """Return a snapshot with these rows, sorted by group, topic and partition.

        Raises `InvalidInput` if two rows have the same cluster, ``taken_at``, group, source group, topic and partition.
        """
        return Snapshot(SnapshotTable.of_rows(rows))

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write this snapshot to a ``.csv`` or ``.parquet`` file, whole or not at all.

        replace: replace the file if it exists; if false, an existing file is an error.

        Raises `UsageError` for another extension; `InvalidInput` if the file exists and ``replace`` is false, or if it
        can't be written.
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

        Raises `UsageError` if an argument is not a list; `InvalidInput` if a group, a topic pattern or a range of
        partitions matches nothing, or if no row is left.
        """
        selection = Selection(
            groups=checked_texts("groups", groups),
            topics=topic_patterns("topics", topics),
            partitions=_checked_ranges(partitions),
        )
        return Snapshot(select(self.table, selection))

    def split(self, wanted: Split | Path) -> Snapshot:
        """Return the source group's rows, each with its target group. Topics that stay with the source are left out.

        wanted: the split, or the path of a spec file. Rows of other groups are left out. If no row has a group (after a
        rewind), all rows are split, and their source group is None.

        Raises `InvalidInput` if a topic of the source group matches no pattern, matches patterns of several target
        groups without ``fan_out``, or patterns of both a target group and ``stay``; if a pattern matches no topic; if
        only some rows have a group; if the snapshot has no row of the source group, or its rows have been split before
        or were taken at several times.
        """
        return Snapshot(split(self.table, load_split(wanted).spec)[0])

    def given_to(self, *groups: str, fan_out: bool = False) -> Snapshot:
        """Return all rows with another target group.

        groups: one target group, or several with ``fan_out``: then each of them gets all rows. If none is given, the
        rows must have target groups already, for instance from `split`, and are returned unchanged.

        Raises `UsageError` for several groups without ``fan_out``, and for the group that the snapshot was taken from.
        Raises `InvalidInput` if the rows were taken at several times, or if a group is given and several rows have the
        same partition. If no group is given, raises `UsageError` if a row has no group, and `InvalidInput` if a row's
        group is still the one that the snapshot was taken from.
        """
        return Snapshot(name_groups(self.table, groups, fan_out=fan_out, restore=False))

    def rewind(
        self, cluster: LooksUp, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return the partitions with the offsets that ``target`` requests, for instance by time. Writes nothing.

        cluster: the cluster that looks up the offsets. The returned rows name no group: choose one with `given_to`.
        past_end: what to do for a partition without a record at or after the time of a `ToTime`: use the log end offset
        (``end``), return no offset (``skip``) or raise `Refused` (``fail``). strict: raise `Refused` if the requested
        offset is outside the log, if the log starts after the time of a `ToTime`, or if ``target`` needs a committed
        offset and a partition has none.

        Raises `UsageError` if the time of a `ToTime` is in the future, before 1970, or looks like seconds, or if
        ``target`` or ``past_end`` is wrong; `InvalidInput` if several groups have the same partition; `Refused` if the
        snapshot is from another cluster, if a topic was deleted or recreated since, or if a partition has no leader.
        """
        return cluster.rewind(self, target, past_end=past_end, strict=strict)


def _checked_ranges(partitions: Sequence[range]) -> tuple[range, ...]:
    """Return a list of ranges as a tuple. Raises `UsageError` for anything else, such as a single range."""
    # An empty text and an empty range are empty lists too, which would keep all partitions.
    is_list = isinstance(partitions, Sequence) and not isinstance(partitions, str | bytes | range)
    if is_list and all(isinstance(each, range) for each in partitions):
        return tuple(partitions)
    raise UsageError(f"partitions is {partitions!r}; expected a list of ranges, such as [range(3, 6)]")


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A plan with the snapshot rows that it was made from.

    `Cluster.apply` writes the plan exactly as it is, or refuses it if the groups have changed since.
    """

    plan: Plan
    rows: Snapshot

    @staticmethod
    def read(path: Path) -> PlannedWrite:
        """Return the plan in a ``.json`` file. Raises `InvalidInput` if the file is not a plan or was edited."""
        saved = plan_json.load(Path(path))
        return PlannedWrite(saved.plan, Snapshot(saved.rows))

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write the plan as JSON, which `migrate-groups apply` reads.

        replace: replace the file if it exists. Raises `InvalidInput` if it exists and ``replace`` is false, or if it
        can't be written.
        """
        content = plan_json.to_bytes(self.plan, self.rows)
        write_whole(Path(path), lambda file: file.write(content), replace=replace)
