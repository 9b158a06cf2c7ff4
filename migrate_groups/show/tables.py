"""The tables of the terminal views."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

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


def cell(text: str) -> str:
    """Return foreign text, such as the name of a group, for a cell: no markup, and on one line."""
    return escape(one_line(text))
