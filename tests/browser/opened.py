"""Open a page in the browser, and measure what a person can see of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

PHONE, DESK = 360, 1280
VIEWS = [
    *((PHONE, "light"), (DESK, "dark")),
    *(pytest.param(*view, marks=pytest.mark.long) for view in ((PHONE, "dark"), (DESK, "light"))),
]

# The relative luminance of text and of its background by WCAG 2, from the colours that the browser computed.
CONTRASTS = """() => {
  const parse = text => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const over = (top, below) => below.map((c, i) => i < 3 ? top[i] * top[3] + c * (1 - top[3]) : 1);
  const under = element => {
    if (!element) return [255, 255, 255, 1];
    const own = parse(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own : over(own, under(element.parentElement));
  };
  const light = rgb => rgb.slice(0, 3).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    const ground = under(element);
    const ratioOfText = ratio(over(parse(getComputedStyle(element).color), ground), ground);
    texts.push([walker.currentNode.textContent.trim(), ratioOfText]);
  }
  const shapes = [...document.querySelectorAll(".fill, .stack span")].map(element =>
    [element.className, ratio(parse(getComputedStyle(element).backgroundColor), under(element.closest("section")))]);
  const lines = [...document.querySelectorAll(".line, .marked")].map(element =>
    [element.className.baseVal, ratio(parse(getComputedStyle(element).stroke), under(element.closest("section")))]);
  return {texts, shapes: [...shapes, ...lines], page: light(under(document.body))};
}"""


@contextmanager
def opened_page(
    browser: Browser, file: Path, text: str, width: int = DESK, scheme: Literal["light", "dark"] = "light"
) -> Iterator[Page]:
    """Write a page to a file, open it in a browser window, and open its ``details``.

    text: the HTML. width: the width of the window, in pixels. The test fails if the page requests another URL, or
    writes to the console.
    """
    file.write_text(text, encoding="utf-8")
    with browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme) as context:
        page = context.new_page()
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.goto(file.as_uri())
        for fold in page.locator("summary").all():
            fold.click()
        yield page
        assert asked == [file.as_uri()]
        assert said == []


def width_of(page: Page) -> int:
    """Return the width of the page in pixels. It equals the width of the window if the page fits."""
    return page.evaluate("document.documentElement.scrollWidth")


def beyond(page: Page) -> list[str]:
    """Return the HTML of visible elements beyond the window's right edge, except in boxes that scroll."""
    return page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll *') && e.checkVisibility()"
        " && e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML)"
    )
