"""Finding the source record of each record of a mirror's copy."""

from __future__ import annotations

import tracemalloc

import pytest

from migrate_groups.mirrors import walk as walking
from migrate_groups.mirrors.walk import OLDER, TooLong, walk


def prints(text: str) -> list[bytes]:
    """Return a record's fingerprint for each letter of ``text``."""
    return [letter.encode() for letter in text]


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


def test_the_memory_for_identical_records_is_bounded():
    """For a pair of identical records `walk` keeps some bytes: at its limit of pairs less than 100 MB."""
    number = 400
    tracemalloc.start()
    walk(prints("x" * number), number // 2, prints("x" * number), older=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    compared = 2 * number * number  # as `walk` counts them
    assert peak / compared * walking.MOST_STEPS < 100e6
