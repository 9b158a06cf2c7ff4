"""The JSON documents that commands print with ``--format json``; docs/reference/json.md shows each.

Plan and receipt are not here but in ``files/runs``, because commands print them as the bytes of their files. The
documents of commands that write a file of offsets are in ``show/file_documents``, those of list and describe in
``show/group_documents``, that of advise in ``show/advice``. Those of reconcile, audit and history are in the modules of
``show`` with these names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from migrate_groups.demo.ledger import Count
from migrate_groups.model.partitions import TopicPartition

if TYPE_CHECKING:
    from migrate_groups.errors import MigrateGroupsError
    from migrate_groups.migration.watch import Goals, WatchProgress
    from migrate_groups.snapshots.snapshot import SnapshotTable


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


class VerifyDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/verify"):
    """The groups that ``verify`` found stopped.

    topics: the patterns of ``--topic``; empty: all topics. settle: the number of seconds for which neither a committed
    offset nor a member changed.
    """

    groups: tuple[str, ...]
    topics: tuple[str, ...]
    settle: float


class WatchedTopic(Part, frozen=True, kw_only=True):
    """A topic that a watched group has consumed up to the log end offsets in a snapshot.

    partitions: the number of partitions. records: the log end offsets minus the committed offsets in the snapshot, in
    all partitions together. The number of records is lower if the log has gaps or transaction markers.
    """

    topic: str
    partitions: int
    records: int


class WatchDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/watch"):
    """The topics that ``watch`` has seen a group consume to the end.

    seconds: how long the group was watched. partitions, records: the sums over ``topics``. not_watched: the partitions
    without a committed offset in the snapshot.
    """

    group: str
    seconds: float
    partitions: int
    records: int
    topics: tuple[WatchedTopic, ...]
    not_watched: tuple[TopicPartition, ...]

    @staticmethod
    def of(group: str, goals: Goals, done: WatchProgress) -> WatchDocument:
        """Return the document for a group that has consumed up to the log end offsets in a snapshot.

        goals: the range of offsets that it had to consume in each partition. done: its progress when the watch ended.
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

    target_bootstrap_servers: the address of the second cluster with ``--mirror``; otherwise null.
    """

    bootstrap_servers: str
    target_bootstrap_servers: str | None
    kafka_version: str
    brokers: tuple[Broker, ...]


class DemoDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/demo"):
    """How many records were produced, processed, skipped and processed twice in each of the demo's two migrations.

    output: the folder with the demo's files. migrate_groups: the counts after a migration with this tool. naive: the
    counts after a migration with Kafka's own tool, from a snapshot of applications that were still running; in the
    story "clusters", after a start at the offsets that MirrorMaker 2 wrote; null in the story "overload".
    """

    output: Path
    migrate_groups: Count
    naive: Count | None
