"""Parse a comment as GitHub renders it, and draw user text for comments with hypothesis strategies."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import strategies as st
from markdown_it import MarkdownIt

MOST = 65_536
"""The maximum number of characters in a comment on GitHub."""

ZERO_WIDTH_SPACE = "\u200b"

TEXT = st.text(
    st.sampled_from("|`*_~<>&@#$[]()\\!:/.\n\r\t \"'-+=ab1é漢\u202e\x00\x1b")
    | st.characters(exclude_categories=["Cs"]),
    max_size=30,
)
NAME = TEXT.filter(bool)


class Page(HTMLParser):
    """A rendered comment: table cells, summaries of collapsed sections, list items, code, and text outside of code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.summaries: list[str] = []
        self.items: list[str] = []
        self.code: list[str] = []
        self.prose = ""
        self.tags: set[str] = set()
        self._open: list[list[str]] = []
        self.feed(MarkdownIt("commonmark").enable("table").render(text))

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        for name, opened in {
            "td": lambda: self.tables[-1][-1],
            "summary": lambda: self.summaries,
            "li": lambda: self.items,
            "code": lambda: self.code,
        }.items():
            if tag == name:
                opened().append("")
                self._open.append(opened())

    def handle_endtag(self, tag):
        if tag in ("td", "summary", "li", "code"):
            self._open.pop()

    def handle_data(self, data):
        for opened in self._open:
            opened[-1] += data
        if not any(opened is self.code for opened in self._open):
            self.prose += data
