"""The JSON documents of the commands that write a file of offsets: snapshot, filter, split, export and rewind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.show.documents import Document, Part

if TYPE_CHECKING:
    from migrate_groups.snapshots.snapshot import SnapshotTable
    from migrate_groups.snapshots.split import Coverage


class GroupRows(Part, frozen=True, kw_only=True):
    """The rows of one group in a file that a command wrote.

    group: null if the rows have no group, as after ``rewind``. partitions: the number of rows. committed: the number of
    rows with an offset.
    """

    group: str | None
    partitions: int
    committed: int
    topics: tuple[str, ...]


class SnapshotDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/snapshot"):
    """The file that ``snapshot`` wrote. output: its path. groups: the number of rows and the topics of each group."""

    output: Path
    groups: tuple[GroupRows, ...]

    @staticmethod
    def of(output: Path, saved: SnapshotTable) -> SnapshotDocument:
        """Return the document for the snapshot ``saved``, which is in the file ``output``."""
        return SnapshotDocument(output=output, groups=rows_by_group(saved))


class FilterDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/filter"):
    """The file that ``filter`` wrote.

    kept: the number of rows in the file. left_out: the number of rows that were left out. groups: the number of rows
    and the topics of each group in the file.
    """

    output: Path
    kept: int
    left_out: int
    groups: tuple[GroupRows, ...]

    @staticmethod
    def of(output: Path, table: SnapshotTable, kept: SnapshotTable) -> FilterDocument:
        """Return the document for the rows ``kept`` of ``table``, which are in the file ``output``."""
        return FilterDocument(
            output=output, kept=len(kept), left_out=len(table) - len(kept), groups=rows_by_group(kept)
        )


class Expansion(Part, frozen=True, kw_only=True):
    """A topic pattern of a split, and the topics that it matches.

    group: the target group of the topics; null if the topics stay with the source group.
    """

    group: str | None
    pattern: str
    topics: tuple[str, ...]


class SplitDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/split"):
    """The file that ``split`` wrote, and the target group of each topic of the source group.

    - targets: the topics of each target group.
    - stay: the topics that stay with the source group.
    - patterns: the topics that each pattern matches.
    - left_out: the groups whose rows are not in the file.
    - groups: the number of rows and the topics of each group in the file.
    """

    output: Path
    source: str
    targets: Mapping[str, tuple[str, ...]]
    stay: tuple[str, ...]
    patterns: tuple[Expansion, ...]
    left_out: tuple[str, ...]
    groups: tuple[GroupRows, ...]

    @staticmethod
    def of(
        output: Path, source: str, coverage: Coverage, left_out: Sequence[str], saved: SnapshotTable
    ) -> SplitDocument:
        """Return the document for the rows ``saved``, which are in the file ``output``.

        coverage: the target group of each topic. left_out: the groups whose rows are not in the file.
        """
        return SplitDocument(
            output=output,
            source=source,
            targets=coverage.targets,
            stay=coverage.stay,
            patterns=tuple(
                Expansion(group=group, pattern=str(pattern), topics=topics)
                for group, pattern, topics in coverage.expansions
            ),
            left_out=tuple(left_out),
            groups=rows_by_group(saved),
        )


class ExportDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/export"):
    """The file that ``export`` wrote.

    exported: the number of rows in the file. left_out: the number of partitions without a committed offset, which are
    not in the file.
    """

    output: Path
    exported: int
    left_out: int


class RewoundPartition(Part, frozen=True, kw_only=True):
    """The offset at which the replay of a partition begins.

    - committed_offset: the committed offset in the file or group that was passed to ``rewind``; null if there is none.
    - offset: the offset at which the replay begins; null if auto.offset.reset of the replaying group decides.
    - to_replay: the number of offsets from ``offset`` to the log end offset.
    - note, detail: why ``offset`` is not the requested one, as a word and as a text; null and "" if it is.
    """

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    committed_offset: int | None
    offset: int | None
    to_replay: int
    note: str | None
    detail: str


class RewindDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/rewind"):
    """The file that ``rewind`` wrote: the offsets at which a replay begins.

    time: the time from which records are replayed; null if no time was requested. to_replay: the number of offsets to
    replay. left_out: the other partitions of the replayed topics.
    """

    output: Path
    time: str | None
    to_replay: int
    partitions: tuple[RewoundPartition, ...]
    left_out: tuple[TopicPartition, ...]


def rows_by_group(table: SnapshotTable) -> tuple[GroupRows, ...]:
    """Return, for each group in a table, its topics, the number of its rows, and the number of rows with an offset."""
    partitions: dict[str | None, int] = defaultdict(int)
    committed: dict[str | None, int] = defaultdict(int)
    topics: dict[str | None, set[str]] = defaultdict(set)
    for row in table.rows():
        partitions[row.group] += 1
        committed[row.group] += row.offset is not None
        topics[row.group].add(row.topic)
    return tuple(
        GroupRows(group=group, partitions=number, committed=committed[group], topics=tuple(sorted(topics[group])))
        for group, number in partitions.items()
    )
