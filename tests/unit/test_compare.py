"""``compare`` on two in-memory clusters: a topic of the target cluster is a mirror's copy of a source topic."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from migrate_groups.errors import GroupNotFound, InvalidInput, Refused
from migrate_groups.migration.across import places
from migrate_groups.migration.across.compare import Comparison, compare
from migrate_groups.migration.across.mirror import MOST_RECORDS, Mirror
from migrate_groups.migration.across.places import MirroredPartition, find_places
from migrate_groups.migration.ports import Side
from migrate_groups.mirrors.names import TopicNames
from migrate_groups.mirrors.place import Place, Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.records import Records
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster, InMemoryRecords
from tests.support.simulated_mirror import Mirrored, mirrored

HERE, THERE = TopicPartition("orders", 0), TopicPartition("eu.orders", 0)


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

    def compared(self, *groups: str, most: int = 200_000) -> Comparison:
        return compare(Mirror(self.here, self.there, TopicNames(), most), groups, FakeClock())


@pytest.fixture
def two() -> Two:
    """Two clusters without records."""
    return Two()


def test_one_place_for_all_groups_with_the_same_committed_offset(two):
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
    assert [(each.place.offset, each.place.counts.again) for each in found.partitions] == [
        *[(270, 20), (270, 30), (270, None)]
    ]
    assert [each.found.mirrored_to for each in found.partitions] == [350] * 3
    assert Reads.count == 1
    assert (found.off, found.untold) == (3, 0)


def test_a_window_grows_until_it_is_anchored(two):
    """If all records read before the committed offset have the same timestamp, ``compare`` reads more records.

    It then finds the exact matching offset in the mirror's copy.
    """
    two.source.produce("orders", 0, 50, timestamp=1)
    two.source.produce("orders", 0, 300, timestamp=2)
    two.source.produce("orders", 0, 1, timestamp=3)
    two.source.commit("g", HERE, 350)
    two.mirror(0, 351)
    (found,) = two.compared("g").partitions
    assert (found.place.status, found.place.offset) == (Status.EXACT, 350)


def test_what_is_told_without_reading_a_record(two):
    """Without a matching offset in the mirror's copy, the status is undetermined, and the result gives the reason.

    Reasons: a pending commit, a missing copy, no leader on the source, or a commit beyond the log end.
    """
    two.produce(5)
    two.source.create_topic("away", 1)
    two.source.lose_leader("away", 0)
    asked = {
        MirroredPartition(HERE, None, THERE): "a transactional commit is pending",
        MirroredPartition(HERE, 3, None): (
            "no such partition on the target, or no Describe on its topic (a mirror may take 10 min to create it)"
        ),
        MirroredPartition(HERE, 9, THERE): "the committed offset is beyond the source's log end",
        MirroredPartition(TopicPartition("away", 0), 0, THERE): "the partition has no leader on the source",
    }
    found = find_places(two.here, two.there, asked, MOST_RECORDS)
    assert {each: found[each].place.reason for each in asked} == asked
    assert {each.place.status for each in found.values()} == {Status.UNDETERMINED}


def test_a_target_without_a_leader_is_undetermined(two):
    """If the mirror's copy of a partition has no leader, no matching offset is found, and the result says why."""
    two.produce(5)
    two.target.lose_leader("eu.orders", 0)
    found = find_places(two.here, two.there, [MirroredPartition(HERE, 3, THERE)], MOST_RECORDS)
    assert [each.place.reason for each in found.values()] == ["the partition has no leader on the target"]


def test_an_empty_topic_continues_at_its_start(two):
    """If a topic and its copy are empty, ``compare`` finds the log start of the copy as the exact matching offset."""
    two.source.commit("g", HERE, 0)
    (found,) = two.compared("g").partitions
    assert (found.place.status, found.place.offset, found.found.mirrored_to) == (Status.EXACT, 0, 0)


def test_an_empty_target_whose_records_were_deleted_has_no_place(two):
    """If the records of the mirror's copy were deleted, ``compare`` finds no matching offset in the copy."""
    two.produce(5)
    two.mirror(0, 3)
    two.target.delete_records("eu.orders", 0, 3)
    two.source.commit("g", HERE, 0)
    (found,) = two.compared("g").partitions
    assert (found.place.status, found.place.offset) == (Status.GONE, None)


