"""Kafka's requests and answers through kafka-python's protocol classes, for `kafka_python`.

The classes are used directly where kafka-python's admin methods lose something: ``require_stable`` and an error for
each partition (KIP-447), one partition's error raised for the whole call, groups whose members are no consumers.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

import kafka.errors as kafka_errors
import msgspec
from kafka import KafkaAdminClient
from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.consumer.group import DEFAULT_GENERATION_ID, UNKNOWN_MEMBER_ID
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.cluster.kafka_connection import in_kafkas_words
from migrate_groups.cluster.ports import (
    Answer,
    CommittedOffset,
    GroupDescription,
    Member,
    TopicPartition,
    WriteAnswer,
)
from migrate_groups.errors import Refused

T = TypeVar("T")
V = TypeVar("V")
Request = Callable[[KafkaAdminClient], Awaitable[T]]
PartitionError = type[kafka_errors.KafkaError]

# The broker gave up waiting, or failed somewhere inside: the commit may be in the log all the same.
_UNDECIDED = (kafka_errors.RequestTimedOutError, kafka_errors.UnknownError)
UNSTABLE = kafka_errors.UnstableOffsetCommitError.errno
# kafka-python encodes the later, flexible versions in twice the time (measured), and they say nothing more here.
_LAST_PLAIN_VERSION = 7


class _WrittenOffset(msgspec.Struct, frozen=True, gc=False):
    """OffsetCommitRequestPartition, of which kafka-python's class takes ten times as long to make."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str


def describe(group: str, *, permissions: bool = False) -> Request[Any]:
    """Return the request for one group's DescribedGroup, whatever its protocol type; a missing one is Dead."""

    async def request(client: KafkaAdminClient) -> Any:
        coordinator = await client._find_coordinator_id(group)
        # From version 6 on a missing group is an error, which does not say what this principal may do with it.
        wire = DescribeGroupsRequest(groups=[group], include_authorized_operations=permissions, max_version=5)
        answer = (await client._manager.send(wire, node_id=coordinator)).groups[0]
        error = kafka_errors.for_code(answer.error_code)
        if error is not kafka_errors.NoError:
            raise error(f"describing {group}")
        return answer

    return request


async def list_groups(client: KafkaAdminClient) -> dict[str, dict[str, str]]:
    """Return state, type and protocol type of every group that this principal may describe."""
    listed = await client._async_list_groups()
    # Brokers before 4.0 know no types, and then every group is a classic one; before 2.6 no states either.
    return {
        entry["group_id"]: {
            "group_state": entry.get("group_state") or "Unknown",
            "group_type": entry.get("group_type") or "classic",
            "protocol_type": entry["protocol_type"],
        }
        for entry in listed
    }


def classic_group(answer: Any) -> GroupDescription:
    """Turn a DescribedGroup into a description. Raises `Refused` where nobody can tell what a member holds."""
    is_consumer = answer.protocol_type == "consumer"
    return GroupDescription(
        group=answer.group_id,
        state=answer.group_state,
        group_type="classic",
        protocol_type=answer.protocol_type,
        assignor=answer.protocol_data if is_consumer else "",
        members=tuple(_member(answer.group_id, member, is_consumer=is_consumer) for member in answer.members),
    )


def _member(group: str, member: Any, *, is_consumer: bool) -> Member:
    try:
        # Only consumers put Kafka's consumer protocol into these bytes; Connect workers, for one, do not.
        subscription, assignment = _decoded(member) if is_consumer else ([], [])
    except (struct.error, TypeError, ValueError) as error:
        raise Refused(
            f"group {group!r}: what member {member.member_id} ({member.client_id} at {member.client_host}) holds is "
            "not known, since what it sent is not Kafka's consumer protocol; stop it, and try again"
        ) from error
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        group_instance_id=member.group_instance_id,
        assignment=frozenset(TopicPartition(*partition) for partition in assignment),
        subscription=frozenset(subscription),
    )


def _decoded(member: Any) -> tuple[list[str], list[KafkaTopicPartition]]:
    """Return the topics and the partitions in a member's bytes, of which a rebalance leaves none.

    Raises ``struct.error`` or ``ValueError`` where they end too early, ``TypeError`` where they hold no list.
    """
    subscription, assignment = [], []
    if member.member_metadata:
        subscription = [*ConsumerProtocolSubscription.decode(member.member_metadata).topics]
    if member.member_assignment:
        assignment = ConsumerProtocolAssignment.decode(member.member_assignment).partitions()
    if None in (*subscription, *(partition.topic for partition in assignment)):
        raise ValueError("a topic without a name")
    return subscription, assignment


async def topics(client: KafkaAdminClient, names: Collection[str] | None, *, permissions: bool = False) -> list[Any]:
    """Return the Metadata answer for each of these topics, or for all where ``names`` is None; creates none.

    Not through `KafkaAdminClient`, which turns every partition into a dict, in as much time as reading it takes.
    """
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=None if names is None else [topic(name=name) for name in sorted(names)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=permissions,
    )
    found: list[Any] = (await client._manager.send(request)).topics
    return found


