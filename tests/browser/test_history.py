"""history.html in a browser: on a phone and on a desktop, in light and dark colours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate_groups.show import history
from tests.browser.opened import CONTRASTS, VIEWS, beyond, opened_page, width_of
from tests.unit.test_history import BACK, FOUND, LOG

BEGUN, ENDED = FOUND.timeline[0].taken_at, FOUND.timeline[2].taken_at
PAGE = history.page(replace(FOUND, resets=(BACK._replace(before=BEGUN + (ENDED - BEGUN) / 4),)), LOG)
COMMAND = "migrate-groups snapshot billing --log 'the logs' --at 2026-03-01T12:00:30Z -o then.csv"


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_page_fits_and_can_be_read(browser, tmp_path, width, scheme):
    """No text of history.html is beyond the window, on a phone and on a desktop.

    Text has a contrast of at least 4.5 to its background, curves and marks have one of at least 3.
    """
    with opened_page(browser, tmp_path / "history.html", PAGE, width, scheme) as page:
        assert (width_of(page), beyond(page)) == (width, [])
        seen = page.evaluate(CONTRASTS)
    assert [each for each in seen["texts"] if each[1] < 4.5] == []
    assert [name for name, _ in seen["shapes"]] == ["line", "marked", "line", "marked"]
    assert [each for each in seen["shapes"] if each[1] < 3] == []


def test_a_reset_is_marked_and_its_command_is_selected_by_a_click(browser, tmp_path):
    """A line marks the moment before a reset in a curve. One click selects the command for the offsets then."""
    with opened_page(browser, tmp_path / "history.html", PAGE) as page:
        curve, mark = (page.locator(name).first.bounding_box() for name in ("svg", "svg .marked"))
        page.locator(".command").click()
        assert page.evaluate("getSelection().toString()").strip() == COMMAND
        assert page.get_by_role("img", name="; 1 reset").count() == 2
    assert curve is not None
    assert mark is not None
    assert (mark["x"] - curve["x"]) / curve["width"] == pytest.approx(0.25, abs=0.01)
    assert mark["height"] == pytest.approx(curve["height"], abs=4)
