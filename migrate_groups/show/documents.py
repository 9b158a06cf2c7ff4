"""The JSON documents that commands print with ``--format json``; docs/reference/json.md shows each.

A plan and a receipt are printed as the bytes of their files, so their forms are in ``files/runs``. Those of list and
describe are in ``show/group_documents``, that of advise in ``show/advice``, and those of the Spark jobs in
``show/reconciliation``, ``show/audit`` and ``show/history``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from migrate_groups.demo.ledger import Count
from migrate_groups.model.partitions import TopicPartition

if TYPE_CHECKING:
    from migrate_groups.errors import MigrateGroupsError
    from migrate_groups.migration.rewind import Rewinding
    from migrate_groups.migration.watch import Goals, WatchProgress
    from migrate_groups.snapshots.rewind import RewindDecision
    from migrate_groups.snapshots.snapshot import SnapshotTable
    from migrate_groups.snapshots.split import Coverage


class Document(msgspec.Struct, frozen=True, tag_field="schema"):
    """A JSON document. ``schema`` is its name; ``schema_version`` counts its incompatible changes."""

    schema_version: Literal[1] = 1


class Part(msgspec.Struct, frozen=True):
    """An object within a JSON document."""


class Error(Part, frozen=True, kw_only=True):
    """Why a command failed.

    kind: the class of the error, such as Refused. exit_code: the exit code of the command. message: the line on stderr.
    """

    kind: str
    exit_code: int
    message: str


class ErrorDocument(Part, frozen=True, kw_only=True):
    """The document of a command that failed before it could print its own document."""

    error: Error


class GroupRows(Part, frozen=True, kw_only=True):
    """The rows of a group in a file.

    group: null if the rows name no group yet. partitions: the number of rows. committed: how many of them have an
    offset. topics: the names of their topics.
    """

    group: str | None
    partitions: int
    committed: int
    topics: tuple[str, ...]


class SnapshotDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/snapshot"):
    """The file that ``snapshot`` wrote: its path, and the rows of each group."""

    output: Path
    groups: tuple[GroupRows, ...]

    @staticmethod
    def of(output: Path, saved: SnapshotTable) -> SnapshotDocument:
        """Return the document for a snapshot that was saved to ``output``."""
        return SnapshotDocument(output=output, groups=rows_by_group(saved))


class FilterDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/filter"):
    """The file that ``filter`` wrote.

    output: its path. kept, left_out: the number of rows. groups: the rows that were kept.
    """

    output: Path
    kept: int
    left_out: int
    groups: tuple[GroupRows, ...]

    @staticmethod
    def of(output: Path, table: SnapshotTable, kept: SnapshotTable) -> FilterDocument:
        """Return the document for the rows of ``table`` that were kept in ``output``."""
        return FilterDocument(
            output=output, kept=len(kept), left_out=len(table) - len(kept), groups=rows_by_group(kept)
        )


class Expansion(Part, frozen=True, kw_only=True):
    """A topic pattern of a split, the topics that it matches, and their target group; null: the topics stay."""

    group: str | None
    pattern: str
    topics: tuple[str, ...]


class SplitDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/split"):
    """The file that ``split`` wrote, and its coverage: every topic of the source group goes to a target group or stays.

    output: its path. source: the source group. targets: the topics of each target group. stay: the topics that stay
    with the source group. patterns: the topics that each pattern matches. left_out: groups whose rows are not in the
    file. groups: the rows in the file.
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

        source: the source group. coverage: where each topic goes. left_out: groups whose rows are not in the file.
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

    output: its path. exported: the number of rows. left_out: the number of partitions without a committed offset.
    """

    output: Path
    exported: int
    left_out: int


class RewoundPartition(Part, frozen=True, kw_only=True):
    """The offset at which the replay of a partition begins; null: auto.offset.reset of the new group decides.

    committed_offset: the offset in the file or of the group that the rewind starts from. to_replay: the number of
    offsets up to the log end. note, detail: why the offset is not simply the requested one, as a word and as a text.
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

    @staticmethod
    def of(decision: RewindDecision) -> RewoundPartition:
        """Return the object for a decision."""
        return RewoundPartition(
            topic=decision.row.topic,
            partition=decision.row.partition,
            log_start_offset=decision.bounds.start,
            log_end_offset=decision.bounds.end,
            committed_offset=decision.row.offset,
            offset=decision.offset,
            to_replay=decision.to_replay,
            note=decision.note,
            detail=decision.detail,
        )


class RewindDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/rewind"):
    """The file that ``rewind`` wrote.

    output: its path. time: the time to which it rewinds; null if it does not rewind by time. to_replay: the number of
    offsets of all partitions. partitions: the decision about each. left_out: other partitions of the same topics.
    """

    output: Path
    time: str | None
    to_replay: int
    partitions: tuple[RewoundPartition, ...]
    left_out: tuple[TopicPartition, ...]

    @staticmethod
    def of(output: Path, time: str | None, found: Rewinding) -> RewindDocument:
        """Return the document for a rewind that was saved to ``output``."""
        return RewindDocument(
            output=output,
            time=time,
            to_replay=sum(decision.to_replay for decision in found.decisions),
            partitions=tuple(map(RewoundPartition.of, found.decisions)),
            left_out=tuple(found.left_out),
        )


class VerifyDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/verify"):
    """The groups that ``verify`` found stopped.

    topics: the patterns of ``--topic``; empty: all topics. settle: the seconds during which neither a committed offset
    nor a member changed.
    """

    groups: tuple[str, ...]
    topics: tuple[str, ...]
    settle: float


class WatchedTopic(Part, frozen=True, kw_only=True):
    """A topic that a group has consumed to the end. records: the number of offsets; records may be fewer."""

    topic: str
    partitions: int
    records: int


class WatchDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/watch"):
    """What a watched group has consumed.

    seconds: how long it was watched. partitions, records: their numbers, over all topics. not_watched: partitions
    without an offset to begin with.
    """

    group: str
    seconds: float
    partitions: int
    records: int
    topics: tuple[WatchedTopic, ...]
    not_watched: tuple[TopicPartition, ...]

    @staticmethod
    def of(group: str, goals: Goals, done: WatchProgress) -> WatchDocument:
        """Return the document for a group that has reached its goals."""
        return WatchDocument(
            group=group,
            seconds=round(done.seconds, 3),
            partitions=done.total.partitions,
            records=done.total.records,
            topics=tuple(
                WatchedTopic(topic=each.topic, partitions=each.partitions, records=each.records) for each in done.topics
            ),
            not_watched=goals.unset,
        )


class Deleted(Part, frozen=True, kw_only=True):
    """A committed offset of a group that ``delete-group`` deletes, with its metadata."""

    topic: str
    partition: int
    offset: int
    metadata: str


class GroupDeletion(Part, frozen=True, kw_only=True):
    """A group, and its committed offsets before the deletion.

    deleted: whether the group no longer exists; false in a dry run. error: why the group was not deleted, or may not
    be; null in a dry run and for a deleted group.
    """

    group: str
    deleted: bool
    error: str | None
    offsets: tuple[Deleted, ...]


class DeleteGroupDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/delete-group"):
    """The groups that ``delete-group`` deleted or, in a dry run, would delete."""

    groups: tuple[GroupDeletion, ...]

    @staticmethod
    def of(
        committed: Mapping[str, SnapshotTable],
        deleted: Collection[str] = (),
        failures: Mapping[str, MigrateGroupsError] = MappingProxyType({}),
    ) -> DeleteGroupDocument:
        """Return the document for groups that were to be deleted, or in a dry run would be.

        committed: the committed offsets of each group before the deletion. deleted: the groups that were deleted.
        failures: by group, why the group was not deleted, or may not be.
        """
        return DeleteGroupDocument(
            groups=tuple(
                GroupDeletion(
                    group=group,
                    deleted=group in deleted,
                    error=str(failures[group]) if group in failures else None,
                    offsets=tuple(
                        Deleted(topic=row.topic, partition=row.partition, offset=row.offset, metadata=row.metadata)
                        for row in rows.rows()
                        if row.offset is not None
                    ),
                )
                for group, rows in committed.items()
            )
        )


class Broker(Part, frozen=True, kw_only=True):
    """A broker of the sandbox. pid: the id of its process."""

    node_id: int
    bootstrap_servers: str
    pid: int


class SandboxDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/sandbox"):
    """The Kafka that ``sandbox`` runs. It is printed as soon as Kafka answers."""

    bootstrap_servers: str
    kafka_version: str
    brokers: tuple[Broker, ...]


class DemoDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/demo"):
    """The records that the demo counted.

    output: the folder with its files. migrate_groups, naive: the counts after a migration with this tool, and with
    Kafka's own tool from a snapshot of running applications; naive is null in the story overload.
    """

    output: Path
    migrate_groups: Count
    naive: Count | None


def rows_by_group(table: SnapshotTable) -> tuple[GroupRows, ...]:
    """Return how many rows each group has in a table."""
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
