"""Helpers for texts in errors, checks, tables and CSV files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from mmap import mmap

FORMULA = "\\A('*[=+\\-@\\t\\r\uff1d\uff0b\uff0d\uff20])"
"""A regular expression for the start of a CSV cell that needs an apostrophe before it. RE2, Java and Python accept it.

A spreadsheet would run a cell that starts with ``=``, ``+``, ``-``, ``@`` (also full-width), a tab or a carriage return
as a formula. With an apostrophe before it, the spreadsheet shows the cell as text. A cell that starts with apostrophes
and such a character gets one more, so that a reader can always remove one. To add the apostrophe, replace the match by
an apostrophe and the first group."""
GUARDED = "\\A'('*[=+\\-@\\t\\r\uff1d\uff0b\uff0d\uff20])"
"""A regular expression for the start of a CSV cell to which an apostrophe was added, as `FORMULA` describes.

To remove the apostrophe, replace the match by the first group."""
ESCAPES = ((r"\u00", r"\u005cu00"), ("\0", r"\u0000"))
"""Pairs of a text and the escape that replaces it in a CSV cell. A reader must undo the pairs in reverse order.

The second pair escapes a NUL, which confluent-kafka appends to the metadata of a committed offset. Spark loses some
NULs, and Git treats a file with a NUL as binary. The first pair escapes the beginning of an escape, so that reading
restores the exact text."""

MISQUOTED = "a quote that is not CSV: a cell is quoted whole, and a quote in it is doubled"
"""The error message for a quote that `misquoted` has found."""
_COMPARED = 250
# Adjacent quoted sections are matched as one cell, because "a""b" is a cell with a quote in it.
_QUOTED = re.compile(rb'(?:"[^"]*+")++|"')


def misquoted(data: bytes | mmap) -> int | None:
    """Return the line number (from 1) of the first quote that RFC 4180 forbids in a CSV file; None if there is none."""
    if data.find(b'"') < 0:
        return None
    for found in _QUOTED.finditer(data):
        before, after = data[max(0, found.start() - 1) : found.start()], data[found.end() : found.end() + 1]
        if len(found[0]) == 1 or before not in (b"", b",", b"\n") or after not in (b"", b",", b"\n", b"\r"):
            # pyarrow and Spark would accept such quotes: they would read "1"2 as 12.
            return data[: found.start()].count(b"\n") + 1
    return None


def some(items: Collection[object], most: int = 5) -> str:
    """Return the sorted items as a text, such as ``a, b and 3 more``, with at most ``most`` items."""
    shown = ", ".join(map(str, sorted(items)[:most]))  # type: ignore[type-var]
    rest = len(items) - most
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def named(thing: str, names: Collection[object], most: int = 5) -> str:
    """Return the noun and at most ``most`` sorted names as a text, such as ``topic a`` or ``topics a and 3 more``."""
    return f"{thing}{'' if len(names) == 1 else 's'} {some(names, most)}"


def counted(number: int, thing: str) -> str:
    """Return the number with the noun ``thing``, such as ``1 partition`` or ``2,000 partitions``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def shell_command(name: str, arguments: Collection[str], options: str = "") -> str:
    """Return a command to type into a shell: its name, its arguments and its options.

    The arguments are quoted here. The caller quotes the options if necessary.
    """
    words = [name, shlex.join(arguments), options]
    if any(each.startswith("-") for each in arguments):
        # Without the --, the command would take such an argument for an option.
        words = [name, options, "--", shlex.join(arguments)]
    return " ".join(filter(None, words))


def did_you_mean(typed: Iterable[str], known: Iterable[str], likeness: float = 0.6) -> str:
    """Return a question such as ``did you mean a or b?`` with up to 3 known names that are similar to the typed names.

    The result is empty if no known name is similar. likeness: the lowest similarity, from 0 to 1.
    """
    from difflib import get_close_matches  # slow, and rarely needed

    # Only beginnings are compared, because comparing takes quadratic time, and a group's name may have 32,767 bytes.
    by_start: dict[str, list[str]] = {}
    for name in known:
        by_start.setdefault(name.lower()[:_COMPARED], []).append(name)
    near = [
        name
        for each in typed
        for start in get_close_matches(each.lower()[:_COMPARED], by_start, cutoff=likeness)
        for name in by_start[start]
    ]
    return f"did you mean {' or '.join(dict.fromkeys(near[:3]))}?" if near else ""


def one_line(text: str) -> str:
    r"""Return the text with unprintable characters, such as line breaks, escaped (``\n``, ``\u202e``)."""
    # A group's name may have any characters, for instance some that control a terminal.
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def is_unicode(text: str) -> bool:
    """Return whether the text can be encoded as UTF-8."""
    # Arguments from a shell may contain bytes that are not UTF-8. Python makes surrogates of them.
    return not any("\ud800" <= each <= "\udfff" for each in text)


def brief(text: str) -> str:
    """Return an error message on one line, cut to 4,000 characters. Words of 200 or more characters are cut to 160."""
    # A group's name may have 32,767 bytes.
    return cut(re.sub(r"\S{200,}", lambda word: cut(word[0], 160), one_line(text)), 4000)


def cut(text: str, most: int) -> str:
    """Return the text on one line, cut to at most ``most`` characters. A text that was cut ends with ``…``."""
    text = one_line(text[: most + 1])  # escaping never shortens a text, so the rest would be cut off
    return text if len(text) <= most else text[: most - 1] + "…"
