"""The tables of the terminal views."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from migrate_groups.text import one_line


def table(*names: str, **aligned: str) -> Table:
    """Return a table without lines: columns on the left, then those with ``<`` or ``>`` for their side.

    ``log_end=">"`` is a column "log end" on the right. Whole names are shown, on several lines where they must be.
    """
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        made.add_column(name, overflow="fold")
    for name, side in aligned.items():
        made.add_column(name.replace("_", " "), justify="right" if side == ">" else "left", overflow="fold")
    return made


def cell(text: str) -> Text:
    """Return foreign text, such as the name of a group, for a cell: on one line, and as it is.

    Rich takes a plain string for its markup: it shows ``:bank:`` as an emoji, and ``[b]`` not at all.
    """
    return Text(one_line(text))
