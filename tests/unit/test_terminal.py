"""Names are shown unchanged on a terminal and in a pipe, so reviewers approve the real names."""

from __future__ import annotations

import io
import re
from operator import itemgetter

import pytest

from migrate_groups.cli import console
from migrate_groups.cli.terminal import Terminal
from migrate_groups.planning.checks.source import LINGERS
from migrate_groups.show.result import NAME, OFFSET, TEXT, Column, Kind, Result, Table

NAMES = ("pay:bank:eu", ":warning:", "b\\", "[b]", "[/b]", "app[prod]", "a\\[b]", "[link=x]y[/link]", "ends in \\\\")


def table(kinds: tuple[Kind, ...], *rows: tuple[object, ...]) -> Result:
    """Return a table with a column of each kind."""
    columns: list[Column[tuple[object, ...]]] = [
        Column("lag", kind, itemgetter(number)) for number, kind in enumerate(kinds)
    ]
    return Result(parts=[Table(columns=columns, rows=rows)])


@pytest.mark.parametrize("name", NAMES)
def test_a_table_cell_shows_a_name_unchanged(capsys, name):
    """If stdout is a pipe, a name that looks like an emoji or markup is printed unchanged, in a table and in a line."""
    console.show(table((NAME, TEXT), (name, f"group {name}")), name)
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [shown[1].split("  ")[0], shown[1].split("  ", 1)[1].strip(), shown[2]] == [name, f"group {name}", name]


@pytest.mark.parametrize("name", NAMES)
def test_a_terminal_shows_a_name_unchanged(monkeypatch, name):
    """If stdout is a terminal, a name that looks like an emoji or markup is printed unchanged."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", terminal)
    console.show(table((NAME,), (name,)))
    assert name in terminal.getvalue().splitlines()[1]


@pytest.mark.parametrize("columns", [10, 40, 80, 200])
@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
def test_no_id_is_broken_at_any_width(monkeypatch, columns, is_terminal):
    """A table row or a message is printed on one line at any width of the terminal, so an id is never broken."""
    group, member = "a group with a name " + "g" * 300, "app of big-94496255-269d-4185-b43a-4da844015e61"
    ids = table(
        (NAME, NAME, OFFSET, TEXT),
        (group, member, 12, None),
        ("größe-群", member, 7, f"something is the matter with {member}: " * 9),
    )
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    console.show(ids, f"group {group}")
    _, first, second, message = re.sub(r"\x1b\[\d*m", "", stream.getvalue()).splitlines()
    assert first == f"{group}  {member}   12"
    assert re.fullmatch(rf"größe-群 +{member}    7  (something is the matter with {member}: ?){{9}}", second)
    assert message == f"group {group}"


def test_the_clause_on_killed_members_is_said_once(capsys):
    """While groups that must stop still run, the first line says what a killed member means, and no later line does.

    A line that does not change is not repeated within 15 s.
    """
    terminal, two, one = Terminal(), f"is Stable with 2 members (a, b; {LINGERS})", f"has 1 member (a; {LINGERS})"
    for seconds, reasons in ((0, [two]), (5, [two]), (6, [one]), (21, [one])):
        terminal.still_running({"old": reasons, "older": [two], "stopped": []}, {}, seconds)
    assert capsys.readouterr().err.splitlines() == [
        f"   0 s  old is Stable with 2 members (a, b; {LINGERS})",
        "   0 s  older is Stable with 2 members (a, b)",
        "   6 s  old has 1 member (a)",
        "   6 s  older is Stable with 2 members (a, b)",
        "  21 s  old has 1 member (a)",
        "  21 s  older is Stable with 2 members (a, b)",
    ]
