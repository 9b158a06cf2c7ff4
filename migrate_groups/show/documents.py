"""The JSON documents that commands print with ``--format json``; docs/reference/json.md shows each.

Plan and receipt are not here but in ``files/runs``, because commands print them as the bytes of their files. The
documents of list and describe are in ``show/group_documents``, that of advise is in ``show/advice``. Those of
reconcile, audit and history are in the modules of ``show`` with these names.
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
    """The base class of the JSON documents that commands print.

    The field ``schema`` is the name of the document; ``schema_version`` counts its incompatible changes.
    """

    schema_version: Literal[1] = 1


class Part(msgspec.Struct, frozen=True):
    """The base class of objects within a JSON document."""


class Error(Part, frozen=True, kw_only=True):
    """The error with which a command failed.

    kind: the class of the error, such as Refused. exit_code: the exit code of the command. message: the error message,
    as on stderr.
    """

    kind: str
    exit_code: int
    message: str


class ErrorDocument(Part, frozen=True, kw_only=True):
    """The document that a command prints if it fails before it has printed its usual document."""

    error: Error


class GroupRows(Part, frozen=True, kw_only=True):
    """The rows of one group in a file that a command wrote.

    group: null if the rows have no group, as after a rewind. partitions: the number of rows. committed: the number of
    rows with an offset. topics: the names of the topics in these rows.
    """

    group: str | None
    partitions: int
    committed: int
    topics: tuple[str, ...]


class SnapshotDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/snapshot"):
    """The file that ``snapshot`` wrote. output: its path. groups: the rows of each group in it."""

    output: Path
    groups: tuple[GroupRows, ...]

    @staticmethod
    def of(output: Path, saved: SnapshotTable) -> SnapshotDocument:
        """Return the document for the snapshot ``saved``, which is in the file ``output``."""
        return SnapshotDocument(output=output, groups=rows_by_group(saved))


class FilterDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/filter"):
    """The file that ``filter`` wrote.

    output: its path. kept: the number of rows in it. left_out: the number of rows that were left out. groups: the rows
    of each group in the file.
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

    group: the target group of these topics; null: they stay with the source group.
    """

    group: str | None
    pattern: str
    topics: tuple[str, ...]


class SplitDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/split"):
    """The file that ``split`` wrote, and the target group of each topic of the source group.

    output: the path of the file. source: the source group. targets: the topics of each target group. stay: the topics
    that stay with the source group. patterns: the topics that each pattern matches. left_out: groups whose rows are not
    in the file. groups: the rows of each group in the file.
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

        source: the source group. coverage: the target group of each topic. left_out: groups whose rows are not in the
        file.
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

    output: its path. exported: the number of rows in it. left_out: the number of partitions that are not in the file,
    because they have no committed offset.
    """

    output: Path
    exported: int
    left_out: int


class RewoundPartition(Part, frozen=True, kw_only=True):
    """The offset at which the replay of a partition begins.

    committed_offset: the committed offset in the file or of the group that the rewind starts from; null if there is
    none. offset: the offset at which the replay begins; null: auto.offset.reset of the new group decides. to_replay:
    the number of offsets from there to the log end. note, detail: why the offset is not simply the requested one, as a
    word and as a text; null and "" if it is the requested one.
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
        """Return the JSON object of the offset at which the replay of a partition begins."""
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
    offsets to replay in all partitions. partitions: the offset at which each partition's replay begins. left_out: other
    partitions of the same topics, which are not replayed.
    """

    output: Path
    time: str | None
    to_replay: int
    partitions: tuple[RewoundPartition, ...]
    left_out: tuple[TopicPartition, ...]

    @staticmethod
    def of(output: Path, time: str | None, found: Rewinding) -> RewindDocument:
        """Return the document for the rewind ``found``, which was saved to ``output``.

        time: the time to which it rewinds; None if it does not rewind by time.
        """
        return RewindDocument(
            output=output,
            time=time,
            to_replay=sum(decision.to_replay for decision in found.decisions),
            partitions=tuple(map(RewoundPartition.of, found.decisions)),
            left_out=tuple(found.left_out),
        )


class VerifyDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/verify"):
    """The groups that ``verify`` found stopped.

    topics: the patterns of ``--topic``; empty: all topics. settle: the number of seconds for which neither a committed
    offset nor a member changed.
    """

    groups: tuple[str, ...]
    topics: tuple[str, ...]
    settle: float


class WatchedTopic(Part, frozen=True, kw_only=True):
    """A topic that a watched group has consumed to the end.

    partitions: the number of partitions. records: the number of offsets, which is higher than the number of records if
    the log has gaps or transaction markers.
    """

    topic: str
    partitions: int
    records: int


class WatchDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/watch"):
    """The topics that ``watch`` has seen a group consume to the end.

    seconds: how long the group was watched. partitions: the number of partitions of all topics. records: the number of
    offsets of all topics. not_watched: the partitions without an offset in the snapshot, which were not watched.
    """

    group: str
    seconds: float
    partitions: int
    records: int
    topics: tuple[WatchedTopic, ...]
    not_watched: tuple[TopicPartition, ...]

    @staticmethod
    def of(group: str, goals: Goals, done: WatchProgress) -> WatchDocument:
        """Return the document for a group that has consumed to the end.

        goals: the offsets that it had to read. done: its progress at the end.
        """
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
    """A committed offset of a group in the document of ``delete-group``, with its metadata."""

    topic: str
    partition: int
    offset: int
    metadata: str


class GroupDeletion(Part, frozen=True, kw_only=True):
    """A group in the document of ``delete-group``, and its committed offsets before the deletion.

    deleted: whether the group no longer exists; false in a dry run. error: why the group still exists, or why it is not
    known whether it does; null in a dry run and for a deleted group.
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
        """Return the document for groups that were deleted or, in a dry run, would be deleted.

        committed: the committed offsets of each group before the deletion. deleted: the groups that no longer exist.
        failures: for each other group, why it still exists, or why it is not known whether it does. In a dry run
        ``deleted`` and ``failures`` are empty.
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
    """A broker of the sandbox. node_id: its ``node.id``. bootstrap_servers: its address. pid: the id of its process."""

    node_id: int
    bootstrap_servers: str
    pid: int


class SandboxDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/sandbox"):
    """The Kafka cluster that ``sandbox`` runs. The command prints this document as soon as the cluster answers.

    target_bootstrap_servers: of the second cluster with ``--mirror``; otherwise null.
    """

    bootstrap_servers: str
    target_bootstrap_servers: str | None
    kafka_version: str
    brokers: tuple[Broker, ...]


class DemoDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/demo"):
    """How many records were produced, processed, skipped and processed twice in each of the demo's two migrations.

    output: the folder with the demo's files. migrate_groups: the counts after a migration with this tool. naive: the
    counts after a migration with Kafka's own tool, from a snapshot of applications that were still running; null in the
    story "overload".
    """

    output: Path
    migrate_groups: Count
    naive: Count | None


def rows_by_group(table: SnapshotTable) -> tuple[GroupRows, ...]:
    """Return, for each group in a table, its topics, the number of its rows, and how many of them have an offset."""
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
