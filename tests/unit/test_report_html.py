"""The HTML report of `reconcile`, checked as text; tests/browser checks it in a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import example, given, settings

from migrate_groups.show.reconciliation import page as report
from migrate_groups.text import one_line
from tests.support.comments import NAME, TEXT
from tests.support.reconciliations import moments, partition, realistic, reconciliation, topic


class Page(HTMLParser):
    """A parser that collects the elements of a page, their attributes and styles, and the text in ``code`` elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.styles: list[str] = []
        self.code: list[str] = []
        self._in_code = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, tuple(name for name, _ in attributes)))
        self.styles += [value for name, value in attributes if name == "style"]
        self._in_code = tag == "code"
        if self._in_code:
            self.code.append("")

    def handle_endtag(self, tag):
        self._in_code = False

    def handle_data(self, data):
        if self._in_code:
            self.code[-1] += data


def reconciliation_named(group: str, name: str, reason: str, cluster_id: str, hint: str):
    return reconciliation(
        topic(name, group=group, cluster_id=cluster_id, behind=1),
        topic(name, group=group, cluster_id="another"),
        worst=(partition("behind", 7, group=group, topic=name, cluster_id=cluster_id, reason=f"({reason})"),),
        hints=(f"hint {hint}",),
        timeline=(*moments(1, None, 3, group=group), *moments(1, 2, 3, group=group, topic=name)),
    )


PLAIN = Page(report(reconciliation_named("g", "t", "r", "c", "h")))


@given(group=NAME, name=NAME, reason=TEXT, cluster_id=NAME, hint=TEXT.filter(lambda text: "`" not in text))
@example(
    group="<script>alert(1)</script>",
    name="\" onload='x'><img src=http://a.b/>",
    reason="</style><link href=//a.b>",
    cluster_id="{{ 7 * 7 }}{% raw %}",
    hint="<!-- &lt; -->",
)
@settings(max_examples=15)
def test_names_and_reasons_add_no_markup_to_the_page(group, name, reason, cluster_id, hint):
    """No name of a group, topic or cluster, and no reason or hint, changes which elements the report contains."""
    page = Page(report(reconciliation_named(group, name, reason, cluster_id, hint)))
    assert page.elements == PLAIN.elements
    assert page.styles == PLAIN.styles
    assert {one_line(f"{group} on {cluster_id}"), one_line(name)} <= set(page.code)


def test_long_names_are_cut():
    """A group name of 32,000 characters is cut after 249 characters in the report."""
    text = report(reconciliation(topic(group="x" * 32_000)))
    assert len(text) < 25_000
    assert "x" * 249 + "…" in text


def test_the_page_loads_no_other_file():
    """The report contains no URL, script, link, import or picture.

    Its Content-Security-Policy forbids everything except inline styles.
    """
    text = report(realistic())
    assert re.findall(r"""https?:|//|<script|<link|<img|<iframe|@import|url\(|\bsrc=|\bhref=""", text) == []
    assert "default-src 'none'; style-src 'unsafe-inline'" in text


def test_same_input_same_bytes():
    """Two renderings of the same reconciliation are equal, because they depend on no clock and no random number."""
    assert report(realistic()) == report(realistic())


def test_an_unknown_lag_is_never_shown_as_0():
    """Without a committed offset, the report shows the lag as "not known", without a bar.

    A lag of 0 is shown as 0 with an empty bar.
    """
    unknown = report(
        reconciliation(
            topic(lag=(None, None), produced=None, consumed=None, no_commit=1), timeline=moments(*[None] * 3)
        )
    )
    body = unknown.split("</style>")[1]
    assert body.count('<span class="value">not known</span>') == 2
    assert 'class="fill' not in body
    assert ">0<" not in body
    assert 'class="line" d=""' in body
    known = report(reconciliation(topic(lag=(0, 0))))
    assert known.count('<span class="fill" style="width:0%"></span></span><span class="value">0</span>') == 2


def test_a_negative_lag_has_its_number_and_an_empty_bar():
    """A negative lag (the offset is above the log end that was read) is shown as a number with an empty bar."""
    text = report(reconciliation(topic(lag=(8, -4))))
    assert '<span class="fill" style="width:0.00%"></span></span><span class="value">-4</span>' in text


def test_charts_and_tables_are_limited_and_the_rest_is_counted():
    """The report charts at most 25 topics of a group, 40 groups and 24 curves, and its tables list 1,000 topics.

    It says how many topics, groups and curves it leaves out.
    """
    one = reconciliation(*(topic(f"t{number}") for number in range(1_000)), topics=70_000)
    text = report(one)
    assert text.count('<div class="bar after">') == 25
    assert "… and 975 more topics in the table below" in text
    assert "… and 69,000 more topics: group_topic_summary has all" in text
    assert text.count('<th scope="col">verdict</th>') == 1
    many = report(reconciliation(*(topic(group=f"g{number}") for number in range(1_000))))
    assert many.count('<div class="bar after">') == 40
    assert "… and 960 more groups in the table below" in many
    curves = report(reconciliation(topic(), timeline=[m for n in range(30) for m in moments(1, 2, 3, group=f"g{n}")]))
    assert curves.count("<svg") == 24
    assert "… and 6 more curves" in curves


def test_empty_sections_are_omitted():
    """If there are no problems, hints, quarantined rows or timeline, the report omits their sections."""
    clean = report(reconciliation(topic()))
    assert all(f'id="{section}"' not in clean for section in ("worst", "time"))
    assert 'aria-label="Hints"' not in clean
    assert "set aside" not in clean
    full = report(realistic())
    assert all(f'id="{section}"' in full for section in ("worst", "time"))
    assert "<dt>rows set aside</dt><dd>2</dd>" in full
    assert "<code>ahead</code> proves nothing" in full
