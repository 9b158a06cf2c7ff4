"""Draw a result as a GitHub comment in Markdown: a summary, tables, ``<details>`` sections, and names as literal text.

A comment that is too long for GitHub is drawn again, with fewer rows and shorter names, until it fits.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from migrate_groups.show.result import Column, Line, Result, Role, Table, Tone, more
from migrate_groups.text import cut

# In bytes, because a text never has more characters than bytes. The limit is lower than GitHub's 65,536
# characters, so that a workflow can add a line.
_MOST_BYTES = 64_000


class Size(NamedTuple):
    """The limits within which a GitHub comment is drawn.

    rows: the highest number of rows in a table, and of groups in the comment. characters: the highest number of
    characters in a name or a reason. details: the highest number of groups whose details are shown.
    """

    rows: int
    characters: int
    details: int = 1_000_000


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
# Of a fleet, each group has a line before any group has its details.
_DETAILS_FIRST = (WHOLE, *(Size(1_000, 300, number) for number in (300, 100, 30, 10, 3, 0)), *_SIZES[1:])


def draw(result: Result) -> str:
    """Return a result as GitHub Markdown of at most 64,000 bytes; a larger result is cut."""
    has_details = any(each.groups for each in result.details)
    return fitting(lambda size: _blocks(result, size), _DETAILS_FIRST if has_details else _SIZES)


def fitting(render: Callable[[Size], Iterable[str]], sizes: Iterable[Size] = _SIZES) -> str:
    """Return a GitHub comment as Markdown of at most 64,000 bytes.

    render: returns the paragraphs, tables and sections of the comment for the given limits. It is called with lower and
    lower limits until the comment fits.
    """
    texts = (_joined(render(size)) for size in sizes)
    return next(text for text in texts if text is not None)


def _blocks(result: Result, size: Size) -> Iterator[str]:
    tables, details = ([each for each in of if not each.is_empty] for of in (result.tables, result.details))
    grouped = [each for each in (*tables, *details) if each.groups]
    if result.title:
        yield f"### {_prose(result.title, size)}"
    if result.verdict:
        word, sentence, _ = result.verdict
        places = " ".join(f"{name} {_code(place, size)}" for name, place in result.places.items())
        yield f"**{word}**: {_prose(sentence, size)}." + (f" {places}." if places else "")
    if result.everything and (size is not WHOLE or any(each.left_out(len(each.rows)) for each in grouped)):
        name, does = result.everything
        yield f"**Cut to fit a comment**: {_code(name, size)} {does}."
    listed = [each for each in result.lines if each.tone is not Tone.PLAIN]
    yield "\n".join(f"- {_line(each, size)}" for each in listed[: size.rows])
    if result.figures:
        sides = [":--", *["--:"] * len(result.figures)]
        yield "\n".join(_rows([["", *result.figures], sides, ["total", *result.figures.values()]]))
    yield from (_table(each, size) for each in (*tables, *details) if not (each.groups or each.folded))
    yield "\n".join(_item(each.columns, row, size) for each in tables for row in each.pressing)
    yield from (_folded(each, size) for each in tables if each.folded)
    for most, of in ((size.rows, tables), (size.details, details)):
        for table in of:
            yield from _by_group(table, size, min(most, size.rows)) if table.groups else ()
    yield from (_folded(each, size) for each in details if each.folded)
    yield from (_line(each, WHOLE) for each in result.lines if each.tone is Tone.PLAIN)
    if result.command:
        yield f"Next: {_code(result.command, WHOLE)}"
    yield "<br>".join(f"{name} {_code(value, WHOLE)}" for name, value in result.ids.items())


def _table(table: Table[Any], size: Size) -> str:
    shown = table.rows[: size.rows]
    title = f"#### {_prose(table.title, size)}\n\n" if table.title else ""
    return title + _of_rows(table.columns, shown, table.left_out(len(shown)), size)


def _by_group(table: Table[Any], size: Size, most: int) -> Iterator[str]:
    groups = table.by_group()
    for group, rows in [*groups.items()][:most]:
        about = table.groups.text(rows) if table.groups else ""
        rest = more(len(rows) - size.rows, table.thing)
        # Until the next empty line GitHub interprets no Markdown within HTML, and within <code> no mention (@name).
        summary = f"<code>{html.escape(cut(group, size.characters))}</code>"
        summary += f": {html.escape(about)}" if about else ""
        yield _details(summary, _of_rows(table.columns[1:], rows[: size.rows], rest, size))
    yield more(len(groups) - most, "group")
    yield table.left_out(len(table.rows))


def _folded(table: Table[Any], size: Size) -> str:
    return _details(html.escape(table.folded), _table(table, size))


def _details(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _of_rows(columns: Sequence[Column[Any]], rows: Sequence[Any], rest: str, size: Size) -> str:
    sides = ["--:" if column.kind.role is Role.FIGURE else ":--" for column in columns]
    cells = [[_cell(column, row, size) for column in columns] for row in rows]
    lines = "\n".join(_rows([[column.title for column in columns], sides, *cells]))
    return f"{lines}\n\n{rest}" if rest else lines


def _rows(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    # In a table every pipe must be escaped, also within code (GitHub Flavored Markdown).
    return ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def _item(columns: Sequence[Column[Any]], row: Any, size: Size) -> str:
    verdict, name, reason = (_cell(column, row, size) for column in columns)
    return f"- **{verdict}** {name}: {reason}"


def _cell(column: Column[Any], row: Any, size: Size) -> str:
    is_name = column.kind.role is Role.NAME and column.value(row) is not None
    return (_code if is_name else _prose)(column.text(row), size)


def _line(line: Line, size: Size) -> str:
    phrases = line._replace(text=cut(line.text, size.characters)).phrases()
    return "".join((_code if is_code else _prose)(part, size) for part, is_code in phrases)


def _code(text: str, size: Size) -> str:
    """Return a name as inline code in Markdown, cut to ``size.characters``."""
    # In inline code GitHub interprets no markup, mention (@name) or reference (#1).
    text = cut(text, size.characters)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _prose(text: str, size: Size) -> str:
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
