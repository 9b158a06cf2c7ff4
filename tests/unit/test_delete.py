"""Deleting a group in memory: what is refused, and how the result is checked."""

from __future__ import annotations

import pytest

from migrate_groups.errors import GroupNotFound, NotAuthorized, PartlyApplied, Refused
from migrate_groups.migration.delete import delete_group, what_would_go
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster

MEMBER = Member(member_id="m", client_id="replayer", host="/127.0.0.1", subscription=frozenset({"t"}))


def cluster(kind: type[InMemoryCluster] = InMemoryCluster) -> InMemoryCluster:
    made = kind()
    made.create_topic("t", 2)
    made.produce("t", 0, 10)
    made.commit("replay", TopicPartition("t", 0), 3)
    return made


def test_what_goes_is_what_is_committed():
    """The preview lists only partitions with a committed offset."""
    going = list(what_would_go(cluster(), "replay", FakeClock()).rows())
    assert [(each.topic_partition, each.offset) for each in going] == [(TopicPartition("t", 0), 3)]


def test_a_group_that_is_in_use_or_no_consumer_group_is_refused():
    """A group with members and a Connect group are refused; an unknown group is not found."""
    made = cluster()
    made.join("replay", MEMBER)
    made.join("connect-sink", MEMBER, protocol_type="connect")
    with pytest.raises(Refused, match=r"replayer at 127\.0\.0\.1.*nothing was deleted"):
        what_would_go(made, "replay", FakeClock())
    with pytest.raises(Refused, match="not a consumer group but classic connect"):
        what_would_go(made, "connect-sink", FakeClock())
    with pytest.raises(GroupNotFound, match="'repaly' does not exist"):
        what_would_go(made, "repaly", FakeClock())


def test_a_missing_permission_is_said_before_the_question():
    """A missing Delete permission is reported before anything is deleted."""
    made = cluster()
    made.deny(Resource(ResourceType.GROUP, "replay"), Operation.DELETE)
    with pytest.raises(NotAuthorized, match="lacks Delete on Group 'replay'"):
        what_would_go(made, "replay", FakeClock())


def test_the_coordinator_has_the_last_word():
    """If a member has joined since the preview, Kafka refuses the deletion: exit 3."""
    made = cluster()
    made.join("replay", MEMBER)
    with pytest.raises(Refused, match="NON_EMPTY_GROUP"):
        delete_group(made, "replay")
    assert made.describe_group("replay").exists


def test_silence_is_looked_after():
    """After a time-out the group is read again, and its existence decides between success and failure."""

    class Silent(InMemoryCluster):
        deletes = True

        def delete_group(self, group):
            if self.deletes:
                super().delete_group(group)
            return WriteAnswer(answer=Answer.UNKNOWN, error="timed out")

    delete_group(cluster(Silent), "replay")
    made = cluster(Silent)
    assert isinstance(made, Silent)
    made.deletes = False
    with pytest.raises(PartlyApplied, match=r"still there, or again \(timed out\)"):
        delete_group(made, "replay")


def test_a_group_that_somebody_else_has_deleted_is_gone():
    """Deleting a group that is deleted already is no error."""
    made = cluster()
    made.delete_group("replay")
    delete_group(made, "replay")
