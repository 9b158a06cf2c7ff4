"""The plan as a comment on a pull request, as GitHub renders it, and as a table in the terminal."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given

from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Change, sorted_changes
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.show import markdown
from migrate_groups.show import plan_result as views
from migrate_groups.text import one_line
from tests.support.comments import MOST, NAME, TEXT, ZERO_WIDTH_SPACE, Page
from tests.support.drawn import on_a_terminal


def change(partition: int = 0, *, group: str = "new", before: int | None = None, after: int = 5, **more) -> Change:
    return Change(
        **({"source_group": "old", "topic": "t"} | more),
        group=group,
        partition=partition,
        before=None if before is None else CommittedOffset(offset=before),
        after=CommittedOffset(offset=after),
    )


def check(verdict: Verdict = Verdict.PASS, name: str = "stopped", reason: str = "nobody is there") -> Check:
    return Check(name=name, verdict=verdict, reason=reason)


def plan(*changes: Change, checks: tuple[Check, ...] = (), cluster_id: str = "cluster-1") -> Plan:
    return Plan(cluster_id=cluster_id, options=WriteOptions(), changes=sorted_changes(changes), checks=checks)


def drawn(made: Plan, plan_file: str | None = None) -> str:
    return markdown.draw(views.plan(made, plan_file=plan_file))


TAGS = {"h3", "p", "strong", "code", "br", "ul", "li", "details", "summary"} | {
    "table", "thead", "tbody", "tr", "th", "td"
}  # fmt: skip


@given(group=NAME, source=NAME, reason=TEXT, cluster_id=NAME)
@example(group="<b>&amp;</b>", source="`` `", reason="<img src=x> [a](b) **c**", cluster_id="a|b\\")
def test_names_are_shown_unchanged_and_add_no_markup(group, source, reason, cluster_id):
    """In the comment, any group name is code in one cell, reasons are plain text, and neither adds an HTML element."""
    checks = (check(Verdict.WARN, reason=f"({reason})"),)
    page = Page(drawn(plan(change(group=group, source_group=source), checks=checks, cluster_id=cluster_id)))
    hand_over, shown_checks, partitions = page.tables
    assert [len(row) for table in page.tables for row in table[1:]] == [7, 3, 5]
    assert [cell.strip() for cell in hand_over[1][:2]] == [one_line(source).strip(), one_line(group).strip()]
    assert page.code[0].strip() == one_line(cluster_id).strip()
    assert shown_checks[1][2].replace(ZERO_WIDTH_SPACE, "") == f"({one_line(reason)})".replace(ZERO_WIDTH_SPACE, "")
    assert page.items == [f"warn stopped: {shown_checks[1][2]}"]
    assert page.summaries[1] == f"{one_line(group)}: 1 partition (1 create)"
    assert partitions[1] == ["t", "0", "-", "5", "create"]
    assert page.tags == TAGS


@given(reason=TEXT, name=NAME)
def test_no_text_becomes_a_mention_or_a_reference(reason, name):
    """Outside of code, the comment has no @ or # before a letter or digit, and no link: GitHub would act on them."""
    checks = (check(Verdict.REFUSE, reason=f"@joe #12 www.a.b https://a.b {reason}"),)
    text = drawn(plan(change(group=f"@all #1 {name}", source_group=f"@b{name}"), checks=checks))
    prose = Page(text).prose
    marks = [after for mark, after in pairwise(prose) if mark in "@#"]
    assert set(marks) == {ZERO_WIDTH_SPACE}
    assert r"www\.a.b https\://a.b" in text


def test_counts_and_verdict_come_first():
    """The comment begins with partition counts and verdict.

    Groups and failed checks follow, then all checks, then the partitions of each group.
    """
    changes = [
        *(change(number, group="billing", before=number or None) for number in (0, 5, 7)),
        change(source_group=None, group="restored"),
    ]
    checks = (
        check(name="cluster"),
        check(Verdict.WARN, "retention", "7 days"),
        check(Verdict.PENDING, "stopped", "3 members"),
    )
    page = Page(text := drawn(plan(*changes, checks=checks)))
    assert text.splitlines()[:3] == [
        "### Consumer groups: 4 partitions (2 create, 1 move, 1 unchanged)",
        "",
        "**pending**: no check refuses; the pending checks must pass at the write. Cluster `cluster-1`.",
    ]
    assert page.tables[0][1:] == [
        ["old", "billing", "1", "1", "1", "0", "1"],
        ["(set)", "restored", "1", "1", "0", "0", "0"],
    ]
    assert page.items == ["pending stopped: 3 members", "warn retention: 7 days"]
    assert page.tables[1][1:] == [
        ["pass", "cluster", "nobody is there"],
        ["warn", "retention", "7 days"],
        ["pending", "stopped", "3 members"],
    ]
    assert page.summaries == [
        "3 checks: 1 pass, 1 warn, 1 pending",
        "billing: 3 partitions (1 create, 1 move, 1 unchanged)",
        "restored: 1 partition (1 create)",
    ]
    assert page.tables[2][1:] == [
        ["t", "0", "-", "5", "create"],
        ["t", "5", "5", "5", "unchanged"],
        ["t", "7", "7", "5", "move -2"],
    ]
    assert text.index("3 members") < text.index("<details>")
    assert "Cut to fit" not in text


