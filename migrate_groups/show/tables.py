"""Tables without borders for the terminal views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

from migrate_groups.text import one_line

UNKNOWN = "-"
"""The cell of a value that is not known."""

_GAP = "  "


class Table:
    """A table without borders, for `rich`. Each row is printed as one line, and cells are never cut."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        """Make a table without rows. columns: the name of each column, and its alignment: ``<`` left, ``>`` right."""
        self._sides = list(columns.values())
        self._rows: list[tuple[list[Text], str]] = []
        self.add_row(*columns, style="bold")

    def add_row(self, *cells: str | Text, style: str = "") -> None:
        """Add a row with one cell for each column. A plain string is shown literally, without markup, on one line."""
        self._rows.append(([each if isinstance(each, Text) else cell(each) for each in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the header and the rows, one line each, for `rich`."""
        widths = [max(map(_width, column)) for column in zip(*(cells for cells, _ in self._rows), strict=True)]
        for cells, style in self._rows:
            line = Text(style=style, no_wrap=True, overflow="ignore")
            for number, (each, width, side) in enumerate(zip(cells, widths, self._sides, strict=True)):
                space = " " * (width - _width(each))
                line.append(_GAP if number else "")
                line.append_text(Text.assemble(space, each) if side == ">" else Text.assemble(each, space))
            line.rstrip()  # trailing spaces would take a line of a narrow terminal
            yield line


def table(*names: str, **aligned: str) -> Table:
    """Return a table without rows: first the columns ``names``, aligned left, then the columns ``aligned``.

    For instance, ``log_end=">"`` makes a column "log end", aligned right.
    """
    return Table(dict.fromkeys(names, "<") | {name.replace("_", " "): side for name, side in aligned.items()})


def cell(text: str) -> Text:
    """Return a table cell that shows a text literally, on one line."""
    # Rich would interpret a plain string as markup: it would show ":bank:" as an emoji, and drop "[b]".
    return Text(one_line(text))


def number(value: int | None) -> str:
    """Return a number as text without separators; ``-`` for None."""
    return UNKNOWN if value is None else str(value)


def _width(text: Text) -> int:
    return cell_len(text.plain)
