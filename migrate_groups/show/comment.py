"""Build GitHub comments in Markdown: tables, ``<details>`` sections, and names as literal text.

A comment that is too long for GitHub is rendered again, with fewer rows and shorter names, until it fits.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from migrate_groups.text import counted, cut

# In bytes, because a text never has more characters than bytes. The limit is lower than GitHub's 65,536
# characters, so that a workflow can add a line.
_MOST_BYTES = 64_000


class Size(NamedTuple):
    """The limits within which a GitHub comment is rendered.

    rows: the highest number of rows in a table, and of groups in the comment. characters: the highest number of
    characters in a name or a reason.
    """

    rows: int
    characters: int


WHOLE = Size(1_000_000, 2_000)
"""The limits of a comment that is not cut."""

_SIZES = (
    WHOLE,
    Size(1_000, 1_000),
    Size(700, 600),
    Size(500, 500),
    Size(300, 300),
    Size(200, 250),
    Size(100, 200),
    Size(50, 150),
    Size(20, 100),
    Size(10, 60),
    Size(5, 40),
)


def fitting(render: Callable[[Size], Iterable[str]]) -> str:
    """Return a GitHub comment as Markdown of at most 64,000 bytes.

    render: returns the paragraphs, tables and sections of the comment for the given limits. It is called with lower and
    lower limits until the comment fits.
    """
    texts = (_joined(render(size)) for size in _SIZES)
    return next(text for text in texts if text is not None)


def folded(summary: str, body: str) -> str:
    """Return a collapsed ``<details>`` section. summary: its title, as HTML. body: its content, as Markdown."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], number: int, size: Size, thing: str) -> str:
    """Return a Markdown table of the first ``size.rows`` rows, and below it the number of rows that are left out.

    - header: the column names; a column is aligned right if its name ends with `` >``.
    - rows: cells as Markdown.
    - number: the number of all rows.
    - thing: what a row describes, in the singular, such as ``topic``.
    """
    sides = ["--:" if name.endswith(">") else ":--" for name in header]
    shown = list(islice(rows, size.rows))
    lines = "\n".join(_lines([[name.removesuffix(" >") for name in header], sides, *shown]))
    rest = more(number - len(shown), thing)
    return f"{lines}\n\n{rest}" if rest else lines


def more(rest: int, thing: str) -> str:
    """Return a line such as ``… and 12 more topics``; empty if ``rest`` is 0 or less.

    rest: the number of things, here 12. thing: their name in the singular, here ``topic``.
    """
    return f"… and {counted(rest, f'more {thing}')}" if rest > 0 else ""


def code(text: str, size: Size) -> str:
    """Return a name as inline code in Markdown, cut to ``size.characters``."""
    # In inline code GitHub interprets no markup, mention (@name) or reference (#1).
    text = cut(text, size.characters)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def html_code(text: str, size: Size) -> str:
    """Return a name as inline code in HTML (``<code>``), escaped and cut to ``size.characters``."""
    # Until the next empty line GitHub interprets no Markdown within HTML, and within <code> no mention (@name).
    return f"<code>{html.escape(cut(text, size.characters))}</code>"


def prose(text: str, size: Size) -> str:
    """Return a text, cut to ``size.characters``, as Markdown that GitHub shows literally."""
    escaped = re.sub(r"([\\`*_\[\]<>&~$]|(?<=www)\.|:(?=//))", r"\\\1", cut(text, size.characters))
    # A backslash is not enough here, because GitHub looks for mentions and references in the rendered text.
    return re.sub("([@#])", r"\1&#8203;", escaped)


def _joined(blocks: Iterable[str]) -> str | None:
    """Return the blocks as one comment; None if the comment would have more than 64,000 bytes."""
    shown: list[str] = []
    bytes_so_far = -1  # because the last block is followed by one newline, and every other block by two
    for block in filter(None, blocks):
        shown.append(block)
        bytes_so_far += len(block.encode()) + 2
        if bytes_so_far > _MOST_BYTES:
            return None
    return "\n\n".join(shown) + "\n"


def _lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    # In a table every pipe must be escaped, also within code (GitHub Flavored Markdown).
    return ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
