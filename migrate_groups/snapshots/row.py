"""`Row`, a row of a snapshot: a partition with the committed offset of a consumer group."""

from __future__ import annotations

# Without pyarrow, which takes long to import.
from datetime import datetime, timedelta
from typing import Any

from migrate_groups.model.partitions import CommittedOffset, PartitionValue, TopicPartition
from migrate_groups.schema import UNKNOWN_STATE


class Row(PartitionValue, frozen=True, kw_only=False):
    """One row of a snapshot: a partition with the committed offset of a consumer group.

    - group: the group that has the offset or is to get it; None if no group is named yet.
    - source_group: the group from which ``group`` takes over the offset; None if there is none.
    - offset: the committed offset; None if there is none.
    - oldest_unconsumed_at: the timestamp of the partition's oldest unread record. None if no record is unread, no
      offset is committed, or the timestamp was not requested.
    - Any other field is None if it is not known.
    """

    # In the order of the columns of a `SnapshotTable`.
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

    @staticmethod
    def knowing(**known: Any) -> Row:
        """Return a row with these values. Any other value is not known, and the metadata is empty."""
        return Row(**{**dict.fromkeys(Row.__struct_fields__), "metadata": "", **known})

    @property
    def topic_partition(self) -> TopicPartition:
        """The topic and the partition number in one object."""
        return TopicPartition(self.topic, self.partition)

    @property
    def handed_over_by(self) -> str | None:
        """The group that hands over the offset; None if there is none, or if nobody asked whether it had stopped."""
        return None if self.group_state == UNKNOWN_STATE else self.source_group

    @property
    def committed(self) -> CommittedOffset | None:
        """The committed offset with its leader epoch and metadata; None if there is no committed offset."""
        if self.offset is None:
            return None
        return CommittedOffset(offset=self.offset, leader_epoch=self.leader_epoch, metadata=self.metadata)

    @property
    def lag(self) -> int | None:
        """The log end offset minus the committed offset; None, and never 0, if one of them is not known."""
        if self.offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.offset

    @property
    def time_lag(self) -> timedelta | None:
        """The age of the oldest unread record when the snapshot was taken; None if no unread record is known."""
        if self.oldest_unconsumed_at is None or self.taken_at is None:
            return None
        return max(timedelta(0), self.taken_at - self.oldest_unconsumed_at)
