"""Draw a result on a terminal: tables without borders, one line a row, and lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from migrate_groups.show.result import Line, Result, Role, Table, Tone
from migrate_groups.text import one_line

_GAP = "  "
_LINES = {Tone.PLAIN: "", Tone.NOTE: "bold", Tone.REMARK: "yellow", Tone.HINT: "yellow"}
# The colours of words. A word that is not here has none.
_TONES = {
    "not applicable": "dim",
    "pass": "green",
    "warn": "yellow",
    "not known": "magenta",
    "pending": "cyan",
    "refuse": "bold red",
    "exact": "green",
    "trusted": "yellow",
    "undetermined": "yellow",
    "not mirrored yet": "yellow",
    "ambiguous": "red",
    "bounded": "red",
    "different": "red",
    "gone": "red",
}


def draw(result: Result) -> list[RenderableType]:
    """Return the tables and lines of a result, for `rich`."""
    return [drawn for part in result.parts for drawn in _part(part)]


def cell(text: str) -> Text:
    """Return a text that `rich` shows literally, on one line."""
    # Rich would interpret a plain string as markup: it would show ":bank:" as an emoji, and drop "[b]".
    return Text(one_line(text))


class Grid:
    """The cells of a table, for `rich`. Each row is printed as one line, and cells are never cut."""

    def __init__(self, table: Table[Any]) -> None:
        self._is_right = [column.kind.role is Role.FIGURE for column in table.columns]
        self._rows = [([cell(column.heading) for column in table.columns], "bold")]
        for row in table.rows[: table.most]:
            cells = [cell(column.text(row)) for column in table.columns]
            for column, text in zip(table.columns, cells, strict=True):
                text.stylize(_TONES.get(column.tone(row), "") if column.tone else "")
            self._rows.append((cells, ""))
        if table.total:
            self._rows.append(([cell(text) for text in table.total], "bold"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the header and the rows, one line each, for `rich`."""
        widths = [max(map(_width, column)) for column in zip(*(cells for cells, _ in self._rows), strict=True)]
        for cells, style in self._rows:
            line = Text(style=style, no_wrap=True, overflow="ignore")
            for number, (each, width, is_right) in enumerate(zip(cells, widths, self._is_right, strict=True)):
                space = " " * (width - _width(each))
                line.append(_GAP if number else "")
                line.append_text(Text.assemble(space, each) if is_right else Text.assemble(each, space))
            line.rstrip()  # trailing spaces would take a line of a narrow terminal
            yield line


def _part(part: Table[Any] | Line) -> Sequence[RenderableType]:
    if isinstance(part, Line):
        return [Text(one_line(part.text), style=_LINES[part.tone])]
    title = [Text(one_line(part.title), style="bold")] if part.title else []
    grid = [] if part.is_empty else [Grid(part)]
    rest = part.left_out(len(part.rows[: part.most]))
    return [*title, *grid, *([Text(rest + part.elsewhere, style="dim")] if rest else [])]


def _width(text: Text) -> int:
    return cell_len(text.plain)
