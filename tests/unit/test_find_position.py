"""How a committed offset is translated to a mirror's copy of its partition: status, offset and record counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.mirrors.find_position import find_position
from migrate_groups.mirrors.log_parts import CopyPart, LogPart
from migrate_groups.mirrors.position import Counts, Method, Position, Status
from migrate_groups.model.renames import Rename, names_of_copies


def part(text: str, start: int = 0, *, aborted: str = "", tombstones: str = "") -> LogPart:
    """Return a part of a log with a record for each letter. A dot is an offset without a record.

    The letter is the record's key, and gives its timestamp. A capital letter is another record with the same key.
    """
    letters = [letter for letter in text if letter != "."]
    return LogPart(
        offsets=[start + index for index, letter in enumerate(text) if letter != "."],
        timestamps=[ord(letter.lower()) - ord("a") for letter in letters],
        prints=[letter.encode() for letter in letters],
        keys=[letter.lower().encode() for letter in letters],
        tombstones=[letter in tombstones for letter in letters],
        end=start + len(text),
        from_start=start == 0,
        compacted=False,
        aborted=frozenset(index for index, letter in enumerate(letters) if letter in aborted),
    )


def copied(text: str, start: int = 0, *, is_cut_off: bool = False) -> CopyPart:
    """Return a part of a mirror's copy with a record for each letter. A dot is an offset without a record."""
    made = part(text, start)
    return CopyPart(
        offsets=made.offsets,
        timestamps=made.timestamps,
        prints=made.prints,
        keys=made.keys,
        tombstones=made.tombstones,
        start=start,
        is_cut_off=is_cut_off,
        compacted=False,
    )


def found(source: LogPart, committed: int, copy: CopyPart, there: int | None = None) -> Position:
    """Return the position that `find_position` finds, where the source has a record to compare."""
    position = find_position(source, committed, copy, there)
    assert position is not None
    return position


def compacted(source: LogPart, committed: int, copy: CopyPart) -> Position:
    """Return the position in a topic that is compacted on both clusters: it has lost the offsets without a record."""
    is_source = len(source.offsets) < source.end
    is_copy = bool(copy.offsets) and copy.offsets[-1] >= copy.start + len(copy.offsets)
    return found(replace(source, compacted=is_source), committed, replace(copy, compacted=is_copy))


def translated(
    source: str, committed: int, copy: str, there: int | None = None, start: int = 0, at: int = 0
) -> Position:
    """Return the offset ``committed`` of a log ``source``, translated to a mirror's copy of it.

    - there: the group's committed offset in the copy, if any
    - start: the offset from which the source log was read
    - at: the first offset of the copy
    """
    return found(part(source, start), committed, copied(copy, at), there)


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
        ("abcdef", 3, "ab", Status.NOT_MIRRORED, 2),
        ("abcdef", 3, "abcdab", Status.NOT_MIRRORED, 3),
        ("abcdef", 3, "", Status.NOT_MIRRORED, 0),
        ("abcdef", 3, "cdef", Status.EXACT, 1),
        ("abcdef", 3, "def", Status.EXACT, 0),
        ("abcdef", 3, "ef", Status.GONE, None),
        ("abcdef", 3, "abdef", Status.DIFFERENT, None),
        ("abcdef", 3, "aBcdef", Status.DIFFERENT, None),
        ("axxb", 2, "axxxb", Status.AMBIGUOUS, 2),
    ],
)
def test_status_and_translated_offset(source, committed, copy, status, offset):
    """A committed offset is translated to the matching offset of the mirror's copy; the status says how exactly.

    The translated offset is None if none matches. Every status except exact has a reason.
    """
    position = translated(source, committed, copy)
    assert (position.status, position.offset) == (status, offset)
    assert bool(position.reason) is (status is not Status.EXACT)


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
    position = found(part(source), committed, copied(copy, 7, is_cut_off=True))
    assert (position.status, position.offset is None) == (status, status is not Status.EXACT)


