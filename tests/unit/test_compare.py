"""``compare`` on two in-memory clusters: a topic of the target cluster is a mirror's copy of a source topic."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from migrate_groups.errors import GroupNotFound, InvalidInput, NotAuthorized, Refused
from migrate_groups.migration.across.compare import Comparison, compare
from migrate_groups.migration.across.translate import find_positions
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.ports import Side
from migrate_groups.mirrors.position import Method, Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.translation import PENDING, TranslatedOffset
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster, InMemoryRecords

HERE, THERE = TopicPartition("orders", 0), TopicPartition("eu.orders", 0)


def offset(source: TopicPartition, at: int, copy: TopicPartition | None) -> TranslatedOffset:
    """Return an offset that has not been translated yet."""
    return TranslatedOffset(source=source, offset=at, committed=at, copy=copy)


class Reads(InMemoryRecords):
    """Reads the records of a cluster; ``count`` is the number of reads."""

    count = 0

    def read(self, spans, *, committed_only):
        Reads.count += 1
        return super().read(spans, committed_only=committed_only)


class Two:
    """A source cluster with the topic ``orders``, and a target cluster with its mirror's copy ``eu.orders``."""

    def __init__(self) -> None:
        self.source, self.target = InMemoryCluster("source"), InMemoryCluster("target")
        self.source.create_topic("orders", 1)
        self.target.create_topic("eu.orders", 1)
        self.copies = Reads(self.target)
        self.here, self.there = Side(self.source, InMemoryRecords(self.source)), Side(self.target, self.copies)

    def produce(self, number: int) -> None:
        for timestamp in range(number):
            self.source.produce("orders", 0, 1, timestamp=timestamp)

    def mirror(self, first: int, last: int) -> None:
        """Copy the records in a span of offsets, as a mirror does."""
        self.target.append_copies("eu.orders", 0, self.source.records(HERE, range(first, last), committed_only=False))

    @property
    def mirror_of_both(self) -> Mirror:
        return Mirror(self.here, self.there)

    def compared(self, *groups: str, trusted: Collection[str] = ()) -> Comparison:
        return compare(self.mirror_of_both, groups, FakeClock(), trusted)


@pytest.fixture
def two() -> Two:
    """Two clusters without records."""
    return Two()


def test_one_translated_offset_for_all_groups_with_the_same_committed_offset(two):
    """If several groups have the same committed offset, ``compare`` reads the records once for all of them.

    Each group's own offset on the target is compared with the same matching offset.
    """
    two.produce(300)
    two.mirror(0, 250)
    two.mirror(200, 300)
    for group, there in {"one": 250, "two": 240, "none": None}.items():
        two.source.commit(group, HERE, 220)
        if there is not None:
            two.target.commit(group, THERE, there)
    Reads.count = 0
    found = two.compared("one", "two", "none")
    assert [(each.position.offset, each.position.counts.again) for _, each in found.partitions] == [
        *[(270, 20), (270, 30), (270, None)]
    ]
    assert [each.position.as_of for _, each in found.partitions] == [350] * 3
    assert Reads.count == 1
    assert (found.off, found.unknown) == (3, 0)


def test_a_window_grows_until_it_is_anchored(two):
    """If all records read before the committed offset have the same timestamp, ``compare`` reads more records.

    It then finds the exact matching offset in the mirror's copy.
    """
    two.source.produce("orders", 0, 50, timestamp=1)
    two.source.produce("orders", 0, 300, timestamp=2)
    two.source.produce("orders", 0, 1, timestamp=3)
    two.source.commit("g", HERE, 350)
    two.mirror(0, 351)
    (found,) = two.compared("g").groups["g"]
    assert (found.position.status, found.position.offset) == (Status.EXACT, 350)


def test_a_partition_with_too_many_records_to_read_ends_no_other_search(two):
    """If a partition has more records to read than allowed, the others are still read until their offset is certain."""
    two.source.create_topic("long", 1)
    two.target.create_topic("eu.long", 1)
    for timestamp in range(2000):
        two.source.produce("long", 0, 1, timestamp=timestamp)
    two.target.append_copies(
        "eu.long", 0, two.source.records(TopicPartition("long", 0), range(100), committed_only=False)
    )
    two.produce(351)
    two.mirror(0, 150)
    asked = [offset(TopicPartition("long", 0), 1900, TopicPartition("eu.long", 0)), offset(HERE, 320, THERE)]
    found = find_positions(two.mirror_of_both._replace(most_records=1000), asked)
    assert found[asked[0]].position.status is Status.NOT_MIRRORED
    assert (found[asked[1]].position.status, found[asked[1]].position.offset) == (Status.NOT_MIRRORED, 150)


