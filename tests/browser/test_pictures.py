"""The pictures of docs/pictures show in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

PICTURES = sorted((Path(__file__).parents[2] / "docs" / "pictures").iterdir())


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_shows(browser, tmp_path, picture):
    """A page with the picture shows it: the browser decodes it, and it has a width and a height."""
    page = tmp_path / "page.html"
    page.write_text(f'<!doctype html><title>{picture.name}</title><img src="{picture.as_uri()}" alt="">')
    with browser.new_context() as context:
        opened = context.new_page()
        opened.goto(page.as_uri())
        assert (
            opened.evaluate(
                "async () => { const picture = document.images[0];"
                " return picture.decode().then(() => picture.naturalWidth > 0 && picture.naturalHeight > 0, String); }"
            )
            is True
        )
