"""The JSON documents of the commands verify, watch, delete-group, sandbox and demo, and the base classes of documents.

docs/reference/json.md shows the documents of all commands.
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

    ``schema`` is the name of the document. ``schema_version`` counts incompatible changes.
    """

    schema_version: Literal[1] = 1


class Part(msgspec.Struct, frozen=True):
    """The base class of objects within a JSON document."""


class Error(Part, frozen=True, kw_only=True):
    """The error with which a command failed.

    kind: the class of the error, such as Refused. exit_code: the exit code of the command. message: the message on
    stderr.
    """

    kind: str
    exit_code: int
    message: str


class ErrorDocument(Part, frozen=True, kw_only=True):
    """The document that a command prints in place of its usual document if it fails."""

    error: Error


class VerifyDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/verify"):
    """The consumer groups that ``verify`` found stopped.

    topics: the topic patterns of ``--topic``; empty means all topics. settle: for how many seconds no committed offset
    and no member changed. sees_every_topic: whether the principal may describe every topic; false: offsets of topics
    that are hidden from it may have moved.
    """

    groups: tuple[str, ...]
    topics: tuple[str, ...]
    settle: float
    sees_every_topic: bool


class WatchedTopic(Part, frozen=True, kw_only=True):
    """A topic that a group has consumed up to the log end offsets in a snapshot.

    records: the group's lag in the snapshot. It counts offsets, so there may be fewer records.
    """

    topic: str
    partitions: int
    records: int


class WatchDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/watch"):
    """The topics that ``watch`` saw a group consume up to the log end offsets in a snapshot.

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

        goals: the offsets that the group had to consume. done: the group's progress when the watch ended.
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
    """A group that ``delete-group`` deletes, and its committed offsets before the deletion.

    deleted: whether the group no longer exists; false in a dry run. error: why the group still exists, or may still
    exist; null if there is no error.
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

        committed: each group's committed offsets before the deletion. deleted: the groups that no longer exist; empty
        in a dry run. failures: the error of each group whose deletion failed.
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
    """A broker of the local Kafka that ``sandbox`` runs. bootstrap_servers: its address. pid: its process id."""

    node_id: int
    bootstrap_servers: str
    pid: int


class SandboxDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/sandbox"):
    """The local Kafka cluster that ``sandbox`` runs; printed as soon as the cluster answers.

    target_bootstrap_servers: the address of the second cluster with ``--mirror``; otherwise null.
    """

    bootstrap_servers: str
    target_bootstrap_servers: str | None
    kafka_version: str
    brokers: tuple[Broker, ...]


class DemoDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/demo"):
    """How many records were produced, processed, skipped and processed twice in the migrations of a demo.

    output: the folder with the demo's files. migrate_groups: the counts after a migration with this tool. naive: the
    counts after a migration without this tool; null if the demo has none.
    """

    output: Path
    migrate_groups: Count
    naive: Count | None
