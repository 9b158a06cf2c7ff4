"""Read the log end offsets of ``__consumer_offsets`` from which `audit` later reads the commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    partitions = partitions_of_offsets_topic(reader)
    if not partitions:
        return None
    try:
        ends = {each: log.end for each, log in reader.log_ranges(partitions).items()}
    except NotAuthorized:
        return None
    return StopCheckpoint(cluster_id=reader.cluster_id(), taken_at=clock.now(), ends=by_number(partitions, ends))


def partitions_of_offsets_topic(reader: GroupReader) -> list[TopicPartition]:
    """Return the partitions of ``__consumer_offsets``.

    The list is empty if the client's principal may not describe the topic, or if the topic does not exist.
    """
    try:
        described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
    except NotAuthorized:
        return []
    return [TopicPartition(OFFSETS_TOPIC, number) for number in described.partitions] if described else []


def by_number(partitions: Sequence[TopicPartition], ends: Mapping[TopicPartition, int]) -> dict[int, int | None]:
    """Return the log end offset of each of these partitions by its number; None if it is not in ``ends``."""
    return {each.partition: ends.get(each) for each in partitions}


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
