"""advice.html and after.html in a browser: on a phone and on a desktop, in light and dark colours."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from migrate_groups.migration.advise.after import Split, compare
from migrate_groups.migration.advise.predicted_costs import judge_costs
from migrate_groups.migration.advise.propose import ClientSetting, Suggestion
from migrate_groups.show import after_split, costs
from migrate_groups.spark.offsets_topic.advice_result import Costs, Generation, SharedCost, Subscription
from migrate_groups.spark.reconciliation.result import Moment
from tests.browser.opened import CONTRASTS, DESK, PHONE, beyond, opened_page, width_of
from tests.unit.test_after_split import DELAY, FLAPPING, HOUR, NOON, cost

SPEC = 'source = "big"\n\n# 2 members (billing-1, billing-2)\n[[target]]\ngroup = "big-billing"\n' + "x" * 200
SETTING = ClientSetting(
    setting="partition.assignment.strategy=cooperative-sticky", why="no member waits for all others"
)
BIG = [
    cost(**FLAPPING, stood_still=0.0),
    cost("shop", stood_still=40.0, outage=None, caused=0, topics=["orders", "payments"]),
    cost("web", stood_still=6.0, outage=0.0, caused=0),
]
OTHER = [cost(name, group="other", stood_still=0.5, outage=0.0, caused=4) for name in ("left", "right")]


def advice(rows: list[SharedCost]) -> str:
    """Return advice.html for these rows. Group big has 60 generations, and each group has lag over time."""
    applications = [row.application for row in rows if row.group == "big"]
    ended = [
        Generation(
            "big", number, "range", NOON - timedelta(minutes=60 - number), NOON - timedelta(minutes=59 - number), 6,
            [], [], applications[: number % 3],
        )
        for number in range(60)
    ]  # fmt: skip
    who = [Subscription(row.group, row.application, each, row.topics) for row in rows for each in row.clients]
    found = Costs(applications=tuple(rows), found=len(rows), generations=tuple(ended), subscriptions=tuple(who))
    lag = [
        Moment("c", group, None, NOON + timedelta(minutes=at), *([at] * (len(Moment._fields) - 4)))
        for group in {row.group for row in rows}
        for at in range(5)
    ]
    suggested = {
        "big": Suggestion(settings=(SETTING,), spec=SPEC, why_not=""),
        "other": Suggestion(settings=(), spec="", why_not="it has stopped"),
    }
    return costs.page(found, judge_costs(rows, NOON, DELAY), lag, suggested)


def after(rows: list[SharedCost]) -> str:
    """Return after.html about the split of group big into a group for each application.

    The last application's new group also has members that read another topic.
    """
    targets = {("big", topic): [f"big-{row.application}"] for row in rows for topic in row.topics}
    since = [cost(row.application, group=f"big-{row.application}", outage=3.0, topics=row.topics) for row in rows]
    since[-1] = since[-1]._replace(topics=[*since[-1].topics, "views"])
    split = Split(targets=targets, written_at=NOON)
    return after_split.page(after_split.result(compare(rows, since, split, delay=DELAY, read_at=NOON + HOUR)))


PAGES = {"advice": advice([*BIG, *OTHER]), "after": after(BIG)}


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (DESK, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_page_fits_and_can_be_read(browser, tmp_path, name, width, scheme):
    """No text of the page is beyond the window, on a phone and on a desktop.

    Text has a contrast of at least 4.5 to its background, bars and dots have one of at least 3.
    """
    with opened_page(browser, tmp_path / "page.html", PAGES[name], width, scheme) as page:
        assert width_of(page) == width
        assert beyond(page) == []
        assert page.locator("table:not(.scroll table)").count() == 0
        seen = page.evaluate(CONTRASTS)
    assert [each for each in seen["texts"] if each[1] < 4.5] == []
    assert [each for each in seen["shapes"] if each[1] < 3] == []
    assert (seen["page"] > 0.5) == (scheme == "light")


def test_each_application_has_its_own_colour(browser, tmp_path):
    """An application has one colour in the list of topics, the table and the bars of generations.

    The colour differs from those of other applications, and is easy to see.
    """
    light_and_dark = []
    for scheme in ("light", "dark"):
        with opened_page(browser, tmp_path / "advice.html", PAGES["advice"], DESK, scheme) as page:
            big = page.get_by_role("region", name="big", exact=True)
            dots = big.locator(".topics .dot rect").evaluate_all("all => all.map(e => getComputedStyle(e).fill)")
            lines = big.locator("tbody tr").filter(has=page.locator("td .dot"))
            shown = lines.evaluate_all("all => all.map(e => getComputedStyle(e.querySelector('rect')).fill)")
            bars = big.locator(".generations rect").evaluate_all("all => all.map(e => getComputedStyle(e).fill)")
            light_and_dark.append(page.evaluate(BRIGHTNESS, [*dots]))
        assert len({*dots}) == 3
        assert shown == [each for each in dots for _ in range(2)]
        assert {*bars} - {*dots} == {"oklch(0.62 0 0)"}
        assert len(bars) == 60
    on_light, on_dark = light_and_dark
    assert on_light == on_dark
    assert all(1.05 / (each + 0.05) >= 3 and (each + 0.05) / 0.062 >= 3 for each in on_light)


# The relative luminance of colours by WCAG 2, as the browser paints them.
BRIGHTNESS = """colours => colours.map(colour => {
  const brush = document.createElement("canvas").getContext("2d");
  brush.fillStyle = colour;
  brush.fillRect(0, 0, 1, 1);
  return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3).map(c => c / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
})"""


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_advice_shows_each_shared_group(browser, tmp_path, width):
    """advice.html shows a shared group's advice, times, bars of these times, and cheaper settings.

    It also shows a split, or the reason why no split is proposed.
    """
    with opened_page(browser, tmp_path / "advice.html", PAGES["advice"], width) as page:
        big = page.get_by_role("region", name="big", exact=True)
        for text in ("look: 40.0 s", "From 2026-11-20 11:00:00 to 2026-11-20 12:00:00", "[[target]]"):
            expect(big.get_by_text(text)).to_be_visible()
        expect(big.get_by_role("listitem").filter(has_text=SETTING.setting)).to_contain_text(SETTING.why)
        expect(page.get_by_role("region", name="other", exact=True)).to_contain_text(
            "No split is proposed: it has stopped"
        )
        bars = big.locator(".bar").evaluate_all("""bars => bars.map(bar => {
          const wide = name => bar.querySelector(name)?.getBoundingClientRect().width;
          const text = (around, name) => bar.closest(around).querySelector(name).textContent.trim();
          const share = wide(".fill") === undefined ? null : wide(".fill") / wide(".track");
          return [text("li", "code"), text(".bar", ".side"), share];
        })""")
        titles = page.locator("h2, h3").all_inner_texts()
    shares = {(name, side): share for name, side, share in bars}
    assert shares["shop", "waited"] == 1
    assert shares["web", "waited"] == pytest.approx(6 / 40, abs=0.01)
    assert shares["billing", "outage"] == pytest.approx(12 / 40, abs=0.01)
    assert shares["billing", "after"] == pytest.approx(36 / 40, abs=0.01)  # the upper end of the prediction
    assert shares["billing", "waited"] == shares["web", "outage"] == 0
    assert shares["shop", "outage"] is None
    assert titles[:3] == ["Groups, the worst first", "big", "Members and topics"]


def test_after_shows_each_application(browser, tmp_path):
    """after.html shows for how many seconds each application did not consume, before the split and after it.

    It also shows, in a row for each application, the group, the prediction, whether the prediction holds, and remarks.
    """
    with opened_page(browser, tmp_path / "after.html", PAGES["after"]) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("3 applications of big after the split")
        bars = [" ".join(each.split()) for each in page.locator(".topics li").all_inner_texts()]
        lines = [line.locator("td").all_inner_texts() for line in page.locator("tbody tr").all()]
    assert bars[1:] == ["shop waited 40.0 s outage not known since 3.0 s", "web waited 6.0 s outage 0.0 s since 3.0 s"]
    assert [line[:2] for line in lines] == [[name, f"big-{name}"] for name in ("billing", "shop", "web")]
    assert [line[-2] for line in lines] == ["yes", "no", "no"]
    assert lines[2][-1] == "it shares its new group with readers of views"


@pytest.mark.parametrize("name", PAGES)
def test_pages_work_with_a_screen_reader_and_a_keyboard(browser, tmp_path, name):
    """On each page, headings are in order, pictures and boxes that scroll have names, and boxes take keyboard focus."""
    with opened_page(browser, tmp_path / "page.html", PAGES[name]) as page:
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        boxes = page.locator(".scroll")
        assert boxes.count() == page.get_by_role("region").and_(boxes).filter(has=page.locator("table, pre")).count()
        assert {box.get_attribute("tabindex") for box in boxes.all()} == {"0"}
        assert page.get_by_role("img").count() == page.get_by_role("img", name=re.compile(r"\w{3}")).count()


@pytest.mark.parametrize("made", [advice, after])
def test_hostile_names_are_shown_as_text(browser, tmp_path, made):
    """Names with a script, 249 letters or a right-to-left override are shown as text, and the page still fits."""
    script = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    rows = [cost(script, topics=["w" * 249], clients=["\u202egpj.exe"]), cost("y" * 249, clients=["c" * 255])]
    with opened_page(browser, tmp_path / "page.html", made(rows), PHONE) as page:
        assert width_of(page) == PHONE
        assert page.locator("script, img").count() == 0
        expect(page.get_by_text(script).first).to_be_attached()
        assert "\u202e" not in page.content()
