"""The results of ``verify``, ``watch``, ``delete-group``, ``sandbox`` and ``demo``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from migrate_groups.demo.ledger import Count
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.written_by import WrittenBy
from migrate_groups.show.documents import Document, Part, of_row, row_of
from migrate_groups.show.outage import outage_in_words
from migrate_groups.show.result import COUNT, NAME, OFFSET, SPAN, TEXT, WORD, Column, Line, Result, Table
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.demo.scene import Ending
    from migrate_groups.errors import MigrateGroupsError
    from migrate_groups.migration.watch import Goals, WatchProgress
    from migrate_groups.sandbox.broker import Sandbox
    from migrate_groups.snapshots.snapshot import SnapshotTable

_DELETED: list[Column[Row]] = [
    Column("topic", NAME, lambda row: row.topic, "topic"),
    Column("partition", OFFSET, lambda row: row.partition, "partition"),
    Column("committed", OFFSET, lambda row: row.offset, "offset"),
    Column("", TEXT, lambda row: row.metadata, "metadata"),
    Column("log start", OFFSET, lambda row: row.log_start_offset),
    Column("log end", OFFSET, lambda row: row.log_end_offset),
    Column("lag", OFFSET, lambda row: row.lag),
]
_TIME_LAG: Column[Row] = Column(
    "time lag", SPAN, lambda row: None if row.time_lag is None else row.time_lag.total_seconds()
)
_COUNTED: list[Column[tuple[str, Count]]] = [
    Column("", WORD, lambda row: row[0]),
    Column("produced", COUNT, lambda row: row[1].produced),
    Column("processed", COUNT, lambda row: row[1].processed),
    Column("skipped", COUNT, lambda row: row[1].skipped),
    Column("twice", COUNT, lambda row: row[1].twice),
]


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


@row_of(_DELETED)
class Deleted:
    """A committed offset of a group in the document of ``delete-group``, with its metadata."""


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
    """The groups that ``delete-group`` deleted or, in a dry run, would delete.

    operator: the user and host that deleted. version: of the tool. reference: what the user passed as ``--reference``,
    such as the number of a change ticket; or empty.
    """

    groups: tuple[GroupDeletion, ...]
    operator: str
    version: str
    reference: str


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
    counts after a migration without this tool; null if the demo has none. outage: the measured outage of the hand-over,
    as a sentence; empty if the demo shows none.
    """

    output: Path
    migrate_groups: Count
    naive: Count | None
    outage: str


def verified(document: VerifyDocument, settle: str) -> Result:
    """Return the sentence that groups have stopped. settle: the duration as the user typed it."""
    groups, topics = some(document.groups), some(document.topics)
    stopped = f"{groups}; no member, and no offset moved within {settle}"
    if topics:
        stopped = f"{topics} of {groups}; no member on these topics, and no offset of theirs moved within {settle}"
    unseen = "" if document.sees_every_topic else "; topics that are hidden from this principal are not included"
    return Result(document=document, parts=[Line(f"stopped: {stopped}{unseen}")])


def watched(group: str, goals: Goals, done: WatchProgress) -> Result:
    """Return the sentence that a group has consumed up to the log end offsets in a snapshot.

    goals: the offsets that the group had to consume. done: the group's progress when the watch ended.
    """
    document = WatchDocument(
        group=group,
        seconds=round(done.seconds, 3),
        partitions=done.total.partitions,
        records=done.total.records,
        topics=tuple(
            WatchedTopic(topic=each.topic, partitions=each.partitions, records=each.records) for each in done.topics
        ),
        not_watched=goals.unset,
    )
    partitions, records = counted(document.partitions, "partition"), counted(document.records, "record")
    reached = f"reached: {partitions} of {group}, {records}, watched for {done.seconds:.0f} s"
    return Result(document=document, parts=[Line(reached)])


def committed(rows: Sequence[Row]) -> Result:
    """Return a table with one line per partition: committed offset, log start offset, log end offset and lag.

    Values that are not known are ``-``. A column for the time lag is added if any time lag is known.
    """
    times = [_TIME_LAG] if any(row.time_lag is not None for row in rows) else []
    return Result(parts=[Table(columns=[*_DELETED, *times], rows=rows, thing="partition")])


def deleted(
    committed: Mapping[str, SnapshotTable],
    gone: Collection[str] = (),
    failures: Mapping[str, MigrateGroupsError] = MappingProxyType({}),
    *,
    by: WrittenBy,
) -> DeleteGroupDocument:
    """Return the document for groups that were deleted or, in a dry run, would be deleted.

    committed: each group's committed offsets before the deletion. gone: the groups that no longer exist; empty in a dry
    run. failures: the error of each group whose deletion failed. by: who deletes.
    """
    return DeleteGroupDocument(
        groups=tuple(
            GroupDeletion(
                group=group,
                deleted=group in gone,
                error=str(failures[group]) if group in failures else None,
                offsets=tuple(of_row(Deleted, _DELETED, row) for row in rows.rows() if row.offset is not None),
            )
            for group, rows in committed.items()
        ),
        operator=by.operator,
        version=by.version,
        reference=by.reference,
    )


def sandbox(kafka: Sandbox, version: str, target: Sandbox | None = None) -> Result:
    """Return the address of a local cluster, then that of a second cluster (``target``) if there is one."""
    document = SandboxDocument(
        bootstrap_servers=kafka.bootstrap_servers,
        target_bootstrap_servers=None if target is None else target.bootstrap_servers,
        kafka_version=version,
        brokers=tuple(
            Broker(node_id=node.node_id, bootstrap_servers=node.bootstrap_servers, pid=node.pid) for node in kafka.nodes
        ),
    )
    return Result(document=document, parts=[Line(each.bootstrap_servers) for each in (kafka, target) if each])


def demo(output: Path, ending: Ending) -> Result:
    """Return how many records were skipped or processed twice, with this tool and without it.

    output: the folder with the demo's files.
    """
    ways = (("migrate-groups", ending.ours), (ending.naive_way, ending.naive))
    rows = [(way, count) for way, count in ways if count is not None]
    ours = ending.ours
    total = f"produced {ours.produced:,}, processed {ours.processed:,}, skipped {ours.skipped:,}, twice {ours.twice:,}"
    outage = outage_in_words(ending.hand_over) if ending.hand_over else ""
    return Result(
        document=DemoDocument(output=output, migrate_groups=ours, naive=ending.naive, outage=outage),
        parts=[
            Line(""),
            Table(columns=_COUNTED, rows=rows),
            Line(""),
            *([Line(outage)] if outage else []),
            Line(total),
        ],
    )
