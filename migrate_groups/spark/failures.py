"""Turns what Spark throws because of an input into `InvalidInput`: one line that names the file, and the line in it.

A job checks its rows with ``raise_error``: the message is a sentence, or a JSON object (`PROBLEM_FIELDS`) when a cell
of a file is to blame. Spark knows the file but not the line, so a file on this machine is then searched for it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException

from migrate_groups.errors import InvalidInput

PROBLEM_FIELDS = ("file", "column", "value", "expected")
"""The keys of a cell's problem: the file as a URI, the column and the value (absent if the cell is empty; no column
means that the value is the row as a whole), and what was expected."""

_UNREADABLE = re.compile(r"Encountered error while reading file (\S+?)\.\s")
_CAUSE = re.compile(r"Caused by: (?:[\w$.]+: )?(.+)")


@contextmanager
def readable_failures() -> Iterator[None]:
    """Within it, a failure of Spark that an input file causes is raised as `InvalidInput`; others pass."""
    try:
        yield
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        raise InvalidInput(sentence) from error


def local_file(uri: str) -> Path | None:
    """The path of a ``file:`` URI as Spark writes it, None for any other file system."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def shown(uri: str) -> str:
    """A file's URI as a person writes it: a local file by its path."""
    return str(local_file(uri) or uri)


Cell = tuple[str | None, str | None]
"""A column and a value of it, as in `PROBLEM_FIELDS`."""


def first_lines(path: Path | None, cells: Collection[Cell]) -> dict[Cell, int]:
    """The line on which the first row with each of these cells starts (no column: the row of a wrong length itself).

    One pass over the file. What nobody can know is left out: only a ``.csv`` on this machine has lines.
    """
    found: dict[Cell, int] = {}
    if path is None or path.suffix != ".csv" or not path.is_file():
        return found
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        wanted = [cell for cell in cells if cell[0] is None or cell[0] in header]
        start = rows.line_num + 1
        for row in rows:
            for cell in wanted:
                if cell not in found and _has(row, header, cell):
                    found[cell] = start
            if len(found) == len(wanted):
                break
            start = rows.line_num + 1
    return found


def _has(row: list[str], header: list[str], cell: Cell) -> bool:
    column, value = cell
    if column is not None:
        return len(row) == len(header) and row[header.index(column)] == (value or "")
    # the text of a long row is cut off, so its last cell as well
    *whole, last = next(csv.reader((value or "").splitlines(keepends=True)), [""])
    return len(row) != len(header) and row[: len(whole)] == whole and "".join(row[len(whole) :]).startswith(last)


def _sentence(error: Exception) -> str | None:
    if isinstance(error, PySparkException):
        parameters = error.getMessageParameters() or {}
        if error.getCondition() == "USER_RAISED_EXCEPTION":
            return _own_message(parameters["errorMessage"])
        if error.getCondition() == "PATH_NOT_FOUND":
            return f"{shown(parameters['path'])}: no such file or folder"
    if unreadable := _UNREADABLE.search(str(error)):
        file = shown(unreadable[1])
        if "CSV header does not conform" in str(error):
            return f"{file}: its header differs from that of another file beside it: pass such files one by one"
        causes = _CAUSE.findall(str(error))
        return f"{file}: can't be read{f': {causes[-1]}' if causes else ''}"
    return None


def _own_message(message: str) -> str:
    if not message.startswith("{"):
        return message
    problem = json.loads(message)
    file, column, value = problem["file"], problem.get("column"), problem.get("value")
    line = first_lines(local_file(file), [(column, value)]).get((column, value))
    place = shown(file) + (f", line {line}" if line else "")
    if column is None:
        return f"{place}: expected {problem['expected']}"
    return f"{place}: {column} is {'empty' if value is None else repr(value)}, expected {problem['expected']}"
