"""report.html in a browser: on a phone and on a desktop, in light and dark colours."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from migrate_groups.show import reconciliation as views
from migrate_groups.spark.reconciliation.result import Reconciliation
from tests.browser.opened import CONTRASTS, DESK, PHONE, VIEWS, beyond, opened_page, width_of
from tests.support.reconciliations import moments, partition, realistic, reconciliation, topic

FOUND = realistic()


def opened(
    browser: Browser, folder: Path, found: Reconciliation, width: int = DESK, scheme: Literal["light", "dark"] = "light"
) -> AbstractContextManager[Page]:
    return opened_page(browser, folder / "report.html", views.page(found), width, scheme)


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_page_fits_its_window(browser, tmp_path, width, scheme):
    """With all ``details`` open, report.html fits its window, on a phone and on a desktop, in light and dark colours.

    Wide content scrolls in its own box.
    """
    with opened(browser, tmp_path, FOUND, width, scheme) as page:
        assert width_of(page) == width
        assert beyond(page) == []
        assert page.locator("table:not(.scroll table)").count() == 0
        if width == PHONE:
            box = page.locator(".scroll").first
            assert box.evaluate("e => [e.scrollWidth > e.clientWidth, (e.scrollLeft = 50, e.scrollLeft)]") == [True, 50]


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_all_content_is_visible(browser, tmp_path, width, scheme):
    """report.html shows the verdict, hints, counts, and the worst partitions.

    It also shows a row for each topic and a curve for each group with lag over time.
    """
    with opened(browser, tmp_path, FOUND, width, scheme) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text(
            re.compile("Broken: 4 partitions did not start where the old group stopped")
        )
        for text in ("2 invalid rows", "ahead proves nothing"):
            expect(page.get_by_role("listitem").filter(has_text=text)).to_be_visible()
        for status, count in FOUND.totals.counts.items():
            row = page.locator(".legend li").filter(has=page.locator(f".chip.{status}"))
            assert row.count() == bool(count)
            if count:
                expect(row).to_contain_text(f"{count:,} partition")
        for locator, number in {
            "#worst + .scroll tbody tr": len(FOUND.worst),
            ".group": 5,
            ".topics > li": 40,
            "svg": 3,
            "details tbody tr": 40 + len(FOUND.timeline),
        }.items():
            elements = page.locator(locator).all()
            assert len(elements) == number
            assert all(element.is_visible() for element in elements)
        expect(page.get_by_text("dunning.letters").first).to_be_visible()


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_length_of_bars_is_proportional_to_the_lag(browser, tmp_path, width):
    """Each topic has two bars, for the lag before and after, scaled to the largest lag of its group.

    An unknown lag has no bar.
    """
    most: dict[str | None, int] = {}
    for row in FOUND.summary:
        most[row.group] = max(most.get(row.group, 0), row.lag_before or 0, row.lag_after or 0)
    expected = {
        (row.group, row.topic, side): lag if lag is None else lag / most[row.group]
        for row in FOUND.summary
        for side, lag in (("before", row.lag_before), ("after", row.lag_after))
    }
    with opened(browser, tmp_path, FOUND, width) as page:
        drawn = page.evaluate("""() => [...document.querySelectorAll(".bar")].map(bar => {
          const wide = name => bar.querySelector(name)?.getBoundingClientRect().width;
          const text = (around, name) => bar.closest(around).querySelector(name).textContent;
          return [text(".group", "h3"), text("li", "code"), bar.classList[1], wide(".track"), wide(".fill") ?? null];
        })""")
    assert len(drawn) == len(expected) == 80
    for group, name, side, track, fill in drawn:
        share = expected[group, name, side]
        assert track > 80
        if share is None:
            assert fill is None
        else:
            # at least two pixels, so that a small lag is visible
            assert fill == pytest.approx(max(track * share, 2), abs=0.6)


def test_curves_have_a_dot_for_each_known_lag(browser, tmp_path):
    """In the curve of lag over time, each known lag has a dot at its time.

    The line has a gap where the lag is unknown.
    """
    lags = (40, 10, None, None, 0, 30)
    with opened(browser, tmp_path, reconciliation(topic(), timeline=moments(*lags))) as page:
        line, area, dots = (page.locator(f"svg .{name}").get_attribute("d") or "" for name in ("line", "area", "dots"))
        box = page.locator("svg").bounding_box()
        shown = page.locator("svg .line").bounding_box()
        label = page.get_by_role("img").get_attribute("aria-label")
    found = [tuple(map(float, point)) for point in re.findall(r"M([\d.]+) ([\d.]+)h0", dots)]
    assert found == [(600 * place / 5, 120 * (1 - lag / 40)) for place, lag in enumerate(lags) if lag is not None]
    assert line.count("M") == area.count("M") == 2
    assert shown is not None
    assert box is not None
    assert shown["width"] == pytest.approx(box["width"], abs=4)
    assert shown["height"] == pytest.approx(box["height"], abs=4)
    assert label == "Lag at 6 moments: first 40, highest 40, last 30"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_have_enough_contrast(browser, tmp_path, scheme):
    """In report.html, text has a contrast of at least 4.5 to its background, bars and lines have one of at least 3."""
    every = reconciliation(
        *FOUND.summary,
        topic("more", unexpected=3),
        worst=(*FOUND.worst, partition("unexpected")),
        hints=FOUND.hints,
        timeline=FOUND.timeline,
        quarantined=1,
    )
    with opened(browser, tmp_path, every, DESK, scheme) as page:
        seen = page.evaluate(CONTRASTS)
    assert {text for text, _ in seen["texts"]} >= {*FOUND.totals.counts, "produced", "not known", "behind"}
    assert [each for each in seen["texts"] if each[1] < 4.5] == []
    assert len(seen["shapes"]) > 80
    assert [each for each in seen["shapes"] if each[1] < 3] == []
    assert (seen["page"] > 0.5) == (scheme == "light")


def test_page_works_with_a_screen_reader_and_a_keyboard(browser, tmp_path):
    """In report.html, headings are in order; tables, boxes and pictures have names; boxes take keyboard focus.

    Each bar has its number as text.
    """
    with opened(browser, tmp_path, FOUND) as page:
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        assert page.get_by_role("main").count() == 1
        name = re.compile(r"\w{3}")
        assert page.get_by_role("table").count() == page.get_by_role("table", name=name).count() == 3
        assert page.get_by_role("img").count() == page.get_by_role("img", name=name).count() == 3
        boxes = page.locator(".scroll")
        assert [box.get_attribute("tabindex") for box in boxes.all()] == ["0"] * 3
        assert page.get_by_role("region", name=re.compile("Table of the worst|All figures|All moments")).count() == 3
        assert page.locator("html").get_attribute("lang") == "en"
        first = page.locator(".topics > li").first
        assert "before 310 after not known" in " ".join(first.inner_text().split())


def test_hostile_names_are_shown_as_text(browser, tmp_path):
    """Names with a script, 249 letters or a right-to-left override are shown as text, and the page still fits."""
    script = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    found = reconciliation(
        topic("w" * 249, group=script, missing=1),
        topic("\u202egpj.exe", group="x" * 32_000, lag=(2**62, 2**62)),
        worst=(partition("missing", group=script, topic="w" * 249, reason="</td></table><script>alert(3)</script>"),),
        hints=("<b onclick=alert(4)>",),
        timeline=moments(1, 2, 2**62, group=script),
    )
    with opened(browser, tmp_path, found, PHONE) as page:
        assert width_of(page) == PHONE
        assert page.locator("h3").first.inner_text() == script
        assert page.locator("script, img, b:not(.legend b)").count() == 0
        expect(page.get_by_text("\\u202egpj.exe").first).to_be_visible()
        expect(page.get_by_text("</td></table><script>alert(3)</script>")).to_be_attached()
