"""The tables of the terminal views."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from migrate_groups.text import one_line


def table(*names: str, **aligned: str) -> Table:
    """Return a table without borders: first the columns ``names``, aligned left, then the columns ``aligned``.

    ``log_end=">"`` adds a column "log end", aligned right; ``"<"`` aligns left. A long cell is wrapped, never cut.
    """
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        made.add_column(name, overflow="fold")
    for name, side in aligned.items():
        made.add_column(name.replace("_", " "), justify="right" if side == ">" else "left", overflow="fold")
    return made


def cell(text: str) -> Text:
    """Return a table cell for text that is not ours, such as the name of a group: on one line and without markup.

    Rich would read a plain string as markup: it would show ``:bank:`` as an emoji, and drop ``[b]``.
    """
    return Text(one_line(text))
