"""Send requests about several groups concurrently, each to the coordinator of its groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import kafka.errors as kafka_errors
import msgspec
from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.consumer.group import DEFAULT_GENERATION_ID, UNKNOWN_MEMBER_ID
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.kafka.connection import Ask, OfGroups
from migrate_groups.kafka.private import Client
from migrate_groups.kafka.schemas import (
    ConsumerGroupDescribeRequest,
)
from migrate_groups.kafka.wire import MISSING, KafkaErrorClass, by_topic
from migrate_groups.model.groups import Wanted
from migrate_groups.model.partitions import CommittedOffset, TopicPartition

T = TypeVar("T")

Membership = tuple[int, str]
"""The generation of a group and the id of a member, with which this member commits."""
_NO_MEMBER: Membership = (DEFAULT_GENERATION_ID, UNKNOWN_MEMBER_ID)
# kafka-python encodes the later, flexible versions (KIP-482) more slowly, and they add nothing that is needed here
# (docs/kafka-behaviour.md#kafka-python).
LAST_PLAIN_VERSION = 7
"""The highest version of OffsetCommit to send, unless the brokers offer only later ones."""
# From version 6 on a missing group is answered with an error, without the authorized operations.
DESCRIBE_VERSION = 5
"""The highest version of DescribeGroups to send, unless the brokers offer only later ones."""
FETCH_OFFSETS_VERSION = 8
"""The highest version of OffsetFetch to send."""


class FetchedOffset(NamedTuple):
    """In place of the part of an OffsetFetch response about a partition; by default without a committed offset."""

    error_code: int = 0
    committed_offset: int = -1
    committed_leader_epoch: int = -1
    metadata: str = ""


class _WrittenOffset(msgspec.Struct, frozen=True, gc=False):
    """A partition in an OffsetCommit request, in place of kafka-python's slower class.

    committed_leader_epoch: -1 if there is none.
    """

    # Making an object of kafka-python's class takes ten times as long.
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str


def describe(*, permissions: bool = False) -> Ask[Any]:
    """Return a coroutine function that describes groups with DescribeGroups.

    The answer for a group is its DescribedGroup. A group that does not exist, or is not classic, has the state Dead.
    permissions: whether to request the authorized operations (KIP-430).
    """

    async def of_coordinator(client: Client, node: Any, groups: list[str], into: OfGroups[Any]) -> None:
        note_descriptions(into, await client.send(_describe_groups(client, groups, permissions=permissions), node))

    return by_coordinator(of_coordinator)


def describe_consumer_groups() -> Ask[Any]:
    """Return a coroutine function that describes KIP-848 groups with ConsumerGroupDescribe.

    The answer for a group is its DescribedGroup, with the error code GROUP_ID_NOT_FOUND if no KIP-848 group has that
    name.
    """

    async def of_coordinator(client: Client, node: Any, groups: list[str], into: OfGroups[Any]) -> None:
        note_descriptions(into, await client.send(ConsumerGroupDescribeRequest(group_ids=groups), node))

    return by_coordinator(of_coordinator)


def fetch_offsets(wanted: Wanted) -> Ask[dict[TopicPartition, Any]]:
    """Return a coroutine function that reads committed offsets with OffsetFetch and ``require_stable``.

    The answer for a group is the response's part about each partition, which may contain an error code, such as
    UNSTABLE_OFFSET_COMMIT (KIP-447). wanted: the partitions by group; None: all with a committed offset.
    """

    async def of_coordinator(
        client: Client, node: Any, groups: list[str], into: OfGroups[dict[TopicPartition, Any]]
    ) -> None:
        if client.version(OffsetFetchRequest) < 8:

            async def of_one(connection: Any, group: str) -> None:
                topics = _topics(OffsetFetchRequest.OffsetFetchRequestTopic, wanted[group])
                request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=True, max_version=7)
                _note_offsets(into, wanted, group, await client.send(request, connection))

            into.failed |= await client.side_by_side(of_one, node, groups)
            return
        for answer in (await client.send(_offset_fetch(wanted, groups), node)).groups:
            _note_offsets(into, wanted, answer.group_id, answer)

    return by_coordinator(of_coordinator)


class Observation(NamedTuple):
    """The answers about a group, in the order in which the coordinator made them.

    described: its DescribedGroup of DescribeGroups. as_consumer: that of ConsumerGroupDescribe; None if it was not
    sent. offsets: as of `fetch_offsets`.
    """

    described: Any
    as_consumer: Any
    offsets: Mapping[TopicPartition, Any]


# Sends requests that brokers process before those that are sent then, and returns a coroutine that awaits the answers.
First = Callable[[Client, Mapping[Any, Collection[str]]], Awaitable[None]]


def observe(wanted: Wanted, consumers: Collection[str], first: First | None = None) -> Ask[Observation | None]:
    """Return a coroutine function that describes groups, and then reads their committed offsets, in one round trip.

    The answer for a group is None if the brokers have no OffsetFetch for several groups, or if a group in ``consumers``
    can't be described as a KIP-848 group. consumers: groups that are also described with ConsumerGroupDescribe. wanted:
    as for `fetch_offsets`. first: gets the client, and the groups of each coordinator.
    """

    async def of_coordinator(client: Client, node: Any, groups: list[str], into: OfGroups[Observation | None]) -> None:
        if client.version(OffsetFetchRequest) < 8:
            into.found.update(dict.fromkeys(groups))
            return
        of_consumers = [group for group in groups if group in consumers]
        # Sent on one connection without a pause. A broker processes the requests of a connection one after the other,
        # in the order in which they were sent (docs/kafka-behaviour.md#order-on-a-connection).
        asked = [client.send(_describe_groups(client, groups), node)]
        asked += [client.send(ConsumerGroupDescribeRequest(group_ids=of_consumers), node)] if of_consumers else []
        asked += [client.send(_offset_fetch(wanted, groups), node)]
        described, as_consumers, offsets = OfGroups[Any](), OfGroups[Any](), OfGroups[dict[TopicPartition, Any]]()
        note_descriptions(described, await asked[0])
        for answers in asked[1:-1]:
            note_descriptions(as_consumers, await answers)
        for answer in (await asked[-1]).groups:
            _note_offsets(offsets, wanted, answer.group_id, answer)
        for group in groups:
            failed = [each.failed[group] for each in (described, offsets) if group in each.failed]
            if group in as_consumers.failed:
                into.found[group] = None
            elif failed:
                into.failed[group] = failed[0]
            else:
                into.found[group] = Observation(
                    described.found[group], as_consumers.found.get(group), offsets.found[group]
                )

    return by_coordinator(of_coordinator, first)


def commit_offsets(
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]], memberships: Mapping[str, Membership]
) -> Ask[Mapping[TopicPartition, KafkaErrorClass]]:
    """Return a coroutine function that commits these offsets for groups (OffsetCommit).

    memberships: this process's members, by group. A group without one must have no members. The answer for a group is
    kafka-python's error class for each partition; ``NoError``: the offset is committed.
    """

    async def answers_of(client: Client, connection: Any, group: str) -> Mapping[TopicPartition, KafkaErrorClass]:
        topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
        written = ((each, _written(each.partition, committed)) for each, committed in offsets[group].items())
        generation, member_id = memberships.get(group, _NO_MEMBER)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[topic_class(name=topic, partitions=of_topic) for topic, of_topic in by_topic(written).items()],
            max_version=client.at_most(OffsetCommitRequest, LAST_PLAIN_VERSION),
        )
        response = await client.send(request, connection)
        return {
            TopicPartition(topic.name, answer.partition_index): kafka_errors.for_code(answer.error_code)
            for topic in response.topics
            for answer in topic.partitions
        }

    async def of_coordinator(client: Client, node: Any, groups: list[str], into: OfGroups[Any]) -> None:
        async def of_one(connection: Any, group: str) -> None:
            into.found[group] = await answers_of(client, connection, group)

        into.failed |= await client.side_by_side(of_one, node, groups)

    return by_coordinator(of_coordinator)


def connect() -> Ask[None]:
    """Return a coroutine function that connects to coordinators, with as many connections as `commit_offsets` uses."""

    async def of_coordinator(client: Client, node: Any, groups: list[str], into: OfGroups[None]) -> None:
        async def of_one(connection: Any, group: str) -> None:
            await client.send(_describe_groups(client, [group]), connection)
            into.found[group] = None

        into.failed |= await client.side_by_side(of_one, node, groups)

    return by_coordinator(of_coordinator)


def delete_offsets(
    partitions: Mapping[str, Collection[TopicPartition]],
) -> Ask[Mapping[TopicPartition, KafkaErrorClass]]:
    """Return a coroutine function that deletes groups' committed offsets of these partitions (KIP-496).

    The answer for a group is kafka-python's error class for each partition; ``NoError``: the offset is deleted. The
    error of a failed request is raised.
    """

    async def ask(client: Client, groups: Collection[str], into: OfGroups[Any]) -> None:
        for group in groups:
            answers = await client.delete_offsets(group, [KafkaTopicPartition(*each) for each in partitions[group]])
            into.found[group] = {TopicPartition(*partition): error for partition, error in answers.items()}

    return ask


def delete_groups() -> Ask[Mapping[str, KafkaErrorClass]]:
    """Return a coroutine function that deletes groups.

    The answer for a group is ``{group: kafka-python's error class}``; ``NoError``: the group is deleted.
    """

    async def of_coordinator(client: Client, node: Any, groups: list[str], into: OfGroups[Any]) -> None:
        for answer in (await client.send(DeleteGroupsRequest(groups_names=groups), node)).results:
            into.found[answer.group_id] = {answer.group_id: kafka_errors.for_code(answer.error_code)}

    return by_coordinator(of_coordinator)


def by_coordinator(
    of_coordinator: Callable[[Client, Any, list[str], OfGroups[T]], Awaitable[None]], first: First | None = None
) -> Ask[T]:
    """Return a coroutine function that calls ``of_coordinator`` once for each coordinator, with its groups.

    of_coordinator: sends the requests, and stores each group's answer in its last argument. If it raises an error of
    Kafka or of the network, this error is stored for each group that has no answer yet. first: see `observe`.
    """

    async def ask(client: Client, groups: Collection[str], into: OfGroups[T]) -> None:
        async def of_one(node: Any, of_node: list[str]) -> None:
            try:
                await of_coordinator(client, node, of_node, into)
            except (kafka_errors.KafkaError, OSError) as error:
                into.fail(of_node, error)

        nodes = await _coordinators(client, groups, into)
        sent_first = first(client, nodes) if first else None
        for done in [client.begin(of_one, node, of_node) for node, of_node in nodes.items()]:
            await done
        if sent_first is not None:
            await sent_first

    return ask


async def _coordinators(client: Client, groups: Collection[str], into: OfGroups[Any]) -> dict[Any, list[str]]:
    """Return the groups of each coordinator, by kafka-python's name of the coordinator.

    If a group's coordinator can't be found, the error is stored in ``into.failed``. An error of the connection is
    raised.
    """
    nodes: dict[Any, list[str]] = defaultdict(list)
    try:
        found = await client.coordinators(groups)
    except kafka_errors.BrokerResponseError:
        found = {}  # one group's error fails the whole request, so each group is asked about separately
        for group in groups:
            try:
                found[group] = await client.coordinator(group)
            except kafka_errors.BrokerResponseError as error:
                into.failed[group] = error
    for group, node in found.items():
        nodes[node].append(group)
    return nodes


def note(into: OfGroups[Any], group: str, answer: Any, error_code: int) -> None:
    """Store the answer for a group, or the error that its error code stands for."""
    error = kafka_errors.for_code(error_code)
    if error is kafka_errors.NoError:
        into.found[group] = answer
    else:
        into.failed[group] = error(f"group {group}")


def _describe_groups(client: Client, groups: Sequence[str], *, permissions: bool = False) -> Any:
    most = client.at_most(DescribeGroupsRequest, DESCRIBE_VERSION)
    return DescribeGroupsRequest(groups=groups, include_authorized_operations=permissions, max_version=most)


def note_descriptions(into: OfGroups[Any], response: Any) -> None:
    """Store the description of each group in a response. A group that does not exist is no error."""
    for answer in response.groups:
        note(into, answer.group_id, answer, 0 if answer.error_code == MISSING else answer.error_code)


def _offset_fetch(wanted: Wanted, groups: Sequence[str]) -> Any:
    """Return an OffsetFetch request for several groups."""
    wire = OffsetFetchRequest.OffsetFetchRequestGroup
    asked = [wire(group_id=group, topics=_topics(wire.OffsetFetchRequestTopics, wanted[group])) for group in groups]
    return OffsetFetchRequest(groups=asked, require_stable=True, min_version=8, max_version=FETCH_OFFSETS_VERSION)


def _note_offsets(into: OfGroups[dict[TopicPartition, Any]], wanted: Wanted, group: str, answer: Any) -> None:
    found = _by_partition(answer)
    if answer.error_code == MISSING:  # Apache Kafka answers without an error for a group that does not exist
        found = dict.fromkeys(wanted[group] or (), FetchedOffset())
    note(into, group, found, 0 if answer.error_code == MISSING else answer.error_code)


def _topics(topic_class: Any, partitions: Collection[TopicPartition] | None) -> list[Any] | None:
    if partitions is None:
        return None
    numbers = by_topic((each, each.partition) for each in partitions)
    return [topic_class(name=topic, partition_indexes=of_topic) for topic, of_topic in numbers.items()]


def _by_partition(answer: Any) -> dict[TopicPartition, Any]:
    return {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in answer.topics
        for partition in topic.partitions
    }


def _written(index: int, committed: CommittedOffset) -> _WrittenOffset:
    epoch = -1 if committed.leader_epoch is None else committed.leader_epoch
    return _WrittenOffset(index, committed.offset, epoch, committed.metadata)
