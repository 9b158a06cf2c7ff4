"""Write docs/reference/commands.md from the help of the commands. A test fails if the page differs from the help.

Usage: ``.venv/bin/python scripts/write_reference.py`` (``scripts/test`` makes .venv).
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path

import typer.main

from migrate_groups.cli.registry import GROUPS, command_line

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
_HEAD = """# Commands

The help of each command, as `migrate-groups COMMAND --help` prints it. [The exit codes and environment
variables](exit-codes-and-environment.md) have a page of their own.
"""


def reference() -> str:
    """Return the page's Markdown: the help of each command, in the groups and order of ``--help``."""
    os.environ["COLUMNS"] = "100"
    parts = [_HEAD]
    for title, commands in GROUPS.items():
        parts.append(f"## {title}\n")
        parts.extend(f"### {name}\n\n```text\n{_help_of(name)}```\n" for name in commands)
    return "\n".join(parts)


def _help_of(name: str) -> str:
    shown = io.StringIO()
    with redirect_stdout(shown), suppress(SystemExit):
        typer.main.get_command(command_line())([name, "--help"], prog_name="migrate-groups")
    return shown.getvalue()


def main() -> int:
    """Write the page."""
    argparse.ArgumentParser(description="Write docs/reference/commands.md from the help of the commands.").parse_args()
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(reference())
    return 0


if __name__ == "__main__":
    sys.exit(main())
