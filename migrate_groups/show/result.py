"""The result of a command: tables with their columns, figures and remarks.

``terminal_text.py``, ``markdown.py`` (comments of pull requests), ``html.py`` (pages) and ``csv.py`` draw any result.
Only they escape names and texts. The JSON document of a command is a class, because programs rely on the names and
types of its fields. ``documents.py`` makes the classes of its rows from the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted

T = TypeVar("T")
S = TypeVar("S")

UNKNOWN = "-"
"""The text of a value that is not known."""


class Role(Enum):
    """What the values of a column are, which decides how a renderer escapes and aligns them.

    NAME: a name from outside, such as that of a group. WORD: one of a few words of Kafka or this tool. TEXT: a sentence
    that may contain names. FIGURE: a number or time, aligned right.
    """

    NAME = "name"
    WORD = "word"
    TEXT = "text"
    FIGURE = "figure"


class Kind(NamedTuple):
    """How the values of a column become text. unknown: the text of None. type: their type in the JSON document."""

    role: Role
    text: Callable[[Any], str] = str
    unknown: str = UNKNOWN
    type: Any = str

    def of(self, value: object) -> str:
        """Return a value as text, not yet escaped."""
        return self.unknown if value is None else self.text(value)


NAME = Kind(Role.NAME)
WORD = Kind(Role.WORD)
TEXT = Kind(Role.TEXT, unknown="")
OFFSET = Kind(Role.FIGURE, type=int)
"""A number without separators, as Kafka's tools print it, so that it can be copied."""
TEXTS = Kind(Role.TEXT, "; ".join, type=Sequence[str])
LENGTH = Kind(Role.FIGURE, lambda items: str(len(items)), type=Sequence[str])
"""The number of items in a list."""
COUNT = Kind(Role.FIGURE, "{:,}".format, type=int)
SECONDS = Kind(Role.FIGURE, "{:.1f} s".format, type=float)
SPAN = Kind(Role.FIGURE, lambda seconds: span_in_words(timedelta(seconds=seconds)), type=float)
"""A number of seconds, in its two largest units."""
SECOND = Kind(Role.WORD, "{:%Y-%m-%d %H:%M:%S}".format, type=datetime)
MINUTE = Kind(Role.FIGURE, "{:%Y-%m-%d %H:%M}".format, type=datetime)


def _range(value: Any) -> str:
    low, high = f"{value.low:.1f}", f"{value.high:.1f}"
    return f"{low} s" if low == high else f"{low} to {high} s"


EXPECTED = Kind(Role.FIGURE, _range)
"""A predicted number of seconds with ``low`` and ``high``, such as ``3.0 to 9.0 s``."""


class Groups(NamedTuple, Generic[T]):
    """How comments show a table: as one folded table for each value of its first column.

    text: returns a text about the rows of one group. order: the key by which these rows are sorted; None: as they are.
    """

    text: Callable[[Sequence[T]], str]
    order: Callable[[T], Any] | None = None


class Column(NamedTuple, Generic[T]):
    """A column of a table.

    - heading: in capitals, such as ``LOG-END-OFFSET``, in a table like those of ``kafka-consumer-groups``. Comments and
      pages show such a heading in lower case without hyphens.
      A column that has a field and no heading is only in the JSON document.
    - value: returns the value of a row; None if it is not known.
    - field: the name of the value in the JSON document; empty if it is not in there.
    - type: the type of the value there; None: that of the kind.
    - tone: returns a word for which a renderer may have a colour, such as ``exact`` or ``refuse``.
    """

    heading: str
    kind: Kind
    value: Callable[[T], Any]
    field: str = ""
    type: Any = None
    tone: Callable[[T], str] | None = None

    def text(self, row: T) -> str:
        """Return the value of a row as text, not yet escaped."""
        return self.kind.of(self.value(row))

    @property
    def title(self) -> str:
        """The heading as comments and pages show it."""
        return self.heading.lower().replace("-", " ") if self.heading.isupper() else self.heading


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[T]):
    """Rows of one kind.

    - title: shown above the table, such as the name of what it is about.
    - thing: what a row describes, in the singular, such as ``topic``.
    - found: the number of all rows, if ``rows`` does not have all of them. at_least: whether there may be even more.
    - most: the number of rows that a terminal shows; None: all.
    - elsewhere: where a terminal says that the other rows are, such as ``: the file has all``.
    - total: the texts of a last row with the sums, for a terminal. Comments and pages show `Result.figures`.
    - folded: the text on which the reader of a comment clicks to see the table; empty: the table is open.
    - groups: a comment shows one folded table for each group; None: the table is whole.
    - pressing: rows that a comment also lists before its folded tables, as a verdict, a name and a reason.
    """

    columns: Sequence[Column[T]]
    rows: Sequence[T]
    title: str = ""
    thing: str = "row"
    found: int | None = None
    at_least: bool = False
    most: int | None = None
    elsewhere: str = ""
    total: Sequence[str] = ()
    folded: str = ""
    groups: Groups[T] | None = None
    pressing: Sequence[T] = ()

    def __post_init__(self) -> None:
        shown = [column for column in self.columns if column.heading or not column.field]
        object.__setattr__(self, "columns", shown)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.rows and not self.total

    def left_out(self, shown: int) -> str:
        """Return a line such as ``… and 12 more topics`` for a table that shows this many rows; empty if all."""
        return more((len(self.rows) if self.found is None else self.found) - shown, self.thing, at_least=self.at_least)

    def by_group(self) -> Mapping[str, Sequence[T]]:
        """Return the rows of each group, by the text of the first column."""
        found: dict[str, list[T]] = {}
        for row in self.rows:
            found.setdefault(self.columns[0].text(row), []).append(row)
        if self.groups is not None and self.groups.order is not None:
            return {group: sorted(rows, key=self.groups.order) for group, rows in found.items()}
        return found