async def fetch_offsets(
    client: KafkaAdminClient, group: str, partitions: Collection[TopicPartition] | None, *, require_stable: bool
) -> dict[TopicPartition, Any]:
    """Return the answer for each partition, or for every one with a commit where ``partitions`` is None."""
    coordinator = await client._find_coordinator_id(group)
    wire = OffsetFetchRequest.OffsetFetchRequestGroup
    grouped = client._manager.broker_version_data.api_version(OffsetFetchRequest) >= 8
    topic_class = wire.OffsetFetchRequestTopics if grouped else OffsetFetchRequest.OffsetFetchRequestTopic
    topics = None if partitions is None else [
        topic_class(name=topic, partition_indexes=indexes)
        for topic, indexes in by_topic((each, each.partition) for each in partitions).items()
    ]  # fmt: skip
    if grouped:
        request = OffsetFetchRequest(
            groups=[wire(group_id=group, topics=topics)], require_stable=require_stable, min_version=8, max_version=8
        )
    else:
        request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=require_stable, max_version=7)
    response = await client._manager.send(request, node_id=coordinator)
    answer = response.groups[0] if grouped else response
    error = kafka_errors.for_code(answer.error_code)
    if error is not kafka_errors.NoError:
        raise error(f"reading the committed offsets of {group}")
    return {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in answer.topics
        for partition in topic.partitions
    }


def hides_topic(answer: Any) -> bool:
    """Return whether the answer for a topic, or one of its partitions, is that it may not be described."""
    return bool(answer.error_code == kafka_errors.TopicAuthorizationFailedError.errno)


def committed_offset(partition: TopicPartition, answer: Any) -> CommittedOffset | None:
    """Turn the answer for one partition into its committed offset. Raises `Refused`."""
    if answer.error_code:
        error = kafka_errors.for_code(answer.error_code)
        raise Refused(f"the committed offset of {partition} can't be read: {in_kafkas_words(error)}")
    if answer.committed_offset < 0:
        return None
    epoch = answer.committed_leader_epoch
    return CommittedOffset(
        offset=answer.committed_offset, leader_epoch=epoch if epoch >= 0 else None, metadata=answer.metadata or ""
    )


def commit_offsets(
    group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> Request[Mapping[TopicPartition, PartitionError]]:
    """Return the request that commits these offsets for a group without members, with Kafka's error class for each."""

    async def request(client: KafkaAdminClient) -> Mapping[TopicPartition, PartitionError]:
        topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
        written = ((partition, _written(partition.partition, committed)) for partition, committed in offsets.items())
        wire = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=DEFAULT_GENERATION_ID,
            member_id=UNKNOWN_MEMBER_ID,
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[topic_class(name=topic, partitions=of_topic) for topic, of_topic in by_topic(written).items()],
            max_version=_LAST_PLAIN_VERSION,
        )
        coordinator = await client._find_coordinator_id(group)
        response = await client._manager.send(wire, node_id=coordinator)
        return {
            TopicPartition(topic.name, answer.partition_index): kafka_errors.for_code(answer.error_code)
            for topic in response.topics
            for answer in topic.partitions
        }

    return request


def delete_offsets(
    group: str, partitions: Collection[TopicPartition]
) -> Request[Mapping[TopicPartition, PartitionError]]:
    """Return the request that deletes what a group has committed there, with Kafka's error class for each."""

    async def request(client: KafkaAdminClient) -> Mapping[TopicPartition, PartitionError]:
        kafka_partitions = [KafkaTopicPartition(*partition) for partition in partitions]
        answers = await client._async_delete_group_offsets(group, kafka_partitions)
        return {TopicPartition(*partition): error for partition, error in answers.items()}

    return request


def _written(index: int, committed: CommittedOffset) -> _WrittenOffset:
    epoch = -1 if committed.leader_epoch is None else committed.leader_epoch
    return _WrittenOffset(index, committed.offset, epoch, committed.metadata)


async def delete_group(client: KafkaAdminClient, group: str) -> dict[str, PartitionError]:
    """Delete a group, and return Kafka's error class for it."""
    coordinator = await client._find_coordinator_id(group)
    response = await client._manager.send(DeleteGroupsRequest(groups_names=[group]), node_id=coordinator)
    return {answer.group_id: kafka_errors.for_code(answer.error_code) for answer in response.results}


def write_answer(error: PartitionError) -> WriteAnswer:
    """Turn kafka-python's error class for one partition into an answer."""
    if error is kafka_errors.NoError:
        return WriteAnswer(answer=Answer.WRITTEN)
    undecided = issubclass(error, _UNDECIDED)
    return WriteAnswer(answer=Answer.UNKNOWN if undecided else Answer.REFUSED, error=in_kafkas_words(error))


def answer_of_all(error: Exception) -> WriteAnswer:
    """Turn an error of the whole request into the answer for each of its partitions."""
    # A request that broke off may have been applied, or be applied later (measured): only Kafka's own word is a no.
    if isinstance(error, kafka_errors.BrokerResponseError):
        return write_answer(type(error))
    return WriteAnswer(answer=Answer.UNKNOWN, error=" ".join(str(error).split()) or type(error).__name__)


def by_topic(partitions: Iterable[tuple[TopicPartition, V]]) -> dict[str, list[V]]:
    """Return what there is for each partition, by topic."""
    topics: dict[str, list[V]] = defaultdict(list)
    for partition, value in partitions:
        topics[partition.topic].append(value)
    return topics
