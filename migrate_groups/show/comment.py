"""Parts of a GitHub comment on a pull request: tables, ``<details>`` sections, and names with all markup escaped.

GitHub accepts a comment of 65,536 characters. A longer one is rendered again with fewer rows and shorter names until it
fits. It says how many rows are left out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from migrate_groups.text import counted, cut

# In bytes, because a text never has more characters than bytes. The limit is lower than GitHub's, so that a workflow
# can add a line.
_MOST_BYTES = 64_000


class Size(NamedTuple):
    """Limits of a GitHub comment. rows: of each table, and the number of groups. characters: of a name or a reason."""

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
    """Return the comment with the widest limits that has at most 64,000 bytes.

    ``render`` returns the blocks of the comment (paragraphs, tables, sections) within limits. Empty blocks are dropped.
    """
    texts = (_joined(render(size)) for size in _SIZES)
    return next(text for text in texts if text is not None)


def folded(summary: str, body: str) -> str:
    """Return a collapsed ``<details>`` section with a body in Markdown. The summary is HTML (see `html_code`)."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], number: int, size: Size, thing: str) -> str:
    """Return a table with the first ``size.rows`` rows, and below it how many of the ``number`` rows are left out.

    ``thing`` names what one row describes. A column whose name ends in `` >`` is aligned to the right.
    """
    sides = ["--:" if name.endswith(">") else ":--" for name in header]
    shown = list(islice(rows, size.rows))
    lines = "\n".join(_lines([[name.removesuffix(" >") for name in header], sides, *shown]))
    rest = more(number - len(shown), thing)
    return f"{lines}\n\n{rest}" if rest else lines


def more(rest: int, thing: str) -> str:
    """Return a line such as ``… and 12 topics more``, or the empty text if ``rest`` is 0 or less."""
    return f"… and {counted(rest, thing)} more" if rest > 0 else ""


def code(text: str, size: Size) -> str:
    """Return a name as inline code, in which GitHub reads no Markdown, HTML, mention or reference."""
    text = cut(text, size.characters)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def html_code(text: str, size: Size) -> str:
    """Return a name as inline code in HTML.

    GitHub reads no Markdown in HTML up to the next empty line, and no mention such as ``@name`` within ``<code>``.
    """
    return f"<code>{html.escape(cut(text, size.characters))}</code>"


def prose(text: str, size: Size) -> str:
    """Return a sentence for a GitHub comment, cut to ``size``, with its Markdown, HTML, links and mentions escaped."""
    escaped = re.sub(r"([\\`*_\[\]<>&~$]|(?<=www)\.|:(?=//))", r"\\\1", cut(text, size.characters))
    # A backslash is not enough here, because GitHub looks for mentions and references in the rendered text.
    return re.sub("([@#])", r"\1&#8203;", escaped)


def _joined(blocks: Iterable[str]) -> str | None:
    """Return the comment, or None if it is too large. The remaining blocks are not rendered then."""
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
