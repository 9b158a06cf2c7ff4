"""Finding the source record of each record of a mirror's copy."""

from __future__ import annotations

import tracemalloc

import pytest

from migrate_groups.mirrors import walk as walking
from migrate_groups.mirrors.walk import OLDER, TooLong, walk


def prints(text: str) -> list[bytes]:
    """Return a record's fingerprint for each letter of ``text``."""
    return [letter.encode() for letter in text]


@pytest.mark.parametrize(
    ("source", "cut", "copy", "older", "indices", "restarts", "offsets"),
    [
        ("abaab", 3, "abaab", False, [0, 1, 2, 3, 4], 0, (3, 3)),
        ("abcd", 3, "abcdbcd", False, [0, 1, 2, 3, 1, 2, 3], 1, (6, 6)),
        # One of two identical records was copied again.
        ("axxb", 2, "axxxb", False, [0, 1, 2, 2, 3], 1, (2, 3)),
        # The copy has records from before the part of the source log that was read.
        ("cd", 1, "abcdbcd", True, [OLDER, OLDER, 0, 1, OLDER, 0, 1], 1, (6, 6)),
    ],
    ids=["no restart", "restart", "identical records", "older records"],
)
def test_each_record_of_a_copy_is_found_in_the_source(source, cut, copy, older, indices, restarts, offsets):
    """`walk` returns each copy's source record, how often the mirror restarted, and the lowest and highest offset.

    Without a restart it tells identical records apart by their order. Records from before the source log's part are
    ``OLDER``.
    """
    found = walk(prints(source), cut, prints(copy), older=older)
    assert found is not None
    assert (list(found.indices), found.restarts, (found.lowest, found.highest)) == (indices, restarts, offsets)


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
    number = 200  # so that what does not grow with the pairs is small beside what does

    def peak() -> int:
        tracemalloc.start()
        walk(prints("x" * number), number // 2, prints("x" * number), older=False)
        _, bytes_at_once = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return bytes_at_once

    least = min(peak(), peak())  # threads that other tests have left take memory, too
    compared = 2 * number * number  # as `walk` counts them
    assert least / compared * walking.MOST_STEPS < 100e6