def test_records_that_may_not_be_read_are_named(two, monkeypatch):
    """Without Read on a topic of either cluster, ``compare`` is refused. The error names the topics that lack it."""
    two.produce(5)
    two.mirror(0, 5)
    two.source.commit("g", HERE, 3)

    def refuse(*_: object, **__: object) -> None:
        raise NotAuthorized("not authorized")

    monkeypatch.setattr(two.copies, "read", refuse)
    two.target.deny(Resource(ResourceType.TOPIC, "eu.orders"), Operation.READ)
    with pytest.raises(NotAuthorized, match=r"lacks Read on Topic 'eu\.orders'"):
        two.compared("g")
    two.source.deny(Resource(ResourceType.TOPIC, "orders"), Operation.READ)
    with pytest.raises(NotAuthorized, match=r"lacks Read on Topic 'orders'"):
        two.compared("g")


def test_what_is_known_without_reading_a_record(two):
    """Without a matching offset in the mirror's copy, the status is undetermined, and the result gives the reason.

    Reasons: a pending commit, a missing copy, no leader on the source, or a commit beyond the log end.
    """
    two.produce(5)
    two.source.create_topic("away", 1)
    two.source.lose_leader("away", 0)
    asked = {
        offset(HERE, PENDING, THERE): "a transactional commit is pending",
        offset(HERE, 3, None): (
            "no such partition on the target, or no Describe on its topic (a mirror may take 10 min to create it)"
        ),
        offset(HERE, 9, THERE): "the committed offset is beyond the source's log end",
        offset(TopicPartition("away", 0), 0, THERE): "the partition has no leader on the source",
    }
    found = find_positions(two.mirror_of_both, asked)
    assert {each: found[each].position.reason for each in asked} == asked
    assert {each.position.status for each in found.values()} == {Status.UNDETERMINED}


def test_an_offset_whose_records_the_source_has_deleted(two):
    """If the source's log starts after the committed offset, the copy has no offset; the reason says how far."""
    two.produce(5)
    two.mirror(0, 5)
    two.source.delete_records("orders", 0, 3)
    (found,) = find_positions(two.mirror_of_both, [offset(HERE, 1, THERE)]).values()
    assert (found.position.status, found.position.reason) == (Status.GONE, "the source's log starts 2 offsets later")


def test_a_target_without_a_leader_is_undetermined(two):
    """If the mirror's copy of a partition has no leader, no matching offset is found, and the result says why."""
    two.produce(5)
    two.target.lose_leader("eu.orders", 0)
    found = find_positions(two.mirror_of_both, [offset(HERE, 3, THERE)])
    assert [each.position.reason for each in found.values()] == ["the partition has no leader on the target"]


def test_an_empty_topic_continues_at_its_start(two):
    """If a topic and its copy have never had a record, offset 0 is exact, although no record was compared."""
    two.source.commit("g", HERE, 0)
    (found,) = two.compared("g").groups["g"]
    assert (found.position.status, found.position.offset, found.position.as_of) == (Status.EXACT, 0, 0)
    assert (found.position.method, found.position.compared, found.position.is_known) == (Method.START, 0, True)


def test_an_empty_topic_and_a_target_with_records(two):
    """If the source has never had a record, but the target has, the target's topic is not a copy."""
    two.target.produce("eu.orders", 0, 77)
    two.source.commit("g", HERE, 0)
    (found,) = two.compared("g").groups["g"]
    assert (found.position.status, found.position.offset) == (Status.DIFFERENT, None)


def test_a_mirror_that_has_delivered_nothing(two):
    """If the copy is empty and the source has records, nothing was compared: the offset is not mirrored yet."""
    two.produce(5)
    two.source.commit("g", HERE, 0)
    (found,) = two.compared("g").groups["g"]
    assert (found.position.status, found.position.compared) == (Status.NOT_MIRRORED, 0)


@pytest.mark.parametrize("make", ["copy", "foreign"])
def test_a_source_without_a_record_left_proves_nothing(two, make):
    """If all records of the source were deleted, the offset is undetermined, whatever the target's topic contains."""
    two.produce(50)
    two.source.delete_records("orders", 0, 50)
    two.source.commit("g", HERE, 50)
    if make == "copy":
        two.mirror(0, 50)
    else:
        two.target.produce("eu.orders", 0, 77)
    found = two.compared("g")
    (partition,) = found.groups["g"]
    assert (partition.position.status, partition.position.offset, found.unknown) == (Status.UNDETERMINED, None, 1)
    assert "pass --trust-copy orders" in partition.position.reason
    assert len(found.rows(1000)) == 0