@pytest.mark.parametrize(("copy", "status"), [("cd.EA", Status.EXACT), ("d.EA", Status.GONE)])
def test_a_compacted_copy_whose_first_records_were_deleted(copy, status):
    """If a compacted copy lost its first records, it must still have the record at the committed offset.

    Otherwise the committed offset is not translated.
    """
    assert compacted(part("abcdeEA"), 2, copied(copy, 7, is_cut_off=True)).status is status


def test_an_older_record_is_no_proof_that_the_last_one_before_the_commit_was_delivered():
    """If no source record before the committed offset was read, the copy must have the record at this offset.

    Without it, the status is "not mirrored yet".
    """
    assert translated("def", 3, "abc", start=3).status is Status.NOT_MIRRORED
    position = translated("def", 3, "abcd", start=3)
    assert (position.status, position.offset, position.compared) == (Status.EXACT, 3, 1)


@pytest.mark.parametrize(("committed", "before", "after"), [(0, None, b"a"), (2, b"b", b"c"), (4, b"d", None)])
@pytest.mark.parametrize(("source", "method"), [("abcd", Method.WALK), ("abcd.", Method.NEIGHBOURS)])
def test_the_evidence_of_a_translated_offset(committed, before, after, source, method):
    """A translated offset names the search method, and how many records were compared.

    It has fingerprints of the records around the committed offset.
    """
    position = compacted(part(source), committed, copied("abcd"))
    assert (position.method, position.compared, position.before, position.after) == (method, 4, before, after)


@pytest.mark.parametrize("status", Status)
def test_a_position_without_a_compared_record_is_not_known(status):
    """A position for which no record was compared counts as known only if the user trusts it."""
    position = Position(status=status, offset=7, method=Method.WALK)
    assert position.is_known is (status is Status.TRUSTED)
    assert replace(position, compared=1).is_known is (status in (Status.EXACT, Status.TRUSTED))


@pytest.mark.parametrize(
    ("source", "committed", "copy", "start"),
    [("cdefg", 5, "abcdefX", 2), ("cdefg", 5, "abcdXefg", 2), ("abcdef", 3, "abcdX", 0), ("abcdef", 3, "abcXdef", 0)],
)
def test_a_foreign_record_behind_a_record_of_the_source(source, committed, copy, start):
    """If another producer has written to the copy, the status is "different", also for the copy's last record."""
    position = translated(source, committed, copy, start=start)
    assert (position.status, position.offset) == (Status.DIFFERENT, None)


def test_a_mirror_that_begins_again_before_the_records_that_were_read():
    """If the copy ends with older records, the mirror delivers records again: the offset is not mirrored yet."""
    assert translated("cdef", 4, "abcdefab", start=2).status is Status.NOT_MIRRORED
    assert translated("cdef", 4, "abcdefabcd", start=2).status is Status.NOT_MIRRORED
    assert translated("cdef", 4, "abcdefabcdef", start=2).offset == 10


@pytest.mark.parametrize(
    ("copy", "at", "status"),
    [("CDEF", 2, Status.DIFFERENT), ("ab", 0, Status.NOT_MIRRORED), ("", 2, Status.NOT_MIRRORED)],
)
def test_a_copy_without_any_record_of_the_source(copy, at, status):
    """If a mirror's copy contains no record of the source, its status is "different".

    If the copy is empty, or ends before the first record that was read from the source, the status is "not mirrored
    yet".
    """
    assert translated("cdef", 5, copy, start=2, at=at).status is status


def test_records_read_again_and_skipped_are_counted():
    """If a group starts below the translated offset, it reads records again; if it starts above, it skips records.

    Their number is counted. It is 0 at the translated offset.
    """
    assert translated("abcdef", 3, "abcdef", 1).counts == Counts(again=2, skipped=0)
    assert translated("abcdef", 3, "abcdef", 3).counts == Counts(again=0, skipped=0)
    assert translated("abcdef", 3, "abcdef", 5).counts == Counts(again=0, skipped=2)
    assert translated("abcdef", 3, "abcdef").counts == Counts()


