"""Finding the offset in a mirror's copy that corresponds to a committed offset.

Simulated mirrors, whose right offsets are known, check the result.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from migrate_groups.mirrors import walk as walking
from migrate_groups.mirrors.find_place import find_place
from migrate_groups.mirrors.place import Status
from migrate_groups.mirrors.walk import OLDER, TooLong, walk
from tests.support.compacted_mirror import compacted
from tests.support.simulated_mirror import is_wrong, mirrored, windows


def prints(text: str) -> list[bytes]:
    """Return a record's fingerprint for each letter of ``text``."""
    return [letter.encode() for letter in text]


@pytest.mark.parametrize("seed", range(4))
def test_an_exact_place_is_never_wrong(seed):
    """If a target offset is reported as exact, a group that starts there skips no record and reads no record again."""
    rng = random.Random(seed)
    statuses: Counter[Status] = Counter()
    for _ in range(2500):
        case = mirrored(rng)
        source, committed, copy, truth = windows(rng, case)
        place = find_place(source, committed, copy, None)
        statuses[place.status] += 1
        if place.status is Status.EXACT and place.offset is not None:
            assert not is_wrong(place.offset, source, committed, copy, truth), (case, committed, place)
    assert statuses[Status.EXACT] > 1200
    assert {Status.AMBIGUOUS, Status.NOT_MIRRORED, Status.GONE} <= statuses.keys()


@pytest.mark.parametrize("is_known", [True, False])
def test_an_exact_place_in_a_compacted_topic_is_never_wrong(is_known):
    """If source and copy are compacted at different times, a target offset that is found skips no record.

    It repeats at most ``reread`` records. Both hold even if it is not known that the topic is compacted, because the
    permission DescribeConfigs is missing.
    """
    rng = random.Random(1)
    statuses: Counter[Status] = Counter()
    for _ in range(5000):
        case = compacted(rng)
        place = find_place(case.source, case.committed, case.copy, None, compacted=is_known)
        statuses[place.status] += 1
        if place.offset is not None:
            assert not case.skipped(place.offset), (case, place)
            assert case.read_again(place.offset) <= place.reread, (case, place)
    assert statuses[Status.EXACT] > 1000
    assert {Status.BOUNDED if is_known else Status.DIFFERENT, Status.NOT_MIRRORED} <= statuses.keys()


def test_a_copy_without_a_restart_is_explained_by_its_order():
    """If the mirror has not restarted, `walk` distinguishes identical records by their order."""
    found = walk(prints("abaab"), 3, prints("abaab"), older=False)
    assert found is not None
    assert (list(found.indices), found.restarts, found.lowest, found.highest) == ([0, 1, 2, 3, 4], 0, 3, 3)


def test_a_restart_begins_again_earlier():
    """If a mirror has restarted and copied records again, `walk` returns the position of the last copy."""
    found = walk(prints("abcd"), 3, prints("abcdbcd"), older=False)
    assert found is not None
    assert list(found.indices) == [0, 1, 2, 3, 1, 2, 3]
    assert (found.restarts, found.lowest, found.highest) == (1, 6, 6)


def test_identical_records_around_the_cut_are_ambiguous_after_a_restart():
    """If a mirror copied one of two identical records again, `walk` returns the lowest and highest possible offset."""
    found = walk(prints("axxb"), 2, prints("axxxb"), older=False)
    assert found is not None
    assert (found.restarts, found.lowest, found.highest) == (1, 2, 3)


def test_records_from_before_the_first_one_are_older():
    """`walk` marks a copied record as ``OLDER`` if it precedes the part of the source log that was read.

    It does so after a restart of the mirror, too.
    """
    found = walk(prints("cd"), 1, prints("abcdbcd"), older=True)
    assert found is not None
    assert list(found.indices) == [OLDER, OLDER, 0, 1, OLDER, 0, 1]
    assert (found.lowest, found.highest) == (6, 6)


@pytest.mark.parametrize("copy", ["abd", "abcx", "acb", "xabc"])
def test_a_copy_that_no_mirror_makes_has_no_explanation(copy):
    """`walk` returns None if the copy lacks a record, has a record that the source lacks, or has another order."""
    assert walk(prints("abcd"), 2, prints(copy), older=False) is None


def test_long_runs_of_identical_records_are_given_up(monkeypatch):
    """`walk` raises `TooLong` if it would have to compare too many pairs of records."""
    monkeypatch.setattr(walking, "MOST_STEPS", 1000)
    with pytest.raises(TooLong):
        walk(prints("x" * 100), 50, prints("x" * 100), older=False)
