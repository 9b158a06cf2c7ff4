"""The terminal, Markdown, HTML and CSV draw any result, and only they escape its names and texts."""

from __future__ import annotations

import csv as std_csv
import io
from html.parser import HTMLParser

import pytest
import typer.main
from hypothesis import example, given

from migrate_groups.cli.registry import COMMANDS, command_line
from migrate_groups.errors import UsageError
from migrate_groups.show import csv, html, markdown
from migrate_groups.show.result import (
    COUNT,
    NAME,
    SECONDS,
    TEXT,
    WORD,
    Column,
    Groups,
    Line,
    Result,
    Table,
    Tone,
    Verdict,
)
from migrate_groups.text import one_line
from tests.support.comments import NAME as NAMES
from tests.support.comments import Page
from tests.support.connected import APPLY, MIGRATE, Connected
from tests.support.drawn import on_a_terminal

COLUMNS: list[Column[tuple[str, int | None]]] = [
    Column("GROUP-NAME", NAME, lambda row: row[0]),
    Column("LAG", COUNT, lambda row: row[1]),
    Column("STATE", WORD, lambda row: "refuse", tone=lambda row: "refuse"),
    Column("REASON", TEXT, lambda row: row[0]),
]


def result(name: str) -> Result:
    rows = [(name, 1234), ("other", None)]
    return Result(
        title=f"Title {name}",
        verdict=Verdict("broken", f"sentence {name}", is_good=False),
        places={"Cluster": name},
        figures={"groups": "2"},
        parts=[
            Line(f"note {name}", Tone.NOTE),
            Table(title=f"table {name}", columns=COLUMNS, rows=rows, thing="group", found=5, most=1),
            Table(columns=COLUMNS[1:], rows=rows, folded="2 checks", pressing=rows[:1]),
            Line("`code` proves nothing", Tone.HINT),
            Line(f"total {name}"),
        ],
        details=[Table(columns=COLUMNS, rows=rows, groups=Groups(lambda of: f"{len(of)} rows"))],
        ids={"intent": name},
    )


def rows(printed: str) -> list[list[str]]:
    """Return the rows of a CSV."""
    return [*std_csv.reader(io.StringIO(printed, newline=""), strict=True)]


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)


@given(name=NAMES)
@example(name="<b>`x`</b> [bold]|*_@joe #1 {{ 7 * 7 }}")
def test_a_name_adds_no_markup_to_any_format(name):
    """Wherever a name is in a result, it stays text: one line on a terminal, no further element in Markdown or HTML."""
    hostile, plain = result(f"<{name}>"), result("plain")
    shown = on_a_terminal(hostile)
    assert len(shown.splitlines()) == len(on_a_terminal(plain).splitlines())
    assert all(line.isprintable() for line in shown.split("\n"))
    assert one_line(f"table <{name}>") in shown
    assert Page(markdown.draw(hostile)).tags == Page(markdown.draw(plain)).tags
    assert Tags(html.page("page.html", hostile)).found == Tags(html.page("page.html", plain)).found
    assert rows(csv.draw(hostile))[1:2] == [[one_line(f"<{name}>"), "1234", "refuse", one_line(f"<{name}>")]]


def test_each_format_shows_the_same_rows_and_says_how_many_are_left_out():
    """A terminal has Kafka's headings, documents have the same in words; an unknown number is a dash everywhere."""
    terminal = on_a_terminal(result("g")).splitlines()
    assert terminal[1:5] == [
        "table g",
        "GROUP-NAME    LAG  STATE   REASON",
        "g           1,234  refuse  g",
        "… and 4 more groups",
    ]
    comment = Page(text := markdown.draw(result("g")))
    assert comment.tables[0][1:] == [["total", "2"]]
    assert comment.tables[1][1:] == [["g", "1,234", "refuse", "g"], ["other", "-", "refuse", "other"]]
    assert "| group name | lag | state | reason |" in text
    assert "… and 3 more groups" in text
    page = html.page("page.html", result("g"))
    assert '<th scope="col">group name</th><th scope="col" class="n">lag</th>' in page
    assert '<td><code>other</code></td><td class="n">-</td><td><span class="chip refuse">refuse</span></td>' in page
    assert "… and 3 more groups" in page
    assert rows(csv.draw(shown := result("g"))) == [
        ["GROUP-NAME", "LAG", "STATE", "REASON"],
        ["g", "1234", "refuse", "g"],
        ["other", "", "refuse", "other"],
    ]
    assert shown.beside_main[-1] == Line("… and 3 more groups")


