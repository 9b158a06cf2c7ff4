"""Validate the columns of a snapshot file, CSV or Parquet, and cast the cells of a CSV file to their types."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from migrate_groups.schema import MOST_INT32, MOST_INT64, MOST_TEXT, Column, Kind
from migrate_groups.snapshots.snapshot import COLUMNS, OLDEST_UNCONSUMED, SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The valid values of a column of a snapshot file, and the type that its cells are cast to.

    kind: the Arrow type of the column. in_range: returns whether the text of a cell is in the valid range. least, most:
    the smallest and the largest valid value of a number or a timestamp; None for other columns.
    """

    column: Column
    kind: pa.DataType
    in_range: Callable[[str], bool] = lambda cell: True
    least: Any = None
    most: Any = None

    @property
    def keeps_empty(self) -> bool:
        """Whether an empty cell in CSV is an empty text, and not null."""
        return self.column.kind is Kind.TEXT

    def complaint(self, cell: str) -> str | None:
        """Return why a cell is invalid, such as ``is empty; expected a name``; None if the cell is valid."""
        form = self.column.form
        if cell == "":
            return None if self.column.nullable or self.keeps_empty else f"is empty; expected {form.expected}"
        if (not form.pattern or re.fullmatch(form.pattern, cell)) and self.in_range(cell):
            return None
        # A person who writes out 1E+05 gets another offset than the one that the spreadsheet has rounded.
        rounded = "; a spreadsheet has rounded it: write the file again" if re.fullmatch(_ROUNDED, cell) else ""
        return f"is {cell[:60]!r}; expected {form.expected}{rounded}"

    def cast(self, cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """Return text cells cast to the type of the column; None if any cell is invalid.

        Empty cells become null if `keeps_empty` is false.
        """
        if self.keeps_empty:
            return cells if self.first_wrong(cells) is None else None
        filled = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
        # The pattern is checked before the cast, because pyarrow would also cast other notations of a number or a time.
        # It is not checked here for string columns, because `first_wrong` does that.
        pattern = self.column.form.pattern
        if not (pa.types.is_string(self.kind) or pc.all(_matches(filled, pattern), min_count=0).as_py()):
            return None
        try:
            typed = filled.cast(self.kind)
        except pa.ArrowInvalid:
            return None
        return None if self.first_wrong(typed) is not None else typed

    def first_wrong(self, values: pa.ChunkedArray) -> int | None:
        """Return the index of the first invalid value in a column of the right type; None if all values are valid."""
        wrong = [] if self.column.nullable else [pc.is_null(values)]
        if self.least is not None:
            bounds = [pa.scalar(bound, self.kind) for bound in (self.least, self.most)]
            wrong += [pc.less(values, bounds[0]), pc.greater(values, bounds[1])]
        elif self.keeps_empty:
            wrong.append(pc.greater(pc.binary_length(values), MOST_TEXT))
        else:
            wrong.append(pc.equal(values, ""))
            if pattern := self.column.form.pattern:
                wrong.append(pc.invert(_matches(values, pattern)))
        found = [index for each in wrong if (index := pc.index(each, value=True).as_py()) >= 0]
        return min(found, default=None)


def rule(column: Column) -> Rule:
    """Return the valid values and the Arrow type of a column of a snapshot file."""
    kind = SCHEMA.field(column.name).type if column.name in COLUMNS else OLDEST_UNCONSUMED.type
    if column.kind is Kind.TIMESTAMP:
        least, most = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        return Rule(column=column, kind=kind, in_range=_is_instant, least=least, most=most)
    if column.kind is Kind.TEXT:
        return Rule(column=column, kind=kind, in_range=lambda cell: len(cell.encode()) <= MOST_TEXT)
    if column.kind in _MOST:
        most_number = _MOST[column.kind]
        return Rule(column=column, kind=kind, in_range=lambda cell: int(cell) <= most_number, least=0, most=most_number)
    return Rule(column=column, kind=kind)


_ROUNDED = r"[0-9]([.,][0-9]*)?[Ee]\+[0-9]+"
_MOST = {Kind.INT32: MOST_INT32, Kind.INT64: MOST_INT64}


def _is_instant(cell: str) -> bool:
    try:
        datetime.fromisoformat(cell)
    except ValueError:
        return False
    return True


def _matches(values: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    return pc.match_substring_regex(values, f"\\A(?:{pattern})\\z")
