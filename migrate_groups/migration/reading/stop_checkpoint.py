"""Read the log end offsets of ``__consumer_offsets`` from which `audit` later reads the commits."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_groups.clock import Clock
from migrate_groups.errors import NotAuthorized
from migrate_groups.migration.events import Events
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, StopCheckpoint
from migrate_groups.model.partitions import TopicPartition


def take_stop_checkpoint(reader: GroupReader, clock: Clock) -> StopCheckpoint | None:
    """Return the current log end offset of each ``__consumer_offsets`` partition, from which `audit` later reads.

    The offset of a partition without a leader is None. The result is None if the client's principal may not describe
    the topic, or if the topic does not exist.
    """
    try:
        described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if described is None:
            return None
        partitions = [TopicPartition(OFFSETS_TOPIC, number) for number in described.partitions]
        bounds = reader.log_ranges(partitions)
    except NotAuthorized:
        return None
    ends = {each.partition: bounds[each].end if each in bounds else None for each in partitions}
    return StopCheckpoint(cluster_id=reader.cluster_id(), taken_at=clock.now(), ends=ends)


def take_stop_checkpoints(readers: Sequence[GroupReader], clock: Clock, events: Events) -> list[StopCheckpoint]:
    """Return the result of `take_stop_checkpoint` for each cluster of a hand-over.

    If the offsets can't be read on a cluster, tell the user and return an empty list.
    """
    checkpoints = [checkpoint for reader in readers if (checkpoint := take_stop_checkpoint(reader, clock)) is not None]
    if len(checkpoints) == len(readers):
        return checkpoints
    where = "" if len(readers) == 1 else " on both clusters"
    events.said(
        f"audit can't prove this cut-over later, because the log end offsets of {OFFSETS_TOPIC} can't be read{where}: "
        "grant Describe on it before migrate, and Read before audit"
    )
    return []
