"""How a committed offset is translated to a mirror's copy of its partition: status, offset and record counts."""

from __future__ import annotations

import pytest

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.mirrors.find_place import find_place
from migrate_groups.mirrors.names import Rename, TopicNames
from migrate_groups.mirrors.place import CopyPart, Counts, LogPart, Method, Place, Status


def part(text: str, start: int = 0, *, aborted: str = "") -> LogPart:
    """Return a part of a log with a record for each letter. A dot is an offset without a record."""
    offsets = [start + index for index, letter in enumerate(text) if letter != "."]
    letters = [letter for letter in text if letter != "."]
    return LogPart(
        offsets=offsets,
        timestamps=offsets,
        prints=[letter.encode() for letter in letters],
        from_start=start == 0,
        aborted=frozenset(index for index, letter in enumerate(letters) if letter in aborted),
    )


def copied(text: str, start: int = 0, *, is_cut_off: bool = False) -> CopyPart:
    """Return a part of a mirror's copy with a record for each letter. A dot is an offset without a record."""
    made = part(text, start)
    return CopyPart(
        offsets=made.offsets, timestamps=made.timestamps, prints=made.prints, start=start, is_cut_off=is_cut_off
    )


def place(source: str, committed: int, copy: str, there: int | None = None, start: int = 0, at: int = 0) -> Place:
    """Return the offset ``committed`` of a log ``source``, translated to a mirror's copy of it.

    - there: the group's committed offset in the copy, if any
    - start: the offset from which the source log was read
    - at: the first offset of the copy
    """
    return find_place(part(source, start), committed, copied(copy, at), there)


@pytest.mark.parametrize(
    ("source", "committed", "copy", "status", "offset"),
    [
        ("abcdef", 3, "abcdef", Status.EXACT, 3),
        ("abcdef", 3, "abc", Status.EXACT, 3),
        ("abcdef", 0, "abcdef", Status.EXACT, 0),
        ("abcdef", 6, "abcdef", Status.EXACT, 6),
        ("abcdef", 3, "abcdefbcdef", Status.EXACT, 8),
        ("abcdef", 2, "abcd.cdef", Status.EXACT, 2),
        ("ab.cd", 3, "abcd", Status.EXACT, 2),
        ("abcdef", 3, "ab", Status.NOT_MIRRORED, None),
        ("abcdef", 3, "abcdab", Status.NOT_MIRRORED, None),
        ("abcdef", 3, "", Status.NOT_MIRRORED, None),
        ("abcdef", 3, "cdef", Status.EXACT, 1),
        ("abcdef", 3, "def", Status.EXACT, 0),
        ("abcdef", 3, "ef", Status.GONE, None),
        ("abcdef", 3, "abdef", Status.DIFFERENT, None),
        ("abcdef", 3, "aBcdef", Status.DIFFERENT, None),
        ("axxb", 2, "axxxb", Status.AMBIGUOUS, 2),
    ],
)
def test_status_and_place(source, committed, copy, status, offset):
    """A committed offset is translated to the matching offset of the mirror's copy; the status says how exactly.

    The translated offset is None if none matches. Every status except exact has a reason.
    """
    found = place(source, committed, copy)
    assert (found.status, found.offset) == (status, offset)
    assert bool(found.reason) is (status is not Status.EXACT)


@pytest.mark.parametrize(
    ("source", "committed", "copy", "status"),
    [
        ("abcdef", 3, "def", Status.EXACT),
        ("abcdef", 3, "ef", Status.GONE),
        ("abcdef", 3, "", Status.GONE),
        ("abcded", 3, "d", Status.GONE),
        ("abcded", 3, "ded", Status.GONE),
        ("abcded", 3, "cded", Status.EXACT),
        ("abcabc", 2, "ab", Status.GONE),
    ],
)
def test_a_copy_whose_first_records_were_deleted(source, committed, copy, status):
    """If a copy's records below the committed offset were deleted, it must begin with the record at that offset.

    Otherwise, or if a later record is identical to that record, the committed offset is not translated.
    """
    found = find_place(part(source), committed, copied(copy, 7, is_cut_off=True), None)
    assert (found.status, found.offset is None) == (status, status is not Status.EXACT)


@pytest.mark.parametrize(("copy", "status"), [("cd", Status.EXACT), ("d", Status.GONE)])
def test_a_compacted_copy_whose_first_records_were_deleted(copy, status):
    """If a compacted copy lost its first records, it must still have the record at the committed offset.

    Otherwise the committed offset is not translated.
    """
    found = find_place(part("abcd"), 2, copied(copy, 7, is_cut_off=True), None, compacted=True)
    assert found.status is status


def test_an_older_record_is_no_proof_that_the_last_one_before_the_commit_was_delivered():
    """If no source record before the committed offset was read, the copy must have the record at this offset.

    Without it, the status is "not mirrored yet".
    """
    assert place("def", 3, "abc", start=3).status is Status.NOT_MIRRORED
    found = place("def", 3, "abcd", start=3)
    assert (found.status, found.offset) == (Status.EXACT, 3)


@pytest.mark.parametrize(("committed", "before", "after"), [(0, None, b"a"), (2, b"b", b"c"), (4, b"d", None)])
@pytest.mark.parametrize(("compacted", "method"), [(False, Method.WALK), (True, Method.NEIGHBOURS)])
def test_method_and_the_records_beside_the_committed_offset(committed, before, after, compacted, method):
    """A translated offset names the search method, and has fingerprints of the records around the committed offset."""
    found = find_place(part("abcd"), committed, copied("abcd"), None, compacted=compacted)
    assert (found.method, found.before, found.after) == (method, before, after)


