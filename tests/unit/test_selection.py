"""Selecting rows of a snapshot by topic, group and partition."""

from __future__ import annotations

import warnings

import pytest
from msgspec import structs

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.snapshots.selection import Selection, TopicPattern, parse_partitions, select
from migrate_groups.snapshots.snapshot import Snapshot, concatenate
from tests.support.rows import NOON, row

TABLE = Snapshot.of_rows(
    row(group=group, topic=topic, partition=number)
    for group in ("g", "h")
    for topic in ("pay.eu", "pay.us", "orders")
    for number in range(4)
)


def keys(snapshot: Snapshot) -> set[tuple[str | None, str, int]]:
    return {(each.group, each.topic, each.partition) for each in snapshot.rows()}


def test_all_restrictions_hold_together():
    """Topics, excluded topics, groups and partitions restrict together; an empty selection keeps every row."""
    selection = Selection(
        topics=(TopicPattern("pay.*"),),
        excluded_topics=(TopicPattern("*.us"),),
        groups=("h",),
        partitions=(range(1, 3),),
    )
    assert keys(select(TABLE, selection)) == {("h", "pay.eu", 1), ("h", "pay.eu", 2)}
    assert select(TABLE, Selection()) == TABLE


def test_excluding_alone_keeps_the_rest():
    """``--exclude-topic`` without ``--topic`` keeps all other topics."""
    kept = select(TABLE, Selection(excluded_topics=(TopicPattern("pay.*"),)))
    assert kept.topics() == ["orders"]


@pytest.mark.parametrize(
    ("selection", "complaint"),
    [
        (Selection(topics=(TopicPattern("nope"),)), "no topic matches nope"),
        (Selection(excluded_topics=(TopicPattern("nope"),)), "no topic matches nope"),
        (Selection(groups=("nope",)), "no group nope in the file; it has g, h"),
        (Selection(partitions=(range(9, 10),)), "nothing in the file"),
        (Selection(topics=(TopicPattern("orders"),), excluded_topics=(TopicPattern("o*"),)), "nothing in the file"),
    ],
)
def test_what_matches_nothing_is_an_error(selection, complaint):
    """A mistyped topic, group or partition is an error, not an empty file."""
    with pytest.raises(InvalidInput, match=complaint):
        select(TABLE, selection)


def test_a_bracket_within_brackets_is_no_warning():
    """``[[a]`` matches a bracket or an a, in globs and regular expressions, without a warning from Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TopicPattern("[[a]+.*", is_regex=True).matching(["a.b", "b.a"]) == ["a.b"]
        assert TopicPattern("[[a]*").matching(["a.b", "b.a"]) == ["a.b"]


def test_partitions_are_numbers_or_ranges():
    """``7`` and ``3-5`` are accepted; anything else is a usage error."""
    assert list(parse_partitions("7")) == [7]
    assert list(parse_partitions("3-5")) == [3, 4, 5]
    for wrong in ("", "-1", "5-3", "a", "1,2", "1-", "٣", "99999999999"):
        with pytest.raises(UsageError, match="not a partition"):
            parse_partitions(wrong)


def test_snapshots_are_sorted_and_a_history_keeps_every_moment():
    """Rows are sorted by group, topic and partition; a history keeps the rows of every time."""
    assert list(Snapshot.of_rows(reversed(list(TABLE.rows()))).rows()) == sorted(
        TABLE.rows(), key=lambda row: (row.group, row.topic, row.partition)
    )
    later = Snapshot.of_rows(structs.replace(each, taken_at=NOON.replace(hour=13)) for each in TABLE.rows())
    assert len(concatenate([TABLE, later])) == 2 * len(TABLE)


def test_no_commit_is_never_lag_zero():
    """Lag is unknown without a committed offset or log end offset, and their difference otherwise."""
    assert row(offset=None).lag is None
    assert row(log_end_offset=None).lag is None
    assert row(offset=5, log_end_offset=9).lag == 4
