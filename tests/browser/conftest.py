"""A fixture with this machine's Chromium, headless.

Without Chromium the tests of this folder are skipped; with ``TEST_BROWSER=required``, as in CI, they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = f"there is no browser on the PATH ({', '.join(NAMES)}): install Chromium"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A running Chromium, started anew for each test module, because Playwright's event loop occupies the thread."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None and os.environ.get("TEST_BROWSER") == "required":
        pytest.fail(MISSING)
    if path is None:
        pytest.skip(f"the HTML pages are not tested: {MISSING}")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path) as browser:
        yield browser
