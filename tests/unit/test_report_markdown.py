"""The Markdown report of `reconcile`, a pull request comment, as GitHub renders it."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from migrate_groups.show import markdown
from migrate_groups.show import reconciliation as views
from migrate_groups.spark.reconciliation.reconcile import STATUSES
from migrate_groups.spark.reconciliation.result import Reconciliation
from migrate_groups.text import one_line
from tests.support.comments import MOST, NAME, TEXT, ZERO_WIDTH_SPACE, Page
from tests.support.reconciliations import moments, partition, realistic, reconciliation, topic


def report(found: Reconciliation, summary_file: str | None = None) -> str:
    return markdown.draw(views.result(found, summary_file))


TAGS = {"h3", "p", "strong", "code", "ul", "li", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}


def test_counts_and_verdict_come_first():
    """The report begins with counts, verdict, hints, totals and the worst partitions.

    The groups follow, the worst group first.
    """
    found = reconciliation(
        topic("b", group="well", lag=(3, 1), produced=7, consumed=9, ahead=2, exact=1),
        topic("a", group="ill", lag=(1_000, 4_000), produced=0, consumed=-3_000, behind=1, exact=2),
        worst=(partition("behind", 2, group="ill", topic="a", before_offset=9_000, after_offset=6_000, reason="r"),),
        hints=("`ahead` proves nothing",),
        quarantined=3,
    )
    page = Page(text := report(found))
    assert text.splitlines()[:3] == [
        "### Reconciled: 6 partitions (1 behind, 2 ahead, 3 exact)",
        "",
        "**broken**: 1 partition did not start where the old group stopped.",
    ]
    assert page.items == ["ahead proves nothing"]
    assert "ahead" in page.code
    assert page.tables[0][1:] == [["total", "6", "2", "1,003", "4,001", "7", "-2,991", "3"]]
    assert page.tables[1][1:] == [["ill", "a-2", "behind", "9,000", "6,000", "r"]]
    assert page.summaries == [
        "ill: 1 topic (1 behind, 2 exact)",
        "well: 1 topic (2 ahead, 1 exact)",
        "meaning of the verdicts",
    ]
    assert page.tables[2][1:] == [["a", "1 behind, 2 exact", "3", "1,000", "4,000", "0", "-3,000"]]
    assert text.index("a-2") < text.index("<details>")
    assert "Cut to fit" not in text


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"exact": 2}, "**clean**: every partition starts where the old group stopped."),
        (
            {"exact": 1, "ahead": 1},
            "**clean**: no partition is missing, behind, unexpected or below its log start offset.",
        ),
        ({"no_commit": 2}, "**clean**: no partition is missing, behind, unexpected or below its log start offset."),
        ({"exact": 1, "missing": 2}, "**broken**: 2 partitions did not start where the old group stopped."),
    ],
)
def test_the_verdict_claims_exact_offsets_only_if_every_partition_is_exact(counts, sentence):
    """The report says that every partition starts where the old group stopped only if every status is exact."""
    assert report(reconciliation(topic(**counts))).splitlines()[2] == sentence


def test_every_status_has_a_meaning():
    """The report explains each status of a reconciliation, in the order of `STATUSES`, the worst first."""
    assert tuple(views.MEANING) == STATUSES


def test_an_unknown_lag_is_never_shown_as_0():
    """The report shows an unknown lag as a dash, and so a total to which no topic contributes."""
    found = reconciliation(topic(lag=(None, None), produced=None, consumed=None, no_commit=1))
    page = Page(report(found))
    assert page.tables[0][1:] == [["total", "1", "1", "-", "-", "-", "-"]]
    assert page.tables[1][1:] == [["t", "1 no-commit", "1", "-", "-", "-", "-"]]


def test_within_a_status_the_largest_lag_comes_first():
    """Among topics of one group with the same worst status, the report lists the topic with the largest lag first."""
    rows = (topic("a", lag=(1, 1)), topic("b", lag=(None, None)), topic("c", lag=(2, 90)), topic("d", lag=(50, 0)))
    page = Page(report(reconciliation(*rows, topic("e", lag=(0, 0), ahead=1))))
    assert [row[0] for row in page.tables[1][1:]] == ["e", "c", "d", "a", "b"]


def test_groups_of_several_clusters_are_shown_with_their_cluster():
    """If a reconciliation covers several clusters, the report shows each group with its cluster."""
    one, two = topic(cluster_id="c1"), topic(cluster_id="c2")
    assert Page(report(reconciliation(one))).summaries[0] == "new: 1 topic (1 exact)"
    assert Page(report(reconciliation(one, two))).summaries[:2] == [
        "new on c1: 1 topic (1 exact)",
        "new on c2: 1 topic (1 exact)",
    ]


def test_the_timeline_has_a_line_for_each_group_and_topic():
    """The timeline shows for each group and topic the number of points in time, and the first, largest and last lag.

    An unknown lag is a dash. Without a timeline, the report omits this section.
    """
    timeline = (*moments(5, None, 40, 1), *moments(None, None, None, topic="t"), *moments(1, 2, 3, topic="u"))
    page = Page(text := report(reconciliation(topic(), timeline=timeline)))
    assert "lag over time" in page.summaries
    assert page.tables[2][1:] == [
        ["new", "(all)", "4", "5", "40", "1"],
        ["new", "u", "3", "1", "3", "3"],
        ["new", "t", "3", "-", "-", "-"],
    ]
    assert "lag over time" not in report(reconciliation(topic())) != text


@given(group=NAME, name=NAME, reason=TEXT, hint=TEXT)
@example(
    group="<b>&amp;</b>", name="`` `", reason="<img src=x> [a](b) **c** @joe #1", hint="`<i>` `@joe` ` https://a.b"
)
def test_names_are_shown_unchanged_and_add_no_markup(group, name, reason, hint):
    """Any group or topic name is shown unchanged as code in one table cell.

    No name, reason or hint adds an element to the comment or mentions a GitHub user.
    """
    worst = (partition("behind", 7, group=group, topic=name, reason=f"({reason})"),)
    found = reconciliation(
        topic(name, group=group, behind=1), worst=worst, hints=(f"hint {hint}",), timeline=moments(1, 2, 3, group=group)
    )
    page = Page(report(found))
    assert [len(row) for table in page.tables for row in table[1:]] == [7, 6, 7, 6, 2]
    assert page.tables[1][1][0].strip() == page.tables[3][1][0].strip() == one_line(group).strip()
    assert page.tables[1][1][1].strip() == f"{one_line(name)}-7".strip()
    assert page.tables[1][1][5].replace(ZERO_WIDTH_SPACE, "") == f"({one_line(reason)})".replace(ZERO_WIDTH_SPACE, "")
    assert page.summaries[0] == f"{one_line(group)}: 1 topic (1 behind)"
    assert len(page.items) == 1
    assert page.tags == TAGS
    for mark in "@#":
        assert all(after.startswith(ZERO_WIDTH_SPACE) for after in page.prose.split(mark)[1:])


@pytest.mark.parametrize(
    ("summary_file", "where"),
    [("group_topic_summary.csv", "`group_topic_summary.csv` has every"), (None, "`-o OUT` writes every")],
)
def test_a_large_reconciliation_is_cut_with_counts_and_the_file_name(summary_file, where):
    """A report of 50,000 topics lists as many as fit into a comment, and counts the other topics.

    It names the file that lists all topics, or the option ``-o`` that writes this file.
    """
    rows = [topic(f"orders-of-the-shop-in-town-number-{number}", group=f"g{number % 2}") for number in range(1_000)]
    text = report(reconciliation(*rows, topics=50_000), summary_file)
    assert MOST / 2 < len(text) <= MOST
    page = Page(text)
    assert text.splitlines()[4].startswith(f"**Cut to fit a comment**: {where}")
    shown = [len(table) - 1 for table in page.tables[1:3]]
    assert [f"… and {500 - rows:,} more topics" in text for rows in shown] == [True, True]
    assert min(shown) >= 100
    assert "… and 49,000 more topics" in text


def test_problem_partitions_that_are_not_listed_are_counted():
    """If the report lists only some of the partitions with a problem, it says how many more there are."""
    found = reconciliation(topic(missing=5_000), worst=[partition("missing", number) for number in range(20)])
    page = Page(text := report(found))
    assert len(page.tables[1]) == 21
    assert "… and 4,980 more partitions" in text


@pytest.mark.parametrize("letter", "a`|@<&\u202e漢😀")
@pytest.mark.parametrize(("groups", "length"), [(1, 1), (300, 100), (300, 3_000)])
def test_a_comment_never_exceeds_the_size_limit(groups, length, letter):
    """The report fits GitHub's limit for a comment, however many groups and topics there are.

    This is so for names and reasons of any length and script.
    """
    name, huge = letter * length, 2**63 - 1
    counts = dict.fromkeys((status.replace("-", "_") for status in STATUSES), huge)
    rows = [
        topic(
            f"{number}{letter}" + "t" * 240,
            group=f"{number % groups} {name}",
            cluster_id=f"{number % 2} {name}",
            lag=(huge, huge),
            produced=huge,
            consumed=-huge,
            **counts,
        )
        for number in range(300)
    ]
    worst = [partition("missing", number, group=name, topic=name, reason=name) for number in range(20)]
    found = reconciliation(
        *rows, worst=worst, hints=(name,) * 15, timeline=moments(*range(300), group=name), quarantined=huge
    )
    text = report(found, name)
    assert len(text.encode()) <= 64_000 < MOST
    assert "meaning of the verdicts" in text


@pytest.mark.parametrize("hints", [("a hint of some length " * 3,) * 1_500, ("a`" * MOST,)], ids=["many", "long"])
def test_long_hints_and_paths_are_cut(hints):
    """If hints or the file's path are very long, they are cut, so the comment still explains the verdicts."""
    text = report(reconciliation(topic(), hints=hints), "a" * MOST)
    assert len(text.encode()) <= 64_000
    assert "meaning of the verdicts" in text


def test_same_input_same_bytes():
    """Two Markdown reports of the same reconciliation are equal."""
    assert report(realistic()) == report(realistic())
