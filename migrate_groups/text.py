"""Small pieces of the sentences that errors, checks and tables are made of."""

from __future__ import annotations

import re
from collections.abc import Collection
from mmap import mmap

FORMULA = "\\A('*[=+\\-@\\t\\r\uff1d\uff0b\uff0d\uff20])"
"""What a spreadsheet would take for a formula at the beginning of a cell, as a regular expression for RE2, Java and
Python, full-width signs among it; and what looks guarded already. It is guarded by being replaced by ``'`` and its
first group."""
GUARDED = "\\A'('*[=+\\-@\\t\\r\uff1d\uff0b\uff0d\uff20])"
"""What is guarded so: replaced by its first group, it is as it was."""
ESCAPES = ((r"\u00", r"\u005cu00"), ("\0", r"\u0000"))
"""What a CSV can't hold (a NUL, which confluent-kafka adds to metadata: Spark loses some, and Git takes the file for
binary) and what is written in place of it, one after the other; read the other way round. The first makes it exact."""

MISQUOTED = "a quote that is not CSV: a cell is quoted whole, and a quote in it is doubled"
"""What is wrong where `misquoted` finds a line."""
# Two sections side by side are one with a quote in it: "a""b".
_QUOTED = re.compile(rb'(?:"[^"]*+")++|"')


def misquoted(data: bytes | mmap) -> int | None:
    """Return the line of the first quote of a CSV file that is none of RFC 4180's, None where all are.

    A cell is quoted whole, and a quote in it is doubled. pyarrow and Spark read ``"1"2`` as 12, and ``"o"ld`` as old or
    as it is.
    """
    if data.find(b'"') < 0:
        return None
    for found in _QUOTED.finditer(data):
        before, after = data[max(0, found.start() - 1) : found.start()], data[found.end() : found.end() + 1]
        if len(found[0]) == 1 or before not in (b"", b",", b"\n") or after not in (b"", b",", b"\n", b"\r"):
            return data[: found.start()].count(b"\n") + 1
    return None


def some(items: Collection[object], most: int = 5) -> str:
    """Return the first items in order, comma separated, and how many more there are."""
    shown = ", ".join(map(str, sorted(items)[:most]))  # type: ignore[type-var]
    rest = len(items) - most
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def counted(number: int, thing: str) -> str:
    """Return ``1 partition``, ``2,000 partitions``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    r"""Return text that can't break a line or steer a terminal: what is not printable stands as ``\n``, ``\u202e``.

    A group may have any name, control characters and bidirectional overrides included.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def is_unicode(text: str) -> bool:
    """Return whether text can be written as UTF-8: what the shell hands over may have bytes that are none."""
    return not any("\ud800" <= each <= "\udfff" for each in text)


def brief(text: str) -> str:
    """Return an error on one line, in which no name or path goes on for pages: a group's may have 32,767 bytes."""
    return cut(re.sub(r"\S{200,}", lambda word: cut(word[0], 160), one_line(text)), 4000)


def cut(text: str, most: int) -> str:
    """Return text on one line, of at most ``most`` characters; the last is ``…`` where there were more."""
    text = one_line(text[: most + 1])  # escaping never shortens: what follows is cut off
    return text if len(text) <= most else text[: most - 1] + "…"