def test_copies_are_counted_and_a_copy_behind_is_not_skipped():
    """A record is not counted as skipped if the copy contains it again at or above the group's offset.

    Records that the mirror delivered repeatedly are counted.
    """
    assert translated("abcdef", 3, "abcdefbcdef", 5).counts == Counts(again=3, skipped=0, copies=5)
    assert translated("abcdef", 3, "abcdefbcdef", 9).counts == Counts(again=0, skipped=1, copies=5)


def test_aborted_records_that_the_mirror_delivered_are_counted():
    """If a mirror reads uncommitted records, the aborted records from the translated offset on are counted."""
    source = part("abXcdY.ef", aborted="XY")
    position = found(source, 3, copied("abXcdYef"))
    assert (position.status, position.offset, position.counts.aborted) == (Status.EXACT, 3, 1)


def test_aborted_records_that_the_mirror_left_out_do_not_matter():
    """If a mirror reads only committed records, and so omits aborted ones, an offset is translated exactly."""
    position = found(part("abXcdY.ef", aborted="XY"), 3, copied("abcdef"))
    assert (position.status, position.offset, position.counts.aborted) == (Status.EXACT, 2, 0)


@pytest.mark.parametrize(
    ("source", "committed", "copy", "status", "offset", "reread"),
    [
        ("ab.deC", 3, "abcdeC", Status.BOUNDED, 2, 1),
        ("abcdeC", 3, "ab.deC", Status.EXACT, 2, 0),
        ("abcdeC", 3, "abcdeC", Status.EXACT, 3, 0),
        ("abcdeC", 3, "ab", Status.NOT_MIRRORED, 2, 0),
        ("aa.deC", 3, "aacdeC", Status.UNDETERMINED, None, 0),
        ("ab.deC", 3, "abcdeCab", Status.NOT_MIRRORED, None, 0),  # begun again
        ("abcd.fE", 3, "abcdefEabc", Status.NOT_MIRRORED, None, 0),
        (".bcdeA", 2, "abcdeAa", Status.BOUNDED, 2, 1),  # begun again, and not seen to be: a is from before the commit
        (".bcdeA", 2, "abcda.cdeA", Status.BOUNDED, 2, 1),
        (".b.deAC", 2, "abcdeAC", Status.BOUNDED, 2, 1),
        (".bcd.fAE", 2, "abcdefAE", Status.EXACT, 2, 0),
        ("abcdef.", 3, "ef", Status.GONE, None, 0),  # the mirror has begun too late
        ("abcdefD.", 3, "...c.efD", Status.EXACT, 4, 0),
    ],
)
def test_compacted_topics(source, committed, copy, status, offset, reread):
    """In a compacted topic, an offset is translated by the nearest records that both logs have.

    If records between these were compacted away, the status is "bounded", with the number of records to read again.
    """
    position = compacted(part(source), committed, copied(copy))
    assert (position.status, position.offset, position.reread) == (status, offset, reread)


