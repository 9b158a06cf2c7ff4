"""Kafka's requests and answers through kafka-python's protocol classes, for `kafka_python`.

The classes are used directly where kafka-python's admin methods lose something: ``require_stable`` and an error for
each partition (KIP-447), one partition's error raised for the whole call, groups whose members are no consumers.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.errors import Refused
from migrate_groups.kafka.connection import in_kafkas_words
from migrate_groups.kafka.private import Client
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import GroupDescription, GroupListing, Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition

T = TypeVar("T")
V = TypeVar("V")
Request = Callable[[Client], Awaitable[T]]
PartitionError = type[kafka_errors.KafkaError]

# The broker gave up waiting, or failed somewhere inside: the commit may be in the log all the same.
_UNDECIDED = (kafka_errors.RequestTimedOutError, kafka_errors.UnknownError)
UNSTABLE = kafka_errors.UnstableOffsetCommitError.errno


async def list_groups(client: Client) -> dict[str, GroupListing]:
    """Return every group that this principal may describe, by name."""
    listed = await client.list_groups()
    # Brokers before 4.0 know no types, and then every group is a classic one; before 2.6 no states either.
    return {
        entry["group_id"]: GroupListing(
            group=entry["group_id"],
            state=entry.get("group_state") or "Unknown",
            group_type=entry.get("group_type") or "classic",
            protocol_type=entry["protocol_type"],
        )
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


async def topics(client: Client, names: Collection[str] | None, *, permissions: bool = False) -> list[Any]:
    """Return the Metadata answer for each of these topics, or for all where ``names`` is None; creates none.

    Not through kafka-python's admin client, which turns every partition into a dict, in as much time as reading takes.
    """
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=None if names is None else [topic(name=name) for name in sorted(names)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=permissions,
    )
    found: list[Any] = (await client.send(request)).topics
    return found


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


def write_answer(error: PartitionError) -> WriteAnswer:
    """Turn kafka-python's error class for one partition into an answer."""
    if error is kafka_errors.NoError:
        return WriteAnswer(answer=Answer.WRITTEN)
    undecided = issubclass(error, _UNDECIDED)
    return WriteAnswer(answer=Answer.UNKNOWN if undecided else Answer.REFUSED, error=in_kafkas_words(error))


def answer_of_all(error: Exception) -> WriteAnswer:
    """Turn an error of the whole request into the answer for each of its partitions."""
    # A request that broke off may have been applied, or be applied later: only an answer of Kafka's is a refusal
    # (docs/kafka-behaviour.md#altering-offsets).
    if isinstance(error, kafka_errors.BrokerResponseError):
        return write_answer(type(error))
    return WriteAnswer(answer=Answer.UNKNOWN, error=" ".join(str(error).split()) or type(error).__name__)


def by_topic(partitions: Iterable[tuple[TopicPartition, V]]) -> dict[str, list[V]]:
    """Return what there is for each partition, by topic."""
    topics: dict[str, list[V]] = defaultdict(list)
    for partition, value in partitions:
        topics[partition.topic].append(value)
    return topics