@pytest.mark.parametrize(
    ("verdict", "meaning"),
    [
        (Verdict.NOT_APPLICABLE, "every check that applies passes"),
        (Verdict.PASS, "every check that applies passes"),
        (Verdict.WARN, "no check refuses"),
        (Verdict.NOT_KNOWN, "no check refuses; what could not be read is named below"),
        (Verdict.REFUSE, "refused: nothing can be written"),
    ],
)
def test_the_verdict_has_its_meaning_in_words(verdict, meaning):
    """The comment shows the worst verdict of all checks, and says in words what it means."""
    worst = max(verdict, Verdict.PASS, key=list(Verdict).index)
    assert f"**{worst}**: {meaning}" in drawn(plan(change(), checks=(check(), check(verdict))))


def test_a_deletion_and_an_empty_plan_are_shown():
    """If an offset is deleted, the column "after" shows ``-``.

    If a plan has no changes, the comment says "nothing to do".
    """
    gone = Change(source_group=None, group="g", topic="t", partition=0, before=CommittedOffset(offset=3), after=None)
    assert Page(drawn(plan(gone))).tables[-1][1] == ["t", "0", "3", "-", "delete"]
    assert "0 partitions (nothing to do)" in drawn(plan())


def test_the_hashes_are_shown():
    """The comment shows the intent hash, which a reviewer approves, and the content hash."""
    made = plan(change())
    assert {made.intent, made.content} <= set(Page(drawn(made)).code)


def test_same_plan_same_bytes():
    """If the same plan is rendered twice, the two comments are equal."""
    assert drawn(plan(change())) == drawn(plan(change()))


def test_a_large_plan_is_cut_with_counts_and_the_file_name():
    """If a plan is too large for a comment, each group shows some partitions and counts the others.

    The totals stay complete, and the comment names the plan's file.
    """
    made = plan(*(change(number, group=group) for group in ("a", "b") for number in range(5_000)))
    text = drawn(made, "plan.json")
    assert MOST / 2 < len(text) <= MOST
    page = Page(text)
    assert text.splitlines()[4] == "**Cut to fit a comment**: `plan.json` has every partition."
    assert drawn(made).splitlines()[4].endswith(": `--plan-out plan.json` saves every partition.")
    assert "10,000 partitions (10,000 create)" in text
    shown = [len(table) - 1 for table in page.tables[1:]]
    assert [f"… and {5_000 - rows:,} more partitions" in text for rows in shown] == [True, True]
    assert min(shown) >= 100


@pytest.mark.parametrize("letter", "a`|@<&\u202e漢😀")
@pytest.mark.parametrize(
    ("groups", "partitions", "length", "checks"), [(1, 1, 1, 0), (300, 1, 100, 5), (20, 15, 3_000, 15)]
)
def test_a_comment_never_exceeds_the_size_limit(groups, partitions, length, letter, checks):
    """However many groups and partitions a plan has, and however long the names, the comment fits GitHub's limit."""
    name, topic = letter * length, "t" * 249
    made = plan(
        *(
            change(
                2**31 - 1 - partition,
                group=f"{number} {name}",
                source_group=name,
                before=0,
                after=2**63 - 1,
                topic=topic,
            )
            for number in range(groups)
            for partition in range(partitions)
        ),
        checks=(check(Verdict.REFUSE, reason=name),) * checks,
        cluster_id=letter * MOST,
    )
    text = drawn(made, letter * MOST)
    assert len(text.encode()) <= 64_000 < MOST
    assert text.endswith(f"content `{made.content}`\n")


@pytest.mark.parametrize(("most", "whole"), [(64_000, True), (64_001, False)])
@pytest.mark.parametrize("letter", ["a", "é", "漢"])
def test_the_limit_is_counted_in_bytes(most, whole, letter):
    """A comment of 64,000 bytes is shown whole; a comment of 64,001 bytes is rendered again with less content."""
    line_ends = len("\n\n\n")
    many, rest = divmod(most - line_ends - len("first"), len(letter.encode()))
    seen = []

    def render(size):
        seen.append(size)
        return ["first", "", letter * many + "x" * rest] if size is markdown.WHOLE else ["smaller"]

    text = markdown.fitting(render)
    assert (len(text.encode()) == most) == whole
    assert (text == "smaller\n") == (len(seen) == 2) == (not whole)


def test_rendering_stops_once_the_limit_is_exceeded():
    """If the blocks of a comment exceed the limit, no further blocks are rendered, and the smaller size is rendered."""
    rendered = []

    def render(size):
        for number in range(100):
            rendered.append(number)
            yield "x" * (1_000 if size is markdown.WHOLE else 1)

    markdown.fitting(render)
    assert rendered == [*range(64), *range(100)]


@given(name=TEXT)
@example(name="[bold]x[/]")
def test_control_characters_in_a_name_do_not_break_a_table_row(name):
    """In the terminal's table, control characters in a group name or reason are escaped, so each row stays one line."""
    text = on_a_terminal(views.plan(plan(change(group=f"<{name}>"), checks=(check(reason=f"<{name}>"),))))
    lines = text.split("\n")
    assert len(lines) == 5
    assert f"<{one_line(name)}>" in lines[1]
    assert f"<{one_line(name)}>" in lines[3]
    assert all(line.isprintable() for line in lines)
