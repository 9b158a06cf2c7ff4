"""Draw the main table of a result as CSV (RFC 4180): a line of headings, then one line for each row.

Numbers have neither separators nor units. A value that is not known is empty.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from migrate_groups.errors import UsageError
from migrate_groups.show.result import UNKNOWN, Column, Result
from migrate_groups.text import FORMULA, one_line


def draw(result: Result) -> str:
    """Return the main table of a result as CSV. Raises `UsageError` if the result has no table."""
    if result.main is None:
        raise UsageError("--format csv shows a table, and this result has none: pass --format table or json")
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(column.heading for column in result.main.columns)
    writer.writerows([_cell(column, row) for column in result.main.columns] for row in result.main.rows)
    return stream.getvalue()


def _cell(column: Column[Any], row: Any) -> object:
    value, text = column.value(row), column.text(row)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if text == UNKNOWN != value:
        return ""
    # A spreadsheet must not run a name as a formula, and a terminal must not interpret it.
    return re.sub(FORMULA, r"'\1", one_line(text))