@pytest.mark.parametrize(
    ("source", "committed", "copy", "status"),
    [
        # The copy has no empty offset, so compaction has not removed e.
        (".bcdefAE", 3, "abcdfAE", Status.DIFFERENT),
        # Compaction can have removed e, because e comes again.
        (".bcdefAE", 3, "abcd.fAE", Status.EXACT),
        # It can't, because e does not come again: not at all, or not among the records that were delivered.
        (".bcdefA", 3, "abcd.fA", Status.DIFFERENT),
        (".bcdefAgE", 3, "abcd.fA", Status.DIFFERENT),
        # The copy has one empty offset, but lacks two records.
        (".bcdefADE", 3, "abc.fADE", Status.DIFFERENT),
        # The source has no empty offset for X.
        (".bcdeA", 3, "abcXdeA", Status.DIFFERENT),
        (".bcdeA", 3, "abcdeAX", Status.DIFFERENT),
        (".bcdeA", 3, "abcdeAXYZ", Status.DIFFERENT),
        # It has one, but no later record with the key x.
        (".bc.deA", 3, "abcXdeA", Status.UNDETERMINED),
        (".bc.deAx", 3, "abcXdeAx", Status.BOUNDED),
        # All records were altered.
        (".bcdeA", 3, "ABCDEa", Status.DIFFERENT),
    ],
)
def test_a_dishonest_mirror_of_a_compacted_topic(source, committed, copy, status):
    """If compaction can't have removed what only one of the logs has, the status is "different".

    If a key that only the copy has comes from the translated offset on, its tombstone may have expired: "undetermined".
    """
    position = compacted(part(source), committed, copied(copy))
    assert (position.status, bool(position.reason)) == (status, status is not Status.EXACT)


def test_a_tombstone_may_expire():
    """A tombstone that only one of the logs has can have been removed from the other one, although its key is gone."""
    copy = copied("abcd.fA")
    assert compacted(part(".bcdefA", tombstones="e"), 3, copy).status is Status.EXACT
    assert compacted(part(".bcdefA"), 3, copy).status is Status.DIFFERENT
    with_tombstone = replace(copied("abcdefA"), tombstones=[each == "e" for each in "abcdefA"])
    assert compacted(part(".bcd.fA"), 3, with_tombstone).status is Status.EXACT
    assert compacted(part(".bcd.fA"), 3, copied("abcdefA")).status is Status.UNDETERMINED


def test_compaction_may_have_left_one_of_several_identical_records():
    """Two identical records of the copy are not matched with the one that the source has behind an empty offset."""
    source = replace(part("ab.xcB"), timestamps=[0, 1, 2, 3, 1])
    copy = replace(copied("abxxcB"), timestamps=[0, 1, 2, 2, 3, 1])
    position = compacted(source, 3, copy)
    assert (position.status, position.offset, position.reread) == (Status.BOUNDED, 2, 2)


def test_topics_are_found_under_the_names_of_mirrormakers_policies():
    """A mirror's copy is found under the topic's own name, or under a cluster's alias, a dot and the topic's name."""
    there = {"orders", "eu.payments", "eu.west.stock", "other"}
    assert names_of_copies({"orders", "payments", "stock", "none"}, there) == {
        "orders": "orders",
        "payments": "eu.payments",
    }


def renamed(text: str) -> Rename:
    return Rename.parse(text, "--rename-topic")


def test_a_topic_with_two_possible_names_is_refused():
    """If two topics of the target may be the mirror's copy, they are refused unless ``--rename-topic`` names one."""
    with pytest.raises(InvalidInput, match=r"topic 'orders' may be eu\.orders, orders on the target: .*--rename-topic"):
        names_of_copies({"orders"}, {"orders", "eu.orders"})
    assert names_of_copies({"orders"}, {"orders", "eu.orders"}, [renamed("orders=eu.orders")]) == {
        "orders": "eu.orders"
    }


def test_rules_rename_topics():
    """The first ``--rename-topic`` rule that matches a topic gives the topic's name on the target.

    If the target has no topic of this name, the topic is left out.
    """
    rules = (renamed("eu.*=*"), renamed("*=us.*"))
    assert names_of_copies({"eu.orders", "stock", "x"}, {"orders", "us.stock"}, rules) == {
        "eu.orders": "orders",
        "stock": "us.stock",
    }


@pytest.mark.parametrize("text", ["orders", "=orders", "orders=", "a=b=c", "*=orders", "a*b*=*", "orders=*"])
def test_a_rule_that_is_none_is_refused(text):
    """A malformed ``--rename-topic`` rule, such as ``orders`` or ``a=b=c``, is a usage error."""
    with pytest.raises(UsageError, match=r"--rename-topic is "):
        renamed(text)
