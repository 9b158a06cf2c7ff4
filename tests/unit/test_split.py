"""`split` divides a snapshot's rows among target groups, by topic. Every topic must get a target group or stay."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from migrate_groups.errors import InvalidInput
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import SplitSpec, SplitTarget, cover, split
from tests.support.rows import row


def spec(*targets: tuple[str, list[str]], stay: tuple[str, ...] = (), source: str = "g", **options) -> SplitSpec:
    return SplitSpec(
        source=source,
        targets=tuple(
            SplitTarget(group=group, topics=tuple(TopicPattern(topic) for topic in topics)) for group, topics in targets
        ),
        stay=tuple(TopicPattern(topic) for topic in stay),
        **options,
    )


def test_every_topic_goes_where_the_spec_says():
    """`cover` assigns the topics to the spec's targets: it expands globs, and lists the topics that stay.

    For each pattern it lists the topics that match.
    """
    wanted = spec(("billing", ["invoices", "payments.*"]), ("search", ["catalog"]), stay=("legacy.*",))
    result = cover(wanted, ["invoices", "payments.eu", "payments.us", "catalog", "legacy.x"])
    assert result.targets == {"billing": ("invoices", "payments.eu", "payments.us"), "search": ("catalog",)}
    assert result.stay == ("legacy.x",)
    assert [(group, str(pattern), topics) for group, pattern, topics in result.expansions][1] == (
        "billing",
        "payments.*",
        ("payments.eu", "payments.us"),
    )


def test_patterns_match_whole_names_and_case():
    """Names, globs and regular expressions match whole topic names and are case-sensitive.

    In a glob, a dot matches only a dot.
    """
    topics = ["pay", "payments", "payments.eu", "Payments.eu", "pays"]
    assert TopicPattern("payments.*").matching(topics) == ["payments.eu"]
    assert TopicPattern("pay").matching(topics) == ["pay"]
    assert TopicPattern("(a+)+b", is_regex=True).matching(["a" * 34, "aab"]) == ["aab"]  # Python's engine takes minutes
    assert TopicPattern("pay(ment)?s", is_regex=True).matching(topics) == ["payments", "pays"]


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (lambda: spec(("a", ["one"])), "no target group takes topic two"),
        (lambda: spec(("a", ["*"]), ("b", ["two"])), r"several groups take topic two \(a, b\)"),
        (
            lambda: spec(("a", ["*"]), stay=("one",)),
            r"topic one \(a, stay\) would both stay and go to a group, so records would be processed twice: remove "
            r"each from the group's topics, or from --stay",
        ),
        (lambda: spec(("a", ["*"]), ("b", ["one"]), stay=("two",), fan_out=True), r"^topic two \(a, stay\) would both"),
        (lambda: spec(("a", ["*"]), ("b", ["one"]), stay=("one",)), r"^topic one \(a, b, stay\) would both"),
        (
            lambda: spec(("a", ["*", "three"])),
            r"of the group matches three \(a\): correct or remove the pattern",
        ),
        (lambda: spec(("a", ["one", "twoo"])), r"matches twoo \(a\): did you mean two\?"),
        (lambda: spec(("a", ["one", "tw."])), r"matches tw\. \(a\): did you mean two\?"),
        (
            lambda: spec(("a", ["one|two"])),
            r"\(a\): one\|two would match as a regular expression: write a glob",
        ),
        (lambda: spec(("a", ["one", "(two"])), r"\(two \(a\): did you mean two\?"),
        (lambda: spec(("g", ["*"])), "'g' is the source group"),
        (lambda: spec(("a", ["one"]), ("a", ["two"])), "target group a named more than once"),
        (lambda: spec(("a", [])), "target group a without topics"),
        (lambda: spec(), "no target group"),
        (lambda: spec(("", ["*"])), "empty name"),
        (lambda: spec(("a", ["*"]), source=""), "the source group of the split is empty"),
        (lambda: spec(("a", ["*"]), source="h"), "'h' is not in the file: it has g; correct the source"),
        (lambda: spec(("a", [""])), "pattern is empty"),
    ],
)
def test_an_incomplete_or_ambiguous_split_is_refused(wanted, complaint):
    """A split is refused if a topic has no target group or several, or if a pattern matches no topic.

    It is also refused if the source group is a target group, or is not in the file.
    """
    snapshot = SnapshotTable.of_rows([row(topic="one"), row(topic="two")])
    with pytest.raises(InvalidInput, match=complaint):
        split(snapshot, wanted())


def test_fan_out_gives_a_topic_to_several_groups():
    """With ``fan_out`` a topic may be given to two target groups, and both get its rows."""
    parts, _ = split(SnapshotTable.of_rows([row()]), spec(("a", ["t"]), ("b", ["t"]), fan_out=True))
    assert [(each.group, each.source_group, each.topic) for each in parts.rows()] == [("a", "g", "t"), ("b", "g", "t")]


def test_rows_that_have_a_source_group_are_not_split_again():
    """Rows that come from an earlier split, and so have a source group, are not split again but refused."""
    parts, _ = split(SnapshotTable.of_rows([row()]), spec(("a", ["t"])))
    with pytest.raises(InvalidInput, match="split before"):
        split(parts, spec(("b", ["t"]), source="a"))


def test_a_history_is_not_split():
    """A snapshot with rows of one partition that were taken at two times is refused, not split."""
    with pytest.raises(InvalidInput, match="several moments"):
        split(SnapshotTable.of_rows([row(), row(taken_at=None)]), spec(("a", ["t"])))


@given(
    homes=st.dictionaries(st.from_regex("[a-z]{1,3}", fullmatch=True), st.sampled_from(["a", "b", "stay"]), min_size=1),
    partitions=st.integers(1, 3),
)
def test_each_row_is_in_exactly_one_part_or_stays(homes, partitions):
    """A split gives each row to exactly one target group, or leaves it with the source group.

    Only the columns group and source_group of a row change.
    """
    whole = SnapshotTable.of_rows(row(topic=topic, partition=number) for topic in homes for number in range(partitions))
    targets = [(group, [topic for topic, home in homes.items() if home == group]) for group in ("a", "b")]
    wanted = [(group, topics) for group, topics in targets if topics]
    if not wanted:
        return
    stay = tuple(topic for topic, home in homes.items() if home == "stay")
    parts, _ = split(whole, spec(*wanted, stay=stay))
    back = [structs.replace(each, group="g", source_group=None) for each in parts.rows()]
    staying = [each for each in whole.rows() if each.topic in stay]
    assert Counter(back + staying) == Counter(whole.rows())


def test_rows_without_a_group_are_split_without_a_source_group():
    """Rows of a rewind have no group: they are split whatever source group the spec names, and get no source group."""
    nobody = SnapshotTable.of_rows(row(group=None, group_state=None, topic=topic) for topic in ("a", "b", "c"))
    result, coverage = split(nobody, spec(("x", ["a"]), ("y", ["b"]), stay=("c",), source="anything"))
    assert [(each.group, each.source_group, each.topic) for each in result.rows()] == [
        ("x", None, "a"),
        ("y", None, "b"),
    ]
    assert coverage.stay == ("c",)
    with pytest.raises(InvalidInput, match="no target group takes topic c"):
        split(nobody, spec(("x", ["a"]), ("y", ["b"])))
    mixed = SnapshotTable.of_rows([row(group=None), row(group="h")])
    with pytest.raises(InvalidInput, match="source group 'g' is not in the file: it has h"):
        split(mixed, spec(("x", ["t"])))


def test_a_file_in_which_only_some_rows_have_a_group_is_not_split():
    """If only some rows of a file have a group, the split is refused, so no row is left out unnoticed."""
    mixed = SnapshotTable.of_rows([row(), row(group=None, partition=1)])
    with pytest.raises(InvalidInput, match="some rows have a group and some have none: select one group with filter"):
        split(mixed, spec(("x", ["t"])))


def test_two_source_groups_do_not_hand_the_same_partition_to_one_target():
    """If rows of two source groups give one target group the same partition, they are refused."""
    parts = SnapshotTable.of_rows([row(group="new", source_group=group) for group in ("a", "b")])
    with pytest.raises(InvalidInput, match="several source groups, for t-0 of group 'new'"):
        name_groups(parts, [], fan_out=False, restore=False)