def test_a_comment_begins_with_what_is_pressing_and_folds_the_rest():
    """In Markdown, remarks and pressing rows come before the folded tables. A table of groups is folded by group."""
    comment = Page(text := markdown.draw(result("g")))
    assert comment.items == ["note g", "code proves nothing", "1,234 refuse: g"]
    assert comment.summaries == ["2 checks", "g: 1 rows", "other: 1 rows"]
    assert text.index("- **1,234**") < text.index("<details>")
    assert text.rstrip().endswith("intent `g`")


def test_csv_has_plain_numbers_and_no_formulas():
    """In CSV a number has no separator and no unit, an unknown value is empty, and a name is no spreadsheet formula."""
    columns: list[Column[tuple[str, int | None, float | None]]] = [
        Column("group", NAME, lambda row: row[0]),
        Column("lag", COUNT, lambda row: row[1]),
        Column("waited", SECONDS, lambda row: row[2]),
    ]
    given = [("a,b", 1234567, 3.25), ('=say("x")', None, None), ("two\nlines", -1, 0.0)]
    printed = csv.draw(Result(parts=[Line("note"), Table(columns=columns, rows=given, most=1)]))
    assert printed.startswith('group,lag,waited\r\n"a,b",1234567,3.25\r\n')
    assert rows(printed)[2:] == [['\'=say("x")', "", ""], ["two\\nlines", "-1", "0.0"]]


def test_a_result_without_a_table_is_refused_as_csv():
    """A result that is only text can't be CSV: it raises `UsageError`."""
    with pytest.raises(UsageError, match="this result has none"):
        csv.draw(Result(parts=[Line("stopped: old")]))


def test_every_command_with_a_table_takes_format_csv():
    """Each command whose result is a table has the value ``csv`` of ``--format``.

    The other commands refuse it before they do anything.
    """
    commands = typer.main.get_group(command_line()).commands
    kinds = {name: each.type for name in COMMANDS for each in commands[name].params if "--format" in each.opts}
    without = {name for name, kind in kinds.items() if "csv" not in getattr(kind, "choices", ())}
    assert without == {
        *("snapshot", "filter", "split", "export", "rewind", "verify", "watch", "delete-group", "sandbox", "demo")
    }


@pytest.mark.parametrize(
    ("command", "first", "beside"),
    [
        (("list",), ["old", "Empty", "classic", "0", "1", "5", ""], "1 group, 0 members, 1 topic, total lag 5"),
        (("describe", "old"), ["old", "t", "0", "5", "10", "5", "", "", "", "0", ""], "total lag 5 in 1 partition"),
        (("advise",), ["old", "Empty", "classic", "", "", "0", "", "1", "5"], "1 group: 1 not known"),
        ((*APPLY, "--dry-run"), ["new", "t", "0", "", "5", "create"], "the offsets are from this cluster"),
        ((*MIGRATE, "--dry-run"), ["new", "t", "0", "", "5", "create"], "old has no members"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_command_prints_its_main_table_as_csv(tmp_path, monkeypatch, command, first, beside):
    """With ``--format csv`` a command prints the rows of its main table on stdout, and the rest of it on stderr."""
    cli = Connected(tmp_path, monkeypatch)
    done = cli(*command, "--format", "csv")
    head, row, *more = rows(done.stdout)
    assert (len(head), row[: len(first)], more) == (len(row), first, [])
    assert beside in done.stderr


def test_a_write_prints_only_its_plan_as_csv(tmp_path, monkeypatch):
    """With ``--format csv`` a write prints the partitions of its plan on stdout; the outcome goes to stderr."""
    cli = Connected(tmp_path, monkeypatch)
    cli(*MIGRATE)
    done = cli("rollback", "split.toml.run", "--yes", "--format", "csv")
    assert rows(done.stdout) == [
        ["group", "topic", "partition", "before", "after", "change"],
        ["new", "t", "0", "5", "", "delete"],
    ]
    assert "1 partition: 1 confirmed" in done.stderr


def test_the_csv_of_describe_is_no_snapshot(tmp_path, monkeypatch):
    """A command that takes a snapshot refuses the CSV that ``describe`` has printed, and says how to take one."""
    cli = Connected(tmp_path, monkeypatch)
    (tmp_path / "described.csv").write_text(cli("describe", "old", "--format", "csv").stdout)
    done = cli("apply", "described.csv", "--to-group", "new", "--yes", code=2)
    assert "not a snapshot: take a snapshot with migrate-groups snapshot" in done.stderr


def test_a_file_on_stdout_leaves_no_place_for_csv(tmp_path, monkeypatch):
    """``-o -`` and ``--format csv`` both write to stdout, and are refused together."""
    command = ("compare", "old", "--to-bootstrap-server", "b:1", "-o", "-", "--format", "csv")
    done = Connected(tmp_path, monkeypatch)(*command, code=2)
    assert "-o - and --format csv both write to stdout" in done.stderr
