r"""Read and write CSV strictly: each cell is read as text and validated before it is cast.

In a file with a header, NULs are written as ``\u0000``, and texts that a spreadsheet would run as formulas get an
apostrophe before them. Reading restores the exact text.
"""

# pyarrow's own typing would accept ``0x10``, `` 12``, a byte order mark, ``NA`` and a file that was cut short
# (docs/kafka-behaviour.md#other-libraries). If a check fails, the file is scanned again with Python's `csv`, so that
# the error names the line, the column and the expected value.

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from migrate_groups.errors import InvalidInput
from migrate_groups.files.rules import Rule
from migrate_groups.text import ESCAPES, FORMULA, GUARDED, MISQUOTED, counted, misquoted

_LARGEST_CELL = 16 * 1024 * 1024


def first_row(data: bytes, name: str) -> list[str]:
    """Return the cells of the first row of a CSV file.

    data: the bytes of the file. name: its name, for errors. Raises `InvalidInput` if the file is not complete or not
    CSV.
    """
    if not data:
        raise InvalidInput(f"{name} is empty: run the command again that writes it")
    if data.startswith(b"\xef\xbb\xbf"):
        raise InvalidInput(f"{name} starts with a byte order mark; save it as plain UTF-8")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidInput(f"{name} is UTF-16; save it as UTF-8")
    if b"\0" in data:
        raise InvalidInput(f"{name} is not a CSV file: it has NUL bytes")
    if not data.endswith(b"\n"):
        raise InvalidInput(
            f"{name}: the last line does not end in a newline, so the file may be cut short: "
            "check its end, and add a newline"
        )
    if line := misquoted(data):
        raise InvalidInput(f"{name}, line {line}: {MISQUOTED}")
    for _, cells in _scan(data, name):
        return cells
    raise InvalidInput(f"{name} is empty: run the command again that writes it")


def read_columns(
    data: bytes, name: str, columns: Mapping[str, Rule], *, present: Sequence[str], has_header: bool
) -> pa.Table:
    """Return the columns of a CSV file, with their cells cast to the types of the columns.

    name: the file's name, for errors. columns: the valid values of each column, by column name. present: the names of
    the file's columns, in order. has_header: whether the first line is a header. Raises `InvalidInput`, which names the
    line, if a line or a cell is invalid.
    """
    try:
        raw = pa_csv.read_csv(
            io.BytesIO(data),
            read_options=pa_csv.ReadOptions(column_names=list(present), skip_rows=1 if has_header else 0),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(present, pa.string()),
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if not _rows_after(data, name, has_header=has_header):
            raw = pa.table({column: pa.array([], pa.string()) for column in present})
        else:
            _explain(data, name, columns, present=present, has_header=has_header, reason=str(error))
    # The apostrophes and escapes of a file with a header are undone. If a text already contained one before it was
    # written, another one was added.
    typed = {}
    for column in present:
        cells = raw[column]
        if has_header and pc.any(pc.starts_with(cells, "'")).as_py():
            cells = pc.replace_substring_regex(cells, GUARDED, r"\1")
        if has_header and ESCAPES[0][0].encode() in data:
            for plain, written in reversed(ESCAPES):
                cells = pc.replace_substring(cells, written, plain)
        cast = columns[column].cast(cells)
        if cast is None:
            _explain(
                data, name, columns, present=present, has_header=has_header, reason=f"column {column} is malformed"
            )
        typed[column] = cast
    return pa.table(typed)


def guarded(table: pa.Table) -> pa.Table:
    """Return the table with its texts made safe for CSV.

    NULs are escaped. A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    for index, column in enumerate(table.columns):
        if not pa.types.is_string(column.type):
            continue
        cells = column
        for plain, written in ESCAPES:
            if pc.any(pc.match_substring(cells, plain)).as_py():
                cells = pc.replace_substring(cells, plain, written)
        if pc.any(pc.match_substring_regex(cells, FORMULA)).as_py():
            cells = pc.replace_substring_regex(cells, FORMULA, r"'\1")
        if cells is not column:
            table = table.set_column(index, table.column_names[index], cells)
    return table


def write_rows(table: pa.Table, file: BinaryIO) -> None:
    """Write the rows of a table as CSV, without a header."""
    special = any(
        pc.any(pc.match_substring_regex(column, '[",\r\n]')).as_py()
        for column in table.columns
        if pa.types.is_string(column.type)
    )
    # "none" if no cell needs quotes, because pyarrow's "needed" would quote every text cell of the table.
    options = pa_csv.WriteOptions(include_header=False, quoting_style="needed" if special else "none")
    pa_csv.write_csv(table, file, options)


def _explain(
    data: bytes, name: str, columns: Mapping[str, Rule], *, present: Sequence[str], has_header: bool, reason: str
) -> NoReturn:
    """Raise `InvalidInput` for the first invalid line or cell of a CSV file.

    If all cells are valid, the error message has ``reason``.
    """
    for index, (line, cells) in enumerate(_scan(data, name)):
        if has_header and index == 0:
            continue
        if len(cells) != len(present):
            raise InvalidInput(
                f"{name}, line {line}: {counted(len(cells), 'column')}; expected {len(present)} ({','.join(present)})"
            )
        for column, cell in zip(present, cells, strict=True):
            complaint = columns[column].complaint(re.sub(GUARDED, r"\1", cell) if has_header else cell)
            if complaint:
                raise InvalidInput(f"{name}, line {line}: {column} {complaint}")
    raise InvalidInput(f"{name} is malformed: {' '.join(reason.split())}")


def _scan(data: bytes, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield, for each row, the number of its first line and its cells. Raises `InvalidInput` if the data is not CSV."""
    try:
        decoded = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidInput(f"{name}, line {line}: not UTF-8 text; save the file as UTF-8") from error
    csv.field_size_limit(_LARGEST_CELL)
    reader = csv.reader(io.StringIO(decoded, newline=""), strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        # Python before 3.11.4 finds a quote that is not closed here; later versions leave it to `misquoted`.
        reason = MISQUOTED if str(error) == "unexpected end of data" else f"not CSV: {error}"
        raise InvalidInput(f"{name}, line {line}: {reason}") from error


def _rows_after(data: bytes, name: str, *, has_header: bool) -> bool:
    return sum(1 for _ in zip(_scan(data, name), range(2), strict=False)) > (1 if has_header else 0)
