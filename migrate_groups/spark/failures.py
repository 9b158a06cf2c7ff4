"""Turn a failure of Spark into a one-line error. If a cell is invalid, the error names the file and the line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException

from migrate_groups.errors import InvalidInput, MigrateGroupsError, was_interrupted
from migrate_groups.text import MISQUOTED

PROBLEM_FIELDS = ("file", "column", "value", "expected")
"""The keys of the JSON object that describes a wrong cell: the file as a URI, the column, the value (absent if the cell
is empty), and what was expected. Without a column, the value is the text of the whole row."""

_UNREADABLE = re.compile(r"Encountered error while reading file (\S+?)\.\s")
_CAUSE = re.compile(r"Caused by: (?:[\w$.]+: )?(.+)")
_CALLED = re.compile(r"\AAn error occurred while calling [^\n]*\n?:? ?")
_CLASSES = re.compile(r"\A(?:(?:\w+\.)+[\w$]+: )*(?:\w+\.)+(?=[\w$]+: )")
_FULL = "No space left on device"
_ENDED = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError")


@contextmanager
def readable_failures(path: str | None = None) -> Iterator[None]:
    """In a ``with`` block, turn a failure of Spark into an error of this package with a message of one line.

    path: the path that the block reads or writes, for the message.

    Raises:
        InvalidInput: an input file, the path or a full disk caused the failure.
        KeyboardInterrupt: the failure followed an interrupt (Ctrl-C).
        MigrateGroupsError: any other failure of Spark.
    """
    try:
        yield
    except Exception as error:
        if not is_of_spark(error):
            raise
        # After an interrupt PySpark calls its JVM once more, and this call may fail.
        if was_interrupted(error):
            raise KeyboardInterrupt from None
        raise _readable(error, path) from error


def first_line(error: Exception) -> str:
    """Return the cause of a Spark error as one line, for messages."""
    if type(error).__name__ in _ENDED:
        return "Spark's Java process has ended: it was killed, or ran out of memory; free some memory and try again"
    causes = _CAUSE.findall(str(error))
    lines = _CALLED.sub("", str(error)).strip().splitlines() or [type(error).__name__]
    return _CLASSES.sub("", causes[-1] if causes else lines[0]).strip()


def is_of_spark(error: Exception) -> bool:
    """Return whether PySpark or its connection to the JVM raised the error."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j", "grpc") or type(error).__name__ in _ENDED


def _readable(error: Exception, path: str | None) -> MigrateGroupsError:
    if sentence := _sentence(error):
        return InvalidInput(sentence)
    if _FULL in str(error):
        return InvalidInput(
            "no disk space left where Spark writes: free some in the output folder, or in SPARK_LOCAL_DIRS"
        )
    if path is not None and type(error).__name__ not in _ENDED:
        return InvalidInput(f"{path}: Spark can't read or write it: {first_line(error)}")
    return MigrateGroupsError(f"Spark failed: {first_line(error)}")


def local_file(uri: str) -> Path | None:
    """Return the local path of a ``file:`` URI; None for any other URI."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def shown(uri: str) -> str:
    """Return a file's URI as messages show it: a ``file:`` URI as a path, any other URI unchanged."""
    return str(local_file(uri) or uri)


Cell = tuple[str | None, str | None]
"""The column and the value of a wrong cell, as in `PROBLEM_FIELDS`. The value is None if the cell is empty. If the
column is None, the row has the wrong number of cells, and the value is the text of the whole row."""


def first_lines(path: Path | None, cells: Collection[Cell]) -> dict[Cell, int]:
    """Return, for each wrong cell of a CSV file, the line number of the first row with this cell.

    A cell is a pair (column, value), or (None, beginning of the row) for a row with the wrong number of cells. Cells
    that are not found are left out.
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
    # The text of a long row is cut off, so only the beginning of its last cell is compared.
    *whole, last = next(csv.reader((value or "").splitlines(keepends=True)), [""])
    return len(row) != len(header) and row[: len(whole)] == whole and "".join(row[len(whole) :]).startswith(last)


def _sentence(error: Exception) -> str | None:
    if isinstance(error, PySparkException):
        parameters = error.getMessageParameters() or {}
        if error.getCondition() == "USER_RAISED_EXCEPTION":
            return _own_message(parameters["errorMessage"])
        if error.getCondition() == "PATH_NOT_FOUND":
            return f"{shown(parameters['path'])}: no such file or folder: check the path"
    if unreadable := _UNREADABLE.search(str(error)):
        file = shown(unreadable[1])
        if "CSV header does not conform" in str(error):
            return (
                f"{file}: its header differs from the header of another file in the folder: pass the files one by one"
            )
        if "Unescaped quote character" in str(error):
            return f"{file}: {MISQUOTED}"
        causes = _CAUSE.findall(str(error))
        return f"{file}: can't be read{f': {causes[-1]}' if causes else ''}"
    return None


def _own_message(message: str) -> str:
    if not message.startswith("{"):
        return message
    problem = json.loads(message)
    file, column, value = problem["file"], problem.get("column"), problem.get("value")
    # Spark knows the file but not the line.
    line = first_lines(local_file(file), [(column, value)]).get((column, value))
    place = shown(file) + (f", line {line}" if line else "")
    if column is None:
        return f"{place}: expected {problem['expected']}"
    return f"{place}: {column} is {'empty' if value is None else repr(value)}, expected {problem['expected']}"
