"""Write docs/reference/commands.md from the help of the commands. A test fails if the page differs from the help.

Options that are the same in six or more commands are written once, at the top.

Usage: ``.venv/bin/python scripts/write_reference.py`` (``scripts/test`` makes .venv).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
import typer.main

from migrate_groups.cli.registry import GROUPS, command_line

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
_SHARED_BY = 6
_HEAD = """# Commands

The help of each command. `migrate-groups COMMAND --help` prints all of its options; this page has options of six or
more commands [once](#options-of-many-commands). [Exit codes and environment variables](exit-codes-and-environment.md).

## Options of many commands

"""
_UNSHARED = ("Arguments", "Exit codes")
_EXIT_CODES = "Exit codes"

Sections = Mapping[str, list[tuple[str, str]]]


class _Recorder:
    """A formatter that records the sections of a help in place of writing them."""

    def __init__(self) -> None:
        self.sections: dict[str, list[tuple[str, str]]] = {}
        self._title = ""

    @contextmanager
    def section(self, title: str) -> Iterator[None]:
        self._title = title
        yield

    def write_dl(self, rows: list[tuple[str, str]]) -> None:
        self.sections[self._title] = rows


class _Help:
    """The help of a command: its sections, and what stands before them."""

    def __init__(self, command: Any, parent: typer.Context) -> None:
        self._context = typer.Context(command, info_name=command.name, parent=parent)
        recorder = _Recorder()
        command.format_options(self._context, recorder)
        self.sections = recorder.sections

    def text(self, sections: Sections) -> str:
        """Return the usage, the description and these sections, as ``--help`` prints them."""
        formatter, command = self._context.make_formatter(), self._context.command
        command.format_usage(self._context, formatter)
        command.format_help_text(self._context, formatter)
        return f"{formatter.getvalue()}\n{self.listed(sections)}".rstrip()

    def listed(self, sections: Sections) -> str:
        """Return these sections, as ``--help`` prints them."""
        formatter = self._context.make_formatter()
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        return formatter.getvalue().strip()


def reference() -> str:
    """Return the page's Markdown: the shared options, then each command, in the groups and order of ``--help``."""
    os.environ["COLUMNS"] = "100"
    group = typer.main.get_group(command_line())
    parent = typer.Context(group, info_name="migrate-groups", **group.context_settings)
    helps = {name: _Help(command, parent) for name, command in group.commands.items()}
    shared = _shared(helps)
    parts = [f"{_HEAD}```text\n{helps['list'].listed(shared)}\n```\n"]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [f"### {name}\n\n{_of_command(helps[name], shared)}" for name in names]
    return "\n".join(parts)


def _shared(helps: Mapping[str, _Help]) -> dict[str, list[tuple[str, str]]]:
    """Return the options that are the same in six or more commands, by section."""
    rows = Counter((title, row) for each in helps.values() for title, rows in each.sections.items() for row in rows)
    shared: dict[str, list[tuple[str, str]]] = {}
    for (title, row), commands in rows.items():
        if commands >= _SHARED_BY and title not in _UNSHARED:
            shared.setdefault(title, []).append(row)
    return shared


def _of_command(shown: _Help, shared: Sections) -> str:
    """Return a command's help without the shared options, and a line that names these and the exit codes."""
    own, also = {}, []
    for title, rows in shown.sections.items():
        common = [row for row in rows if row in shared.get(title, ())]
        own[title] = [row for row in rows if row not in common]
        whole = len(common) > 1 and common == shared[title]
        also += [title] if whole else [f"`{name}`" for name, _ in common if "--help" not in name]
    codes = ", ".join(code for code, _ in own.pop(_EXIT_CODES))
    listed = f"Also: {', '.join(also)}. " if also else ""
    return f"```text\n{shown.text(own)}\n```\n\n{listed}Exit codes: {codes}.\n"


def main() -> int:
    """Write the page."""
    argparse.ArgumentParser(description="Write docs/reference/commands.md from the help of the commands.").parse_args()
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(reference())
    return 0


if __name__ == "__main__":
    sys.exit(main())
