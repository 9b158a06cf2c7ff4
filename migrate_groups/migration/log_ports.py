"""The interfaces for reading logs: their offsets, the records of ``__consumer_offsets``, and hashes of records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from migrate_groups.model.offsets_topic import LogPiece
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
        """Return the log start and log end offset of each partition.

        A partition that does not exist or has no leader is left out.

        ends, starts: log end and log start offsets that were read before, to save requests. If both are given for a
        partition, they are returned without a request, even if the partition no longer exists. If only the start is
        given, the end is requested. If only the end is given, the start is requested. Then the given end is returned
        only if this reader has read it, or a higher one, from the current leader in its current leader epoch (KIP-320).
        Otherwise the end is requested too, because the log may have been truncated
        (docs/kafka-behaviour.md#logs).
        """
        ...

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's last stable offset; ``read_committed`` consumers get no records at or after it.

        It is the log end offset, or the offset of the first record of an open transaction. A partition that does not
        exist or has no leader is left out.
        """
        ...

    def epoch_ends(self, epochs: Collection[LeaderEpoch]) -> Mapping[LeaderEpoch, int]:
        """Return the end offset of each of these leader epochs: the offset at which the next leader epoch starts.

        The log has no record of the leader epoch at or after its end offset (OffsetForLeaderEpoch, KIP-320). A leader
        epoch is left out if it is the partition's current one or higher, or if the partition does not exist or has no
        leader.
        """
        ...

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Return, for each partition, the offset and timestamp of the first record at or after a time.

        The first record is the one with the lowest offset, even if the timestamps in the log are out of order; ``None``
        means that there is no such record. Records of open and aborted transactions count. Transaction markers count
        too, with the broker's time (docs/kafka-behaviour.md#logs). A partition that does not exist or has no leader is
        left out.

        timestamps: the time for each partition, in milliseconds since 1970. Raises ``ValueError`` for a negative one.
        """
        ...

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Return the offset and timestamp of the first record that a ``read_committed`` consumer gets in each span.

        spans: by partition, a range of offsets. ``None`` means that there is no such record in it. Transaction markers,
        aborted records and records that were compacted away do not count. A partition that does not answer within some
        seconds, for instance because a transaction is open, is left out, because it is not known whether it has a
        record.
        """
        ...


class OffsetsTopicReader(Protocol):
    """Reads partitions of ``__consumer_offsets``. Joins no group and commits nothing. Needs Read on the topic."""

    def read(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LogPiece]:
        """Yield the records of ``__consumer_offsets`` from the offsets in ``positions`` up to the offsets in ``ends``.

        Both mappings are by partition number. Reading ends earlier if no new record comes within the time-out, for
        instance because an open transaction holds records back. Raises `ClusterUnavailable` or `NotAuthorized`.
        """
        ...


class RecordReader(Protocol):
    """Reads records, and returns a hash of each (its fingerprint) and not its content.

    It joins no group and commits nothing.
    """

    def read(self, spans: Mapping[TopicPartition, range], *, committed_only: bool) -> Mapping[TopicPartition, Records]:
        """Return the records in a span of offsets of each partition.

        committed_only: without the records of aborted and open transactions.

        Raises `NotAuthorized` if Read on a topic is lacking, `ClusterUnavailable` if a partition does not answer.
        """
        ...
