"""`Row`, a row of a snapshot. This module does without pyarrow, which takes long to import."""

from __future__ import annotations

from datetime import datetime, timedelta

from migrate_groups.model.partitions import CommittedOffset, PartitionValue, TopicPartition


class Row(PartitionValue, frozen=True, kw_only=False):
    """One row of a snapshot. Its fields are the columns of a `SnapshotTable`, in the same order.

    group: the group that has the offset or is to get it; None if no group is named yet. source_group: the group that
    hands over the offset to ``group``; None if the offset was not taken from another group. offset: the committed
    offset; None: no committed offset. oldest_unconsumed_at: the timestamp of the partition's oldest unread record; None
    if no record is unread, no offset is committed, or the timestamp was not requested. Any other field is None if it is
    not known.
    """

    cluster_id: str | None
    taken_at: datetime | None
    group: str | None
    source_group: str | None
    group_state: str | None
    group_type: str | None
    topic: str
    topic_id: str | None
    partition: int
    offset: int | None
    leader_epoch: int | None
    metadata: str
    log_start_offset: int | None
    log_end_offset: int | None
    oldest_unconsumed_at: datetime | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and the partition number in one object."""
        return TopicPartition(self.topic, self.partition)

    @property
    def committed(self) -> CommittedOffset | None:
        """The committed offset with its leader epoch and metadata; None: no committed offset."""
        if self.offset is None:
            return None
        return CommittedOffset(offset=self.offset, leader_epoch=self.leader_epoch, metadata=self.metadata)

    @property
    def lag(self) -> int | None:
        """The log end offset minus the committed offset; None, and never 0, if either is not known."""
        if self.offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.offset

    @property
    def time_lag(self) -> timedelta | None:
        """The age of the oldest unread record when the snapshot was taken.

        None if ``oldest_unconsumed_at`` is None, for instance because no record is unread, or if ``taken_at`` is None.
        """
        if self.oldest_unconsumed_at is None or self.taken_at is None:
            return None
        return max(timedelta(0), self.taken_at - self.oldest_unconsumed_at)
