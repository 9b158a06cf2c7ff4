"""The interfaces for reading logs: their offsets, the records of ``__consumer_offsets``, and hashes of records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from migrate_groups.model.offsets_topic import LogPiece, Replica
from migrate_groups.model.partitions import LeaderEpoch, LogRange, Timestamps, TopicPartition
from migrate_groups.model.records import Records


class LogReader(Protocol):
    """Reads the offsets of logs. Every method may raise `ClusterUnavailable` or `NotAuthorized`."""

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """Return the log start and log end offset of each partition that exists and has a leader.

        ends, starts: known offsets, to save requests. A known end may still be requested again, because a new leader
        may have a shorter log (docs/kafka-behaviour.md#logs).
        """
        ...

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the last stable offset (LSO) of each partition that exists and has a leader.

        ``read_committed`` consumers get only records before the LSO.
        """
        ...

    def epoch_ends(self, epochs: Collection[LeaderEpoch]) -> Mapping[LeaderEpoch, int]:
        """Return the offset at which each of these leader epochs ended (OffsetForLeaderEpoch, KIP-320).

        An epoch is left out if it has not ended, if the leader does not know it, or if the partition has no leader.
        """
        ...

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Return the offset and timestamp of each partition's first record at or after a time; None if there is none.

        The first record is the one with the lowest offset. Transaction markers and aborted records count too
        (docs/kafka-behaviour.md#logs). A partition without a leader is left out.

        timestamps: the time for each partition, in milliseconds since 1970. Raises ``ValueError`` for a negative one.
        """
        ...

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Return the first record that a ``read_committed`` consumer gets in each partition's range of offsets.

        None: there is no such record. Transaction markers, aborted records and records that were compacted away do not
        count. A partition that does not answer within some seconds is left out.
        """
        ...


class OffsetsTopicReader(Protocol):
    """Reads partitions of ``__consumer_offsets``. Joins no group and commits nothing. Needs Read on the topic."""

    def replicas(self, numbers: Collection[int]) -> Mapping[int, Replica]:
        """Return the replica from which `read` reads each of these partitions from now on; none answers: left out.

        The leader, or if it does not answer, the follower with the highest high watermark.
        """
        ...

    def read(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LogPiece]:
        """Yield the records of ``__consumer_offsets`` between two offsets of each partition, piece by piece.

        positions, ends: by partition number, the first offset to read and the end (exclusive). Reading stops early if
        no record comes within the time-out. Raises `ClusterUnavailable` or `NotAuthorized`.
        """
        ...


class RecordReader(Protocol):
    """Reads records, and returns a hash of each record in place of its content. Joins no group and commits nothing."""

    def read(self, spans: Mapping[TopicPartition, range], *, committed_only: bool) -> Mapping[TopicPartition, Records]:
        """Return the records in a range of offsets of each partition.

        committed_only: leave out the records of aborted and open transactions.

        Raises `NotAuthorized` without Read on a topic; `ClusterUnavailable` if a partition does not answer.
        """
        ...
