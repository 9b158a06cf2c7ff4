"""Read and write the start offsets of share groups (KIP-932), as `group_requests` does with committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import kafka.errors as kafka_errors

from migrate_groups.kafka.connection import Ask, OfGroups
from migrate_groups.kafka.group_requests import FetchedOffset, by_coordinator, note, note_descriptions
from migrate_groups.kafka.private import Client
from migrate_groups.kafka.schemas import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
)
from migrate_groups.kafka.wire import MISSING, KafkaErrorClass, by_topic
from migrate_groups.model.partitions import CommittedOffset, TopicPartition

_NO_SHARE_GROUPS = kafka_errors.UnsupportedVersionError.errno
_NEVER_JOINED = 1
"""The highest epoch of an Empty share group of which nobody has ever been a member
(docs/kafka-behaviour.md#share-groups)."""


def describe_share_offsets(wanted: Mapping[str, Collection[TopicPartition]]) -> Ask[dict[TopicPartition, Any] | None]:
    """Return a coroutine function that reads start offsets of share groups with DescribeShareGroupOffsets (KIP-932).

    The answer for a group is as for `fetch_offsets`, with start offsets as committed offsets; without any if no share
    group has the name. It is None if the group has had members, because it may have acknowledged records after its
    start offsets (docs/kafka-behaviour.md#share-groups).
    """

    async def of_coordinator(
        client: Client, node: Any, groups: list[str], into: OfGroups[dict[TopicPartition, Any] | None]
    ) -> None:
        shares = list[str]()
        if client.offers(DescribeShareGroupOffsetsRequest) and client.offers(ShareGroupDescribeRequest):
            existing = await client.send(ShareGroupDescribeRequest(group_ids=groups), node)
            # Brokers that offer the request, and have share groups switched off, refuse it: Kafka 4.1 by default.
            shares = [each.group_id for each in existing.groups if each.error_code not in (MISSING, _NO_SHARE_GROUPS)]
        into.found.update(
            {group: dict.fromkeys(wanted[group], FetchedOffset()) for group in groups if group not in shares}
        )
        # A request for start offsets makes the topic __share_group_state, even for a group that does not exist.
        if not shares:
            return
        of_group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        topic_class = of_group.DescribeShareGroupOffsetsRequestTopic
        asked = [
            of_group(
                group_id=group,
                topics=[
                    topic_class(topic_name=topic, partitions=numbers)
                    for topic, numbers in by_topic((each, each.partition) for each in wanted[group]).items()
                ],
            )
            for group in shares
        ]
        # Sent on one connection, so that the epochs are read after the offsets: no member had joined before.
        sent = client.send(DescribeShareGroupOffsetsRequest(groups=asked), node)
        asked_epochs = client.send(ShareGroupDescribeRequest(group_ids=shares), node)
        starts, epochs = OfGroups[Any](), OfGroups[Any]()
        for answer in (await sent).groups:
            parts = ((topic.topic_name, each) for topic in answer.topics for each in topic.partitions)
            found = {TopicPartition(topic, each.partition_index): _start(each) for topic, each in parts}
            note(starts, answer.group_id, found, answer.error_code)
        note_descriptions(epochs, await asked_epochs)
        for group in shares:
            if failed := [each.failed[group] for each in (starts, epochs) if group in each.failed]:
                into.failed[group] = failed[0]
            else:
                described = epochs.found[group]
                is_new = described.group_state == "Empty" and described.group_epoch <= _NEVER_JOINED
                into.found[group] = starts.found[group] if is_new else None

    return by_coordinator(of_coordinator)


def alter_share_offsets(
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
) -> Ask[Mapping[TopicPartition, KafkaErrorClass]]:
    """Return a coroutine function that sets start offsets of share groups (AlterShareGroupOffsets, KIP-932).

    A group that does not exist is created. The answer for a group is as for `commit_offsets`.
    """

    async def of_coordinator(client: Client, node: Any, groups: list[str], into: OfGroups[Any]) -> None:
        topic_class = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
        partition_class = topic_class.AlterShareGroupOffsetsRequestPartition
        for group in groups:
            written = (
                (each, partition_class(partition_index=each.partition, start_offset=committed.offset))
                for each, committed in offsets[group].items()
            )
            topics = [topic_class(topic_name=name, partitions=of_it) for name, of_it in by_topic(written).items()]
            answer = await client.send(AlterShareGroupOffsetsRequest(group_id=group, topics=topics), node)
            if answer.error_code:
                into.failed[group] = kafka_errors.for_code(answer.error_code)(answer.error_message)
                continue
            into.found[group] = {
                TopicPartition(topic.topic_name, each.partition_index): kafka_errors.for_code(each.error_code)
                for topic in answer.responses
                for each in topic.partitions
            }

    return by_coordinator(of_coordinator)


def delete_share_offsets(
    partitions: Mapping[str, Collection[TopicPartition]],
) -> Ask[Mapping[TopicPartition, KafkaErrorClass]]:
    """Return a coroutine function that deletes start offsets of share groups (DeleteShareGroupOffsets, KIP-932).

    The start offsets of all partitions of these topics are deleted. The answer for a group is as for `delete_offsets`.
    """

    async def of_coordinator(client: Client, node: Any, groups: list[str], into: OfGroups[Any]) -> None:
        topic_class = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
        for group in groups:
            topics = [topic_class(topic_name=topic) for topic in {each.topic: None for each in partitions[group]}]
            answer = await client.send(DeleteShareGroupOffsetsRequest(group_id=group, topics=topics), node)
            if answer.error_code:
                into.failed[group] = kafka_errors.for_code(answer.error_code)(answer.error_message)
                continue
            # A topic without a start offset is answered with this error.
            nothing = kafka_errors.UnknownTopicOrPartitionError
            errors = {topic.topic_name: kafka_errors.for_code(topic.error_code) for topic in answer.responses}
            into.found[group] = {
                each: kafka_errors.NoError if errors[each.topic] is nothing else errors[each.topic]
                for each in partitions[group]
                if each.topic in errors
            }

    return by_coordinator(of_coordinator)


def _start(answer: Any) -> FetchedOffset:
    """Return the part of a DescribeShareGroupOffsets response about a partition as one of OffsetFetch."""
    # OffsetFetch, too, has no error for a partition that does not exist.
    is_missing = answer.error_code == kafka_errors.UnknownTopicOrPartitionError.errno
    return FetchedOffset() if is_missing else FetchedOffset(answer.error_code, answer.start_offset)
