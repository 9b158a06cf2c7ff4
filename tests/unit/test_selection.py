"""Selecting rows of a snapshot by topic, group and partition."""

from __future__ import annotations

import warnings

import pytest
from msgspec import structs

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.snapshots.selection import Selection, TopicPattern, parse_partitions, select
from migrate_groups.snapshots.snapshot import SnapshotTable, concatenate
from tests.support.rows import NOON, row

TABLE = SnapshotTable.of_rows(
    row(group=group, topic=topic, partition=number)
    for group in ("g", "h")
    for topic in ("pay.eu", "pay.us", "orders")
    for number in range(4)
)


def keys(snapshot: SnapshotTable) -> set[tuple[str | None, str, int]]:
    return {(each.group, each.topic, each.partition) for each in snapshot.rows()}


def test_all_restrictions_apply_together():
    """A snapshot row is selected only if it meets all restrictions on topic, excluded topic, group and partition.

    Without a restriction, every row is selected.
    """
    selection = Selection(
        topics=(TopicPattern("pay.*"),),
        excluded_topics=(TopicPattern("*.us"),),
        groups=("h",),
        partitions=(range(1, 3),),
    )
    assert keys(select(TABLE, selection)) == {("h", "pay.eu", 1), ("h", "pay.eu", 2)}
    assert select(TABLE, Selection()) == TABLE


def test_exclude_topic_alone_keeps_all_other_topics():
    """``--exclude-topic`` without ``--topic`` selects all other topics."""
    kept = select(TABLE, Selection(excluded_topics=(TopicPattern("pay.*"),)))
    assert kept.topics() == ["orders"]


@pytest.mark.parametrize("is_regex", [False, True])
def test_a_pattern_that_is_not_utf_8_is_refused(is_regex):
    """A topic pattern with bytes that are not UTF-8 is refused: a shell may pass them, but no topic has such a name."""
    with pytest.raises(InvalidInput, match=r"topic pattern .* is not UTF-8 text: name a topic or a glob in UTF-8"):
        TopicPattern("\udcff*", is_regex=is_regex)


@pytest.mark.parametrize(
    ("selection", "complaint"),
    [
        (Selection(topics=(TopicPattern("nope"),)), "no topic matches nope"),
        (Selection(excluded_topics=(TopicPattern("nope"),)), "no topic matches nope"),
        (Selection(groups=("nope",)), "group nope not found in the file: it has g, h"),
        (Selection(groups=("gg",)), r"group gg not found in the file: did you mean g\?"),
        (Selection(topics=(TopicPattern("order"),)), r"no topic matches order: did you mean orders\?"),
        (Selection(topics=(TopicPattern("Orders"),)), r"no topic matches Orders: did you mean orders\?"),
        (Selection(topics=(TopicPattern("order.*"),)), r"order\.\* would match as a regular expression: write a glob"),
        (Selection(partitions=(range(9, 10),)), "no partition matches 9: choose from partitions 0, 1, 2, 3"),
        (
            Selection(partitions=(range(2), range(9, 12))),
            "no partition matches 9-11: choose from",
        ),
        (
            Selection(topics=(TopicPattern("orders"),), excluded_topics=(TopicPattern("o*"),)),
            "no row of the file matches all",
        ),
    ],
)
def test_a_selection_that_matches_nothing_is_an_error(selection, complaint):
    """If a topic, group or partition matches no row, for example a mistyped one, selecting rows is an error."""
    with pytest.raises(InvalidInput, match=complaint):
        select(TABLE, selection)


def test_a_range_must_match_a_partition_of_the_selected_topics():
    """A partition range is refused if no selected topic has a partition in it, even if a topic not selected has one."""
    table = concatenate([TABLE, SnapshotTable.of_rows([row(group="g", topic="wide", partition=99)])])
    selection = Selection(topics=(TopicPattern("orders"),), partitions=(range(1), range(99, 100)))
    with pytest.raises(InvalidInput, match="no partition matches 99: choose from partitions 0, 1, 2, 3"):
        select(table, selection)
    assert keys(select(table, Selection(partitions=(range(3, 5), range(99, 100))))) == {
        *((group, topic, 3) for group in ("g", "h") for topic in ("pay.eu", "pay.us", "orders")),
        ("g", "wide", 99),
    }


def test_a_bracket_within_brackets_causes_no_warning():
    """``[[a]`` in a glob or a regular expression of topics means a bracket or an a. Python prints no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TopicPattern("[[a]+.*", is_regex=True).matching(["a.b", "b.a"]) == ["a.b"]
        assert TopicPattern("[[a]*").matching(["a.b", "b.a"]) == ["a.b"]


def test_partitions_are_numbers_or_ranges():
    """``--partition`` accepts a number such as ``7`` or a range such as ``3-5``; any other text is a usage error."""
    assert list(parse_partitions("7")) == [7]
    assert list(parse_partitions("3-5")) == [3, 4, 5]
    for wrong in ("", "-1", "5-3", "a", "1,2", "1-", "٣", "99999999999"):
        with pytest.raises(UsageError, match="is not a partition"):
            parse_partitions(wrong)


def test_snapshots_are_sorted_and_a_history_keeps_every_time():
    """A snapshot's rows are sorted by group, topic and partition.

    If snapshots taken at two times are concatenated, the rows of both are kept.
    """
    assert list(SnapshotTable.of_rows(reversed(list(TABLE.rows()))).rows()) == sorted(
        TABLE.rows(), key=lambda row: (row.group, row.topic, row.partition)
    )
    later = SnapshotTable.of_rows(structs.replace(each, taken_at=NOON.replace(hour=13)) for each in TABLE.rows())
    assert len(concatenate([TABLE, later])) == 2 * len(TABLE)


def test_lag_is_unknown_without_a_committed_offset_or_log_end():
    """The lag is the log end offset minus the committed offset. If either is missing, the lag is unknown."""
    assert row(offset=None).lag is None
    assert row(log_end_offset=None).lag is None
    assert row(offset=5, log_end_offset=9).lag == 4


@pytest.mark.parametrize(
    ("typed", "options"), [("orders:0", "--partition 0"), ("orders:0,3", "--partition 0 --partition 3")]
)
def test_a_topic_with_a_partition_is_refused_with_the_options_to_pass(typed, options):
    """The topic ``orders:0``, a form of kafka-consumer-groups, is refused.

    The error names the options and commands to use instead.
    """
    with pytest.raises(InvalidInput, match=f"names a partition: pass --topic .* {options} to filter or rewind"):
        TopicPattern(typed)
