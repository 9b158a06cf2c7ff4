"""Recognise errors that mean that a partition's leader has changed, and read the ends of leader epochs (KIP-320)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from migrate_groups.kafka import wire as wire
from migrate_groups.kafka.private import Client
from migrate_groups.model.partitions import LeaderEpoch, TopicPartition

Leader = tuple[int, int]
"""The broker id of a partition's leader, and the leader epoch; the epoch is -1 if the Metadata response has none."""

# The replica id of a consumer, which gets no offset above the high watermark.
_CONSUMER = -1
_LEADER_CHANGES = (
    kafka_errors.NotLeaderForPartitionError,
    # The request had a leader epoch that is over, or that the leader does not know yet (KIP-320).
    kafka_errors.FencedLeaderEpochError,
    kafka_errors.UnknownLeaderEpochError,
    # A new leader knows the log end only after its followers have confirmed it (KIP-207).
    kafka_errors.OffsetNotAvailableError,
)


def raise_leader_change(error_code: int, partition: TopicPartition) -> None:
    """Raise kafka-python's error for ``error_code`` if it means that the partition's leader has changed.

    The error is retriable. Other error codes raise nothing.
    """
    error = kafka_errors.for_code(error_code)
    if issubclass(error, _LEADER_CHANGES):
        raise error(str(partition))  # retriable: the next attempt reads the metadata


def rounds(epochs: Iterable[LeaderEpoch]) -> list[dict[TopicPartition, int]]:
    """Split leader epochs into rounds of requests: dicts with at most one leader epoch for each partition."""
    # A response does not name the epoch of the request, so a request has at most one epoch of a partition.
    rounds: list[dict[TopicPartition, int]] = []
    for each in epochs:
        for of_round in rounds:
            if each.partition not in of_round:
                break
        else:
            rounds.append(of_round := {})
        of_round[each.partition] = each.epoch
    return rounds


async def epoch_ends(
    client: Client, epochs: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, Leader]
) -> dict[LeaderEpoch, int]:
    """Return the offset at which each partition's leader epoch ended (OffsetForLeaderEpoch, KIP-320).

    epochs: one leader epoch by partition. Raises kafka-python's retriable error if a leader has changed. A partition is
    left out if its leader does not know the epoch, or returns another error.
    """
    asked: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition in epochs:
        asked[leaders[partition][0]].append(partition)
    requests = [
        client.send(_offset_for_leader_epoch(partitions, epochs, leaders), broker)
        for broker, partitions in asked.items()
    ]
    found = {}
    for request in requests:
        for topic in (await request).topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.topic, answer.partition)
                raise_leader_change(answer.error_code, partition)
                if not answer.error_code and answer.end_offset >= 0:
                    found[LeaderEpoch(partition=partition, epoch=epochs[partition])] = answer.end_offset
    return found


def _offset_for_leader_epoch(
    partitions: Iterable[TopicPartition],
    epochs: Mapping[TopicPartition, int],
    leaders: Mapping[TopicPartition, Leader],
) -> Any:
    topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    asked = (
        (
            partition,
            topic_class.OffsetForLeaderPartition(
                partition=partition.partition,
                current_leader_epoch=leaders[partition][1],
                leader_epoch=epochs[partition],
            ),
        )
        for partition in partitions
    )
    return OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[topic_class(topic=topic, partitions=of_topic) for topic, of_topic in wire.by_topic(asked).items()],
        min_version=2,
    )
