"""Names are shown unchanged on a terminal and in a pipe, so that reviewers approve the real names."""

from __future__ import annotations

import io

import pytest

from migrate_groups.cli import console
from migrate_groups.show.tables import cell, table

NAMES = ("pay:bank:eu", ":warning:", "b\\", "[b]", "[/b]", "app[prod]", "a\\[b]", "[link=x]y[/link]", "ends in \\\\")


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_shows_a_name_as_it_is(capsys, name):
    """A name in a table or a line gets no emoji, no markup and no escapes in a pipe."""
    names = table("group", "reason")
    names.add_row(cell(name), cell(f"group {name}"))
    console.show(names, name)
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [shown[1].split("  ")[0], shown[1].split("  ", 1)[1].strip(), shown[2]] == [name, f"group {name}", name]


@pytest.mark.parametrize("name", NAMES)
def test_a_terminal_shows_a_name_as_it_is(monkeypatch, name):
    """A name is shown unchanged on a terminal, too."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", terminal)
    names = table("group")
    names.add_row(cell(name))
    console.show(names)
    assert name in terminal.getvalue().splitlines()[1]