@pytest.mark.parametrize(
    ("copy", "at", "status"),
    [("CDEF", 2, Status.DIFFERENT), ("ab", 0, Status.NOT_MIRRORED), ("", 2, Status.NOT_MIRRORED)],
)
def test_a_copy_without_any_record_of_the_source(copy, at, status):
    """If a mirror's copy contains no record of the source, its status is "different".

    If the copy is empty, or ends before the first record that was read from the source, the status is "not mirrored
    yet".
    """
    assert place("cdef", 5, copy, start=2, at=at).status is status


def test_records_read_again_and_skipped_are_counted():
    """If a group starts below the translated offset, it reads records again; if it starts above, it skips records.

    Their number is counted. It is 0 at the translated offset.
    """
    assert place("abcdef", 3, "abcdef", 1).counts == Counts(again=2, skipped=0)
    assert place("abcdef", 3, "abcdef", 3).counts == Counts(again=0, skipped=0)
    assert place("abcdef", 3, "abcdef", 5).counts == Counts(again=0, skipped=2)
    assert place("abcdef", 3, "abcdef").counts == Counts()


def test_copies_are_counted_and_a_copy_behind_is_not_skipped():
    """A record is not counted as skipped if the copy contains it again at or above the group's offset.

    Records that the mirror delivered repeatedly are counted.
    """
    assert place("abcdef", 3, "abcdefbcdef", 5).counts == Counts(again=3, skipped=0, copies=5)
    assert place("abcdef", 3, "abcdefbcdef", 9).counts == Counts(again=0, skipped=1, copies=5)


def test_aborted_records_that_the_mirror_delivered_are_counted():
    """If a mirror reads uncommitted records, the aborted records from the translated offset on are counted."""
    source = part("abXcdY.ef", aborted="XY")
    found = find_place(source, 3, copied("abXcdYef"), None)
    assert (found.status, found.offset, found.counts.aborted) == (Status.EXACT, 3, 1)


def test_aborted_records_that_the_mirror_left_out_do_not_matter():
    """If a mirror reads only committed records, and so omits aborted ones, an offset is translated exactly."""
    found = find_place(part("abXcdY.ef", aborted="XY"), 3, copied("abcdef"), None)
    assert (found.status, found.offset, found.counts.aborted) == (Status.EXACT, 2, 0)


@pytest.mark.parametrize(
    ("source", "committed", "copy", "status", "offset", "reread"),
    [
        ("ab.de", 3, "abcde", Status.BOUNDED, 2, 1),
        ("abcde", 3, "ab.de", Status.EXACT, 2, 0),
        ("abcde", 3, "abcde", Status.EXACT, 3, 0),
        ("abcde", 3, "ab", Status.NOT_MIRRORED, None, 0),
        ("aacde", 3, "aacde", Status.UNDETERMINED, None, 0),
        ("abcde", 3, "abcdeab", Status.NOT_MIRRORED, None, 0),  # begun again
        ("abcde", 3, "abcdeabc", Status.NOT_MIRRORED, None, 0),
        (".bcde", 2, "abcdea", Status.BOUNDED, 2, 1),  # begun again, and not seen to be: a is from before the commit
        (".bcde", 2, "abcda.cde", Status.BOUNDED, 2, 1),
        (".b.de", 2, "abcde", Status.BOUNDED, 2, 1),
        (".bcd.f", 2, "abcdef", Status.EXACT, 2, 0),
    ],
)
def test_compacted_topics(source, committed, copy, status, offset, reread):
    """In a compacted topic, an offset is translated by the nearest records that both logs have.

    If records between these were compacted away, the status is "bounded", with the number of records to read again.
    """
    found = find_place(part(source), committed, copied(copy), None, compacted=True)
    assert (found.status, found.offset, found.reread) == (status, offset, reread)


def test_topics_are_found_under_the_names_of_mirrormakers_policies():
    """A mirror's copy is found under the topic's own name, or under a cluster's alias, a dot and the topic's name."""
    there = {"orders", "eu.payments", "eu.west.stock", "other"}
    assert TopicNames().of({"orders", "payments", "stock", "none"}, there) == {
        "orders": "orders",
        "payments": "eu.payments",
    }


def test_a_topic_with_two_possible_names_is_refused():
    """If two topics of the target may be the mirror's copy, they are refused unless ``--rename-topic`` names one."""
    with pytest.raises(InvalidInput, match=r"topic 'orders' may be eu\.orders, orders on the target: .*--rename-topic"):
        TopicNames().of({"orders"}, {"orders", "eu.orders"})
    assert TopicNames((Rename("orders=eu.orders"),)).of({"orders"}, {"orders", "eu.orders"}) == {"orders": "eu.orders"}


def test_rules_rename_topics():
    """The first ``--rename-topic`` rule that matches a topic gives the topic's name on the target.

    If the target has no topic of this name, the topic is left out.
    """
    rules = (Rename("eu.*=*"), Rename("*=us.*"))
    assert TopicNames(rules).of({"eu.orders", "stock", "x"}, {"orders", "us.stock"}) == {
        "eu.orders": "orders",
        "stock": "us.stock",
    }


@pytest.mark.parametrize("text", ["orders", "=orders", "orders=", "a=b=c", "*=orders", "a*b*=*", "orders=*"])
def test_a_rule_that_is_none_is_refused(text):
    """A malformed ``--rename-topic`` rule, such as ``orders`` or ``a=b=c``, is a usage error."""
    with pytest.raises(UsageError, match=r"--rename-topic is "):
        Rename(text)
