"""The pieces of a comment on a pull request, in GitHub's Markdown: tables, folds, foreign names that do nothing.

GitHub takes 65,536 characters. What needs more is shown smaller, with counts of what is left out, until it fits.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from migrate_groups.text import counted, cut

# In bytes, which characters never exceed, however they are counted; the rest is for a line that a workflow adds.
_MOST_BYTES = 64_000


class Size(NamedTuple):
    """How much is shown: rows of a table and groups, characters of a name or a reason."""

    rows: int
    characters: int


WHOLE = Size(1_000_000, 2_000)
"""Everything that a comment is made for is shown."""

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
    """Return the largest comment of at most 64,000 bytes; ``render`` gives its blocks, empty ones are left out."""
    texts = (_joined(render(size)) for size in _SIZES)
    return next(text for text in texts if text is not None)


def folded(summary: str, body: str) -> str:
    """Return a fold; its summary is HTML (`html_code`)."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], number: int, size: Size, thing: str) -> str:
    """Return the first rows of a table, and how many of its ``number`` are left out, each a ``thing``.

    A column whose name ends in ``>`` is aligned to the right.
    """
    sides = ["--:" if name.endswith(">") else ":--" for name in header]
    shown = list(islice(rows, size.rows))
    lines = "\n".join(_lines([[name.removesuffix(" >") for name in header], sides, *shown]))
    rest = more(number - len(shown), thing)
    return f"{lines}\n\n{rest}" if rest else lines


def more(rest: int, thing: str) -> str:
    """Return ``… and 12 topics more``, or nothing where there are none."""
    return f"… and {counted(rest, thing)} more" if rest > 0 else ""


def code(text: str, size: Size) -> str:
    """Return a name as code, in which GitHub sees no Markdown, HTML, mention or reference."""
    text = cut(text, size.characters)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def html_code(text: str, size: Size) -> str:
    """Return a name as code within raw HTML.

    That reaches up to the next empty line: Markdown means nothing in it, and nobody is mentioned within ``<code>``.
    """
    return f"<code>{html.escape(cut(text, size.characters))}</code>"


def prose(text: str, size: Size) -> str:
    """Return a sentence, in which foreign names stand, as text: no Markdown, HTML, link, mention or reference."""
    escaped = re.sub(r"([\\`*_\[\]<>&~$]|(?<=www)\.|:(?=//))", r"\\\1", cut(text, size.characters))
    # An escape would not do: who is mentioned is looked for in what has been rendered.
    return re.sub("([@#])", r"\1&#8203;", escaped)


def _joined(blocks: Iterable[str]) -> str | None:
    """Return the comment, or None if it is too large: then the remaining blocks are not rendered."""
    shown: list[str] = []
    bytes_so_far = -1  # there is one newline at the end, two after every other block
    for block in filter(None, blocks):
        shown.append(block)
        bytes_so_far += len(block.encode()) + 2
        if bytes_so_far > _MOST_BYTES:
            return None
    return "\n\n".join(shown) + "\n"


def _lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    # Within a table a pipe is escaped wherever it stands, in code as well (GFM).
    return ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
