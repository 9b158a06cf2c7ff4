"""Share groups (KIP-932): what every `GroupWriter` does with their start offsets, in memory and on a real broker."""

from __future__ import annotations

import pytest

from migrate_groups.errors import ShareGroupStarted
from migrate_groups.migration.reading.requests import describe_group, read_all_committed, read_committed
from migrate_groups.model.answers import Answer
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from tests.support.broker_world import until
from tests.support.versions import NEEDS_SHARE_OFFSETS

pytestmark = NEEDS_SHARE_OFFSETS

START = CommittedOffset(offset=4)


@pytest.fixture
def partition(world) -> TopicPartition:
    """A partition with ten records, in a topic of two partitions."""
    topic = world.create_topic(2)
    world.produce(topic, 0, 10)
    return TopicPartition(topic, 0)


def error_of(answers) -> str:
    """Return the error of a write of one partition of one group; empty if there was none."""
    ((answer,),) = (of_group.values() for of_group in answers.values())
    assert (answer.answer is Answer.WRITTEN) is (answer.error == "")
    return answer.error


def share_group(world, offsets) -> str:
    """Return the name of a new share group with these start offsets.

    They are set again if the request fails: the first time on a cluster it takes seconds
    (docs/kafka-behaviour.md#share-groups).
    """
    group = world.name("share")
    until(lambda: all(not each.error for each in world.writer.alter_share_offsets({group: offsets})[group].values()))
    return group


def test_start_offsets_create_a_share_group_and_are_read_by_name(world, partition):
    """Setting start offsets creates an Empty share group. They are read for partitions that are named, without leader
    epoch and metadata, and are not among all committed offsets. A partition without one has None.
    """
    other = TopicPartition(partition.topic, 1)
    group = share_group(world, {partition: CommittedOffset(offset=4, leader_epoch=0, metadata="ours")})
    described = describe_group(world.writer, group)
    assert (described.state, described.group_type, described.protocol_type) == ("Empty", "share", "share")
    assert read_committed(world.writer, {group: [partition, other]})[group] == {partition: START, other: None}
    assert read_all_committed(world.writer, [group])[group] == {}
    # A client that has not described the group finds out that it is a share group.
    assert read_committed(world.other_writer, {group: [partition]})[group] == {partition: START}


def test_offsets_can_be_written_only_to_a_group_of_their_type(world, partition):
    """A coordinator refuses committed offsets of a share group, and start offsets of a consumer group."""
    share, consumer = share_group(world, {partition: START}), world.name("consumer")
    world.writer.alter_offsets({consumer: {partition: START}})
    assert error_of(world.writer.alter_offsets({share: {partition: START}})) == "GROUP_ID_NOT_FOUND"
    assert error_of(world.writer.delete_offsets({share: [partition]})) == "GROUP_ID_NOT_FOUND"
    assert error_of(world.writer.alter_share_offsets({consumer: {partition: START}})) == "GROUP_ID_NOT_FOUND"
    assert error_of(world.writer.delete_share_offsets({consumer: [partition]})) == "GROUP_ID_NOT_FOUND"
    assert error_of(world.writer.delete_share_offsets({"nobody": [partition]})) == "GROUP_ID_NOT_FOUND"


def test_a_start_offset_of_a_partition_that_does_not_exist_is_refused(world, partition):
    """The error is that of a committed offset."""
    group, missing = world.name("share"), TopicPartition(partition.topic, 7)
    assert error_of(world.writer.alter_share_offsets({group: {missing: START}})) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_start_offsets_are_deleted_by_topic(world, partition):
    """A deletion also deletes start offsets of the topic's other partitions. The group stays; a second deletion works,
    and start offsets can be set again.
    """
    other = TopicPartition(partition.topic, 1)
    group = share_group(world, {partition: START, other: CommittedOffset(offset=0)})
    for _ in range(2):
        assert error_of(world.writer.delete_share_offsets({group: [partition]})) == ""
        assert read_committed(world.writer, {group: [partition, other]})[group] == {partition: None, other: None}
    assert describe_group(world.writer, group).state == "Empty"
    assert error_of(world.writer.alter_share_offsets({group: {partition: START}})) == ""
    assert read_committed(world.writer, {group: [partition]})[group] == {partition: START}


def test_start_offsets_are_not_read_once_a_member_has_joined(world, partition):
    """While a share group has a member, start offsets are neither set nor deleted. They are an error from then on, also
    after the member has left, because they do not show what was acknowledged.
    """
    group = share_group(world, {partition: START})
    member = world.share_member(group, partition.topic)
    until(lambda: member.read() or describe_group(world.writer, group).state == "Stable")
    assert error_of(world.writer.alter_share_offsets({group: {partition: START}})) == "NON_EMPTY_GROUP"
    assert error_of(world.writer.delete_share_offsets({group: [partition]})) == "NON_EMPTY_GROUP"
    assert describe_group(world.writer, group).members == ()
    member.close()
    until(lambda: describe_group(world.writer, group).state == "Empty")
    for writer in (world.writer, world.other_writer):
        assert isinstance(writer.committed({group: [partition]})[group], ShareGroupStarted)
    assert read_all_committed(world.writer, [group])[group] == {}
