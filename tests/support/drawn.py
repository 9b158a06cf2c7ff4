"""Draw a result as text, as on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from migrate_groups.show import terminal_text
from migrate_groups.show.result import Result


def on_a_terminal(result: Result) -> str:
    """Return what a terminal shows of a result, without colours and without breaking long lines."""
    out = io.StringIO()
    Console(file=out, color_system=None, highlight=False, soft_wrap=True).print(*terminal_text.draw(result), sep="\n")
    return out.getvalue()