class Tone(Enum):
    """What a line says.

    PLAIN: a total or an explanation. NOTE: what to know before a table. REMARK: what to look at. HINT: likewise, and a
    part between backticks is code.
    """

    PLAIN = "plain"
    NOTE = "note"
    REMARK = "remark"
    HINT = "hint"


class Line(NamedTuple):
    """A line of text between tables."""

    text: str
    tone: Tone = Tone.PLAIN

    def phrases(self) -> list[tuple[str, bool]]:
        """Return the parts of the text, each with whether it is code."""
        parts = self.text.split("`") if self.tone is Tone.HINT else [self.text]
        return [(part, bool(number % 2)) for number, part in enumerate(parts) if part]


class Verdict(NamedTuple):
    """The overall verdict of a result: a word, and a sentence without a full stop. is_good: whether all is well."""

    word: str
    sentence: str
    is_good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command has found.

    - document: the JSON document; None if it is made elsewhere.
    - parts: tables and lines, in the order of a terminal. Comments and pages begin with the lines.
    - kind: what kind of result a page shows. title: the heading of a comment or page.
    - verdict: shown with the heading. places: names that belong to it, such as that of the cluster.
    - figures: the most important numbers, by their names, as texts.
    - details: tables that only comments show.
    - whole: the table of CSV output, if no table in ``parts`` has all of its columns and rows.
    - everything: the name of a file or option, and what it does for the reader of a comment that is cut.
    - command: the command to type next, which only comments show.
    - ids: identifiers at the end of a comment, by their names.
    """

    document: Any = None
    parts: Sequence[Table[Any] | Line] = ()
    kind: str = ""
    title: str = ""
    verdict: Verdict | None = None
    places: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)
    details: Sequence[Table[Any]] = ()
    whole: Table[Any] | None = None
    everything: tuple[str, str] | None = None
    command: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> list[Table[Any]]:
        """The tables of a terminal."""
        return [each for each in self.parts if isinstance(each, Table)]

    @property
    def main(self) -> Table[Any] | None:
        """The table of CSV output; None if there is no table."""
        return self.whole or next(iter(self.tables), None)

    @property
    def beside_main(self) -> list[Table[Any] | Line]:
        """What a terminal shows in addition to the rows of `main`, and how many rows `main` does not have."""
        rest = self.main.left_out(len(self.main.rows)) if self.main else ""
        beside = self.lines if self.whole else [each for each in self.parts if each is not self.main]
        return [*beside, *([Line(rest)] if rest else [])]

    @property
    def lines(self) -> list[Line]:
        """The lines of a terminal that are not blank."""
        return [each for each in self.parts if isinstance(each, Line) and each.text]


def more(rest: int, thing: str, *, at_least: bool = False) -> str:
    """Return a line such as ``… and 12 more topics``; empty if ``rest`` is 0 or less.

    rest: the number of things, here 12. thing: their name in the singular, here ``topic``.
    """
    return f"… and {'at least ' if at_least else ''}{counted(rest, f'more {thing}')}" if rest > 0 else ""


def counts(*names: str) -> list[Column[Any]]:
    """Return a column of numbers for each of these attributes of a row, such as ``last_lag``: last lag."""
    return [Column(name.replace("_", " "), COUNT, attrgetter(name)) for name in names]


def within(part: Callable[[S], T | None], columns: Iterable[Column[T]]) -> list[Column[S]]:
    """Return columns of a part of each row. Their values are unknown in a row without this part."""
    return [column._replace(value=partial(_of_part, part, column)) for column in columns]  # type: ignore[misc]


def _of_part(part: Callable[[S], T | None], column: Column[T], row: S) -> object:
    found = part(row)
    return None if found is None else column.value(found)


def hints(texts: Iterable[str]) -> list[Line]:
    """Return hints as lines."""
    return [Line(text, Tone.HINT) for text in texts]