def test_a_trusted_copy_continues_at_its_end(two):
    """With ``--trust-copy`` the translated offset is the end of the copy if the source has no record left to compare.

    Its status says that it is trusted. Copies of other topics are not trusted.
    """
    two.produce(50)
    two.source.delete_records("orders", 0, 50)
    two.source.commit("g", HERE, 50)
    two.target.produce("eu.orders", 0, 60)
    two.target.commit("g", THERE, 55)
    (found,) = two.compared("g", trusted=["other"]).groups["g"]
    assert found.position.status is Status.UNDETERMINED
    compared = two.compared("g", trusted=["orders"])
    (found,) = compared.groups["g"]
    assert (found.position.status, found.position.offset, found.position.compared) == (Status.TRUSTED, 60, 0)
    assert (found.position.counts.again, compared.off, compared.unknown) == (5, 1, 0)
    assert [row.offset for row in compared.rows(0).rows()] == [60]


def test_only_aborted_records_are_left(two):
    """If the source has only aborted records left, which the mirror does not deliver, nothing can be compared."""
    two.source.transact("orders", 0, 3, timestamp=5)
    two.source.delete_records("orders", 0, 4)
    two.source.transact("orders", 0, 3, timestamp=9, commit=False)
    two.source.commit("g", HERE, 8)
    two.target.produce("eu.orders", 0, 77, timestamp=1)
    (found,) = two.compared("g").groups["g"]
    assert (found.position.status, found.position.offset) == (Status.UNDETERMINED, None)
    (found,) = two.compared("g", trusted=["orders"]).groups["g"]
    assert (found.position.status, found.position.offset) == (Status.TRUSTED, 77)


def test_a_trusted_copy_is_compared_where_records_are_left(two):
    """``--trust-copy`` does not make a copy exact that differs from the source's records."""
    two.produce(50)
    two.source.commit("g", HERE, 50)
    two.target.produce("eu.orders", 0, 77, timestamp=60)
    (found,) = two.compared("g", trusted=["orders"]).groups["g"]
    assert found.position.status is Status.DIFFERENT


def test_an_empty_target_whose_records_were_deleted_has_no_translated_offset(two):
    """If the records of the mirror's copy were deleted, ``compare`` finds no matching offset in the copy."""
    two.produce(5)
    two.mirror(0, 3)
    two.target.delete_records("eu.orders", 0, 3)
    two.source.commit("g", HERE, 0)
    (found,) = two.compared("g").groups["g"]
    assert (found.position.status, found.position.offset) == (Status.GONE, None)


@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_compacted_topic_is_judged_by_its_neighbours(two, is_hidden):
    """If compaction has removed records of the copy, the translated offset lies between records that both logs have.

    So it is if DescribeConfigs is missing, and the cleanup.policy is not known.
    """
    two.target.create_topic("eu.orders", 1, compacted=not is_hidden)
    two.target.hide_policies = is_hidden
    two.produce(5)
    two.mirror(0, 5)
    two.source.commit("g", HERE, 3)
    (whole,) = two.compared("g").groups["g"]
    two.target.compact("eu.orders", 0, [1])
    (found,) = two.compared("g").groups["g"]
    assert (found.position.offset, found.position.method, found.position.compared) == (3, "neighbours", 4)
    assert (whole.position.offset, whole.position.method, whole.position.compared) == (3, "walk", 5)


def test_identical_records_of_a_topic_whose_policy_is_not_known(two):
    """Thirty identical records, of which compaction has removed 7 from the copy, have no exactly translated offset.

    DescribeConfigs is missing, so it is not known that the topics are compacted.
    """
    two.source.hide_policies = two.target.hide_policies = True
    two.source.produce("orders", 0, 5, timestamp=1)
    for _ in range(30):
        two.source.produce("orders", 0, 1, timestamp=2)
    two.source.produce("orders", 0, 1, timestamp=3)
    two.mirror(0, 36)
    two.source.commit("g", HERE, 20)
    (whole,) = two.compared("g").groups["g"]
    assert (whole.position.status, whole.position.offset) == (Status.EXACT, 20)
    two.target.compact("eu.orders", 0, range(5, 12))
    (found,) = two.compared("g").groups["g"]
    assert (found.position.status, found.position.offset) == (Status.UNDETERMINED, None)
    assert "cleanup.policy can't be read" in found.position.reason


def test_groups_that_cannot_be_compared(two):
    """If a group is missing on the source, the error suggests a similar name. A group without an offset is refused."""
    two.source.commit("billing", HERE, 0)
    two.target.commit("biling", THERE, 0)
    with pytest.raises(GroupNotFound, match=r"did you mean billing\?"):
        two.compared("biling")
    two.source.delete("billing", [HERE])
    with pytest.raises(Refused, match="group billing: no committed offset on the source"):
        two.compared("billing")


def test_a_cluster_is_not_compared_with_itself(two):
    """If both addresses lead to the same cluster, ``compare`` is refused."""
    with pytest.raises(InvalidInput, match="both clusters are the same"):
        compare(Mirror(two.here, two.here), ["g"], FakeClock())