def test_a_compacted_topic_is_judged_by_its_neighbours(two):
    """If the mirror's copy is compacted, ``compare`` derives the matching offset from records that are in both logs."""
    two.target.create_topic("eu.orders", 1, compacted=True)
    two.produce(5)
    two.mirror(0, 5)
    two.source.commit("g", HERE, 3)
    (found,) = two.compared("g").partitions
    assert (found.place.offset, found.place.method) == (3, "neighbours")


def test_groups_that_cannot_be_compared(two):
    """If a group is missing on the source, the error suggests a similar name. A group without an offset is refused."""
    two.source.commit("billing", HERE, 0)
    two.target.commit("biling", THERE, 0)
    with pytest.raises(GroupNotFound, match=r"did you mean billing\?"):
        two.compared("biling")
    two.source.delete_offsets("billing", [HERE])
    with pytest.raises(Refused, match="group billing: no committed offset on the source"):
        two.compared("billing")


def test_a_cluster_is_not_compared_with_itself(two):
    """If both addresses lead to the same cluster, ``compare`` is refused."""
    with pytest.raises(InvalidInput, match="both clusters are the same"):
        compare(Mirror(two.here, two.here, TopicNames()), ["g"], FakeClock())


def _two_of(case: Mirrored) -> Two:
    """Return two clusters with the log and the copy of a simulated mirror."""
    made = Two()
    made.source.append_copies("orders", 0, _records(case, range(len(case.log))))
    made.target.append_copies("eu.orders", 0, _records(case, case.copied))
    return made


def _records(case: Mirrored, indices: Sequence[int]) -> Records:
    return Records(
        offsets=range(len(indices)),
        timestamps=[max(0, case.timestamps[index]) for index in indices],
        prints=[case.log[index] for index in indices],
    )


@pytest.mark.parametrize("seed", range(2))
def test_no_place_skips_a_record(seed, monkeypatch):
    """A group that starts at the matching offset found in a mirror's copy skips no record.

    If the status is EXACT, it also reads no record again. Logs are simulated; some have lost records on one of the
    clusters. At first only few records are read, so more have to be read later. Records with the same content are
    treated as the same record.
    """
    monkeypatch.setattr(places, "_WINDOW", 3)
    monkeypatch.setattr(places, "_GROWTH", 2)
    rng = random.Random(seed)
    statuses: Counter[Status] = Counter()
    for _ in range(800):
        case = mirrored(rng)
        two, cut, deleted = _two_of(case), rng.randint(0, len(case.log)), 0
        is_whole = [*case.timestamps] == sorted(case.timestamps)
        if rng.random() < 0.3:
            is_whole = False
            two.source.delete_records("orders", 0, rng.randint(0, len(case.log)))
        if rng.random() < 0.3:
            deleted = rng.randint(0, len(case.copied))
            two.target.delete_records("eu.orders", 0, deleted)
        asked = MirroredPartition(HERE, cut, THERE)
        place = find_places(two.here, two.there, [asked], MOST_RECORDS)[asked].place
        statuses[place.status] += 1
        if place.offset is not None:
            _judge(case, cut, place, deleted, is_whole=is_whole)
    assert statuses[Status.EXACT] > 300
    assert {Status.AMBIGUOUS, Status.NOT_MIRRORED, Status.GONE} <= statuses.keys()


def _judge(case: Mirrored, cut: int, place: Place, deleted: int, *, is_whole: bool) -> None:
    """Fail if a group that starts at ``place.offset`` skips a record, or reads one again although the status is EXACT.

    is_whole: whether the source log has all its records, in timestamp order. If not, records that the mirror delivers
    later are not judged.
    """
    assert place.offset is not None
    read = Counter(case.log[index] for index in case.copied[max(place.offset, deleted) :])
    later = Counter(case.log[case.copied[-1] + 1 :] if case.copied else case.log)
    delivered = Counter(case.log[index] for index in set(case.copied) if index >= cut)
    assert not {each for each in delivered if (read + later)[each] < delivered[each]}, (case, cut, place, deleted)
    if place.status is Status.EXACT:
        assert not (read + later if is_whole else read).keys() - set(case.log[cut:]), (case, cut, place, deleted)
