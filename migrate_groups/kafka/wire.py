"""Translate between kafka-python's protocol classes and this package's model."""

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
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition

T = TypeVar("T")
V = TypeVar("V")
Request = Callable[[Client], Awaitable[T]]
KafkaErrorClass = type[kafka_errors.KafkaError]

# Errors of a coordinator that is not available. It may have written the commit or the deletion to its log nevertheless,
# because it answers so, too, if too few replicas have the write, or if it has lost its leadership meanwhile
# (docs/kafka-behaviour.md#altering-offsets).
NOT_AVAILABLE = (
    kafka_errors.NotCoordinatorError,
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.CoordinatorLoadInProgressError,
)
# The broker timed out or had an internal error. The commit may be in the log nevertheless.
_UNDECIDED = (
    kafka_errors.RequestTimedOutError,
    kafka_errors.UnknownError,
    kafka_errors.KafkaStorageError,
    *NOT_AVAILABLE,
)
# MemberType in ConsumerGroupDescribe v1; older versions do not have it, which is -1.
_MEMBER_TYPES = {0: "classic", 1: "consumer"}
UNSTABLE = kafka_errors.UnstableOffsetCommitError.errno
MISSING = kafka_errors.GroupIdNotFoundError.errno


async def list_groups(client: Client) -> dict[str, GroupDescription]:
    """Return the groups of all types that the principal may describe, without members, by name (ListGroups)."""
    listed = await client.list_groups()
    # Brokers before 4.0 report no group type, because every group is classic; before 2.6 they report no state.
    return {
        each.group_id: GroupDescription(
            group=each.group_id,
            state=each.group_state or "Unknown",
            group_type=each.group_type or "classic",
            protocol_type=each.protocol_type,
        )
        for each in listed
    }


def classic_group(answer: Any) -> GroupDescription:
    """Return the description of a group from its DescribedGroup in a DescribeGroups response.

    Only consumers get a subscription and an assignment; other members, such as Connect workers, get none. Raises
    `Refused` if a consumer's subscription or assignment is not in Kafka's consumer protocol.
    """
    is_consumer = answer.protocol_type == "consumer"
    return GroupDescription(
        group=answer.group_id,
        state=answer.group_state,
        group_type="classic",
        protocol_type=answer.protocol_type,
        assignor=answer.protocol_data if is_consumer else "",
        members=tuple(_member(answer.group_id, member, is_consumer=is_consumer) for member in answer.members),
    )


def consumer_group(answer: Any) -> GroupDescription:
    """Return the description of a KIP-848 group from its DescribedGroup in a ConsumerGroupDescribe response.

    The error code GROUP_ID_NOT_FOUND gives the state Dead. A member's assignment includes partitions that the member is
    yet to receive.
    """
    if answer.error_code == MISSING:
        return GroupDescription(group=answer.group_id, state="Dead", group_type="")
    return GroupDescription(
        group=answer.group_id,
        state=answer.group_state,
        group_type="consumer",
        protocol_type="consumer",
        members=tuple(_consumer_member(member) for member in answer.members),
    )


def _consumer_member(member: Any) -> Member:
    assigned = [*member.assignment.topic_partitions, *member.target_assignment.topic_partitions]
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        group_instance_id=member.instance_id,
        group_protocol=_MEMBER_TYPES.get(member.member_type, ""),
        assignment=frozenset(
            TopicPartition(each.topic_name, number) for each in assigned for number in each.partitions
        ),
        subscription=frozenset(member.subscribed_topic_names),
        subscription_regex=member.subscribed_topic_regex or "",
    )


def _member(group: str, member: Any, *, is_consumer: bool) -> Member:
    try:
        # Only consumers send Kafka's consumer protocol; Connect workers, for instance, do not.
        subscription, assignment = _decoded(member) if is_consumer else ([], [])
    except (struct.error, TypeError, ValueError) as error:
        raise Refused(
            f"group {group!r}: the assignment of member {member.member_id} ({member.client_id} at "
            f"{member.client_host}) can't be read, because it is not in Kafka's consumer protocol: stop this "
            "member, and try again"
        ) from error
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        group_instance_id=member.group_instance_id,
        group_protocol="classic" if is_consumer else "",
        assignment=frozenset(TopicPartition(*partition) for partition in assignment),
        subscription=frozenset(subscription),
    )


def _decoded(member: Any) -> tuple[list[str], list[KafkaTopicPartition]]:
    """Return the subscribed topics and the assigned partitions of a consumer in a classic group.

    Both lists are empty while the group rebalances. Raises ``struct.error``, ``ValueError`` or ``TypeError`` if the
    member's bytes are not valid.
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
    """Return the topics in a Metadata response, each with its partitions or with an error code. Creates no topic.

    names: the topics; None: all topics that the client's principal may describe. permissions: whether to request the
    authorized operations (KIP-430).
    """
    # kafka-python's own method takes twice as long, because it makes a dict of each partition.
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=None if names is None else [topic(name=name) for name in sorted(names)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=permissions,
    )
    found: list[Any] = (await client.send(request)).topics
    return found


def hides_topic(answer: Any) -> bool:
    """Return whether the principal lacks Describe on the topic: the error code is TOPIC_AUTHORIZATION_FAILED.

    answer: the part of a response about a topic or a partition.
    """
    return bool(answer.error_code == kafka_errors.TopicAuthorizationFailedError.errno)


def committed_offset(partition: TopicPartition, answer: Any) -> CommittedOffset | None:
    """Return the committed offset in an OffsetFetch response; None if nothing is committed.

    answer: the part of the response about ``partition``. Raises `Refused` if ``answer`` has an error code.
    """
    if answer.error_code:
        error = kafka_errors.for_code(answer.error_code)
        raise Refused(f"the committed offset of {partition} can't be read: {in_kafkas_words(error)}; try again")
    if answer.committed_offset < 0:
        return None
    epoch = answer.committed_leader_epoch
    return CommittedOffset(
        offset=answer.committed_offset, leader_epoch=epoch if epoch >= 0 else None, metadata=answer.metadata or ""
    )


def write_answer(error: KafkaErrorClass) -> WriteAnswer:
    """Return whether a broker has applied a write, from the error class in the broker's response.

    ``NoError``: ``WRITTEN``. A time-out, an unknown error or an unavailable coordinator: ``UNKNOWN``. Any other error:
    ``REFUSED``.
    """
    if error is kafka_errors.NoError:
        return WriteAnswer(answer=Answer.WRITTEN)
    undecided = issubclass(error, _UNDECIDED)
    return WriteAnswer(answer=Answer.UNKNOWN if undecided else Answer.REFUSED, error=in_kafkas_words(error))


def answer_of_all(error: Exception) -> WriteAnswer:
    """Return the answer for all partitions of a write request that failed as a whole.

    ``REFUSED``: a broker refused the request. ``UNKNOWN``: a broker may have applied the request, for instance after a
    time-out.
    """
    # Only an error that a broker returned can be a refusal. After any other error the broker may still apply the
    # request, even later (docs/kafka-behaviour.md#altering-offsets).
    if isinstance(error, kafka_errors.BrokerResponseError):
        return write_answer(type(error))
    return WriteAnswer(answer=Answer.UNKNOWN, error=" ".join(str(error).split()) or type(error).__name__)


def by_topic(partitions: Iterable[tuple[TopicPartition, V]]) -> dict[str, list[V]]:
    """Return the values by topic, from pairs of a partition and a value."""
    topics: dict[str, list[V]] = defaultdict(list)
    for partition, value in partitions:
        topics[partition.topic].append(value)
    return topics
