"""Requests have the same bytes as kafka-python's, group members are decoded, and errors of writes are classified."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import kafka.errors as kafka_errors
import pytest
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from migrate_groups.errors import Refused
from migrate_groups.kafka import private, wire
from migrate_groups.kafka.connection import OfGroups
from migrate_groups.kafka.group_requests import commit_offsets, fetch_offsets
from migrate_groups.kafka.list_offsets import list_offsets
from migrate_groups.model.answers import Answer
from migrate_groups.model.partitions import CommittedOffset, TopicPartition

FIRST, SECOND, OTHER = TopicPartition("t", 0), TopicPartition("t", 7), TopicPartition("größer", 3)


@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize("version", range(4, 8))
def test_list_offsets_request_equals_kafka_pythons(version, isolation):
    """A ListOffsets request has the same bytes as kafka-python's, in each supported version and isolation level."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    own = {
        "t": [topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-2)],
        "größer": [topic.ListOffsetsPartition(partition_index=3, current_leader_epoch=5, timestamp=99)],
    }
    wanted = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[topic(name=name, partitions=each) for name, each in own.items()],
    )
    asked = list_offsets({FIRST: -2, OTHER: 99}, {FIRST: (1, -1), OTHER: (1, 5)}, isolation, 7)
    assert asked.encode(version) == wanted.encode(version)


@pytest.mark.parametrize("version", range(6, 10))
def test_offset_commit_request_equals_kafka_pythons(version):
    """An OffsetCommit request has the same bytes as kafka-python's in each supported version.

    Errors are returned by partition.
    """
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition
    fields = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    rows = {"t": [(0, 5, -1, ""), (7, 2**62, 3, "größer")], "größer": [(3, 0, 0, "m")]}
    wanted = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[
            topic(name=name, partitions=[partition(**dict(zip(fields, row, strict=True))) for row in of])
            for name, of in rows.items()
        ],
    )
    sent = []

    class Client:
        def at_most(self, *_: object) -> int:
            return 9

        async def send(self, request, node_id):
            sent.append((request.encode(version), node_id))
            answer = OffsetCommitResponse.OffsetCommitResponseTopic
            one = answer.OffsetCommitResponsePartition
            return SimpleNamespace(topics=[answer(name="t", partitions=[one(partition_index=0, error_code=25)])])

        def begin(self, work, *arguments):
            return work(*arguments)

        async def coordinators(self, groups):
            return dict.fromkeys(groups, 7)

        async def side_by_side(self, work, node, groups):
            for group in groups:
                await work(node, group)
            return {}

    offsets = {
        FIRST: CommittedOffset(offset=5),
        SECOND: CommittedOffset(offset=2**62, leader_epoch=3, metadata="größer"),
        OTHER: CommittedOffset(offset=0, leader_epoch=0, metadata="m"),
    }
    answers: OfGroups[Mapping[TopicPartition, wire.KafkaErrorClass]] = OfGroups()

    async def commit() -> None:
        await commit_offsets({"g": offsets}, {})(cast("private.Client", Client()), ["g"], answers)

    asyncio.run(commit())
    assert sent == [(wanted.encode(version), 7)]
    assert {each: error.errno for each, error in answers.found["g"].items()} == {FIRST: 25}


def test_a_group_that_brokers_do_not_know_has_no_commit():
    """GROUP_ID_NOT_FOUND in an OffsetFetch response means no committed offset, as some brokers of other vendors answer.

    Another error of a group is its error.
    """

    class Client:
        def version(self, _: object) -> int:
            return 8

        async def send(self, request, node_id):
            answer = OffsetFetchResponse.OffsetFetchResponseGroup
            codes = {"missing": 69, "hidden": 30}
            return SimpleNamespace(
                groups=[
                    answer(group_id=each.group_id, topics=[], error_code=codes[each.group_id])
                    for each in request.groups
                ]
            )

        def begin(self, work, *arguments):
            return work(*arguments)

        async def coordinators(self, groups):
            return dict.fromkeys(groups, 7)

    answers: OfGroups[dict[TopicPartition, Any]] = OfGroups()
    wanted = {"missing": [FIRST], "hidden": [FIRST]}

    async def fetch() -> None:
        await fetch_offsets(wanted)(cast("private.Client", Client()), [*wanted], answers)

    asyncio.run(fetch())
    assert {each: wire.committed_offset(each, found) for each, found in answers.found["missing"].items()} == {
        FIRST: None
    }
    assert [*answers.failed] == ["hidden"]


SUBSCRIBED = ConsumerProtocolSubscription(topics=["t"]).encode(version=0)
ASSIGNED = ConsumerProtocolAssignment(
    assigned_partitions=[ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 7])]
).encode(version=0)


def described(metadata: bytes, assignment: bytes, protocol_type: str = "consumer"):
    """Return a DescribedGroup with one member."""
    member = SimpleNamespace(
        member_id="m-1",
        client_id="app",
        client_host="/h",
        group_instance_id=None,
        member_metadata=metadata,
        member_assignment=assignment,
    )
    return SimpleNamespace(
        group_id="g", group_state="Stable", protocol_type=protocol_type, protocol_data="range", members=[member]
    )


@pytest.mark.parametrize(
    "error",
    [
        kafka_errors.CoordinatorNotAvailableError,
        kafka_errors.NotCoordinatorError,
        kafka_errors.CoordinatorLoadInProgressError,
        kafka_errors.RequestTimedOutError,
    ],
)
def test_a_write_without_a_coordinator_may_have_been_applied(error):
    """If the coordinator is unavailable, a write's outcome is unknown: the offsets may be in the offsets topic already.

    If the broker answers UNKNOWN_MEMBER_ID, the write is refused.
    """
    for answer in (wire.write_answer(error), wire.answer_of_all(error())):
        assert answer.answer is Answer.UNKNOWN
    assert wire.write_answer(kafka_errors.UnknownMemberIdError).answer is Answer.REFUSED


def test_a_member_is_decoded():
    """A member's subscription and assignment are decoded. Empty bytes, as during a rebalance, give empty sets."""
    (member,) = wire.classic_group(described(SUBSCRIBED, ASSIGNED)).members
    assert (member.subscription, member.assignment) == (frozenset({"t"}), frozenset({FIRST, SECOND}))
    (member,) = wire.classic_group(described(b"", b"")).members
    assert (member.subscription, member.assignment) == (frozenset(), frozenset())


NO_LIST = b"\0\0" + b"\xff" * 8
NO_NAME = b"\0\0\0\0\0\1\xff\xff\0\0\0\1\0\0\0\0\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("metadata", "assignment"),
    [
        *((broken, b"") for broken in (b"\0", b"not kafka at all", SUBSCRIBED[:-5], NO_LIST, NO_NAME)),
        *((SUBSCRIBED, broken) for broken in (b"\0", b"not kafka at all", ASSIGNED[:-5], NO_LIST, NO_NAME)),
    ],
)
def test_a_member_that_cannot_be_decoded_is_named(metadata, assignment):
    """If a consumer's subscription or assignment can't be decoded, the group is refused.

    The error names the member. Members of Kafka Connect are not decoded.
    """
    with pytest.raises(Refused, match=r"group 'g': .* member m-1 \(app at /h\) .*: stop this member"):
        wire.classic_group(described(metadata, assignment))
    assert len(wire.classic_group(described(metadata, assignment, "connect")).members) == 1
