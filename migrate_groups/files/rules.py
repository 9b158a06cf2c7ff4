"""What the columns of a table may hold, whatever the kind of its file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What the cells of a column must look like, and the type that they are cast to.

    pattern: a regular expression for the whole cell; "" takes any text. in_range: what no pattern can say.
    nullable: whether an empty cell is null (an error otherwise). keeps_empty: an empty cell is a value of its own.
    least, most: the range of the values, of numbers and moments.
    """

    kind: pa.DataType
    expected: str
    pattern: str = ""
    in_range: Callable[[str], bool] = lambda cell: True
    nullable: bool = False
    keeps_empty: bool = False
    least: Any = None
    most: Any = None

    def complaint(self, cell: str) -> str | None:
        """Return what is wrong with a cell, None where nothing is."""
        if cell == "":
            return None if self.nullable or self.keeps_empty else f"is empty; expected {self.expected}"
        if (not self.pattern or re.fullmatch(self.pattern, cell)) and self.in_range(cell):
            return None
        return f"is {cell[:60]!r}; expected {self.expected}"

    def cast(self, cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """Return the typed column, None where a cell is not as expected."""
        if self.keeps_empty:
            return cells
        filled = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
        # pyarrow takes more for a number or a time; texts are looked at below.
        spelled = pa.types.is_string(self.kind) or pc.all(_matches(filled, self.pattern), min_count=0).as_py()
        if not spelled:
            return None
        try:
            typed = filled.cast(self.kind)
        except pa.ArrowInvalid:
            return None
        return None if self.first_wrong(typed) is not None else typed

    def first_wrong(self, values: pa.ChunkedArray) -> int | None:
        """Return the index of the first typed value that no text could stand for, None where there is none."""
        wrong = [] if self.nullable else [pc.is_null(values)]
        if self.least is not None:
            bounds = [pa.scalar(bound, self.kind) for bound in (self.least, self.most)]
            wrong += [pc.less(values, bounds[0]), pc.greater(values, bounds[1])]
        elif not self.keeps_empty:
            wrong.append(pc.equal(values, ""))
            if self.pattern:
                wrong.append(pc.invert(_matches(values, self.pattern)))
        found = [index for each in wrong if (index := pc.index(each, value=True).as_py()) >= 0]
        return min(found, default=None)


def name(*, nullable: bool) -> Column:
    """Take any text; empty is null."""
    return Column(kind=pa.string(), expected="a name", nullable=nullable)


def topic() -> Column:
    """Take what Kafka takes as the name of a topic."""
    return Column(
        kind=pa.string(), pattern="[a-zA-Z0-9._-]{1,249}", expected="a topic: letters, digits, '.', '_' and '-'"
    )


def free_text() -> Column:
    """Take any text; empty is a value of its own, and not null."""
    return Column(kind=pa.string(), expected="any text", keeps_empty=True)


def number(*, bits: int, nullable: bool) -> Column:
    """Take a whole number ≥ 0 in plain digits: a spreadsheet's ``1.2E+09`` or ``1,000`` is refused."""
    most = 2 ** (bits - 1) - 1
    return Column(
        kind=pa.int32() if bits == 32 else pa.int64(),
        pattern="[0-9]{1,19}",
        in_range=lambda cell: int(cell) <= most,
        least=0,
        most=most,
        expected=f"a whole number from 0 to {most}",
        nullable=nullable,
    )


def timestamp(*, nullable: bool) -> Column:
    """Take an instant as RFC 3339 in UTC, down to microseconds."""
    return Column(
        kind=pa.timestamp("us", tz="UTC"),
        pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?Z",
        in_range=_is_instant,
        least=datetime.min.replace(tzinfo=UTC),
        most=datetime.max.replace(tzinfo=UTC),
        expected="a time such as 2026-11-20T21:24:55.123456Z",
        nullable=nullable,
    )


def _is_instant(cell: str) -> bool:
    try:
        datetime.fromisoformat(cell)
    except ValueError:
        return False
    return True


def _matches(values: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    return pc.match_substring_regex(values, f"\\A(?:{pattern})\\z")
