"""The terminal, Markdown and HTML draw any result, and only they escape its names and texts."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import example, given

from migrate_groups.show import html, markdown
from migrate_groups.show.result import COUNT, NAME, TEXT, WORD, Column, Groups, Line, Result, Table, Tone, Verdict
from migrate_groups.text import one_line
from tests.support.comments import NAME as NAMES
from tests.support.comments import Page
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


def test_a_comment_begins_with_what_is_pressing_and_folds_the_rest():
    """In Markdown, remarks and pressing rows come before the folded tables. A table of groups is folded by group."""
    comment = Page(text := markdown.draw(result("g")))
    assert comment.items == ["note g", "code proves nothing", "1,234 refuse: g"]
    assert comment.summaries == ["2 checks", "g: 1 rows", "other: 1 rows"]
    assert text.index("- **1,234**") < text.index("<details>")
    assert text.rstrip().endswith("intent `g`")
