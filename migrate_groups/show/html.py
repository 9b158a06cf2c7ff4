"""Draw a result as an HTML page, which has no script and loads nothing from the network.

``templates/page.html`` draws any result. The other templates extend it with pictures.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from migrate_groups.show.result import COUNT, EXPECTED, SECOND, SECONDS, Column, Line, Result, Role
from migrate_groups.snapshots.times import milliseconds_of, rfc_3339
from migrate_groups.text import counted, cut, one_line, some

_MOST_CHARACTERS, _MOST_IN_TEXT = 250, 2_000


def page(template: str, result: Result, **pictures: Any) -> str:
    """Return a result as an HTML page. pictures: what the template needs besides the result."""
    return _environment().get_template(template).render(result=result, **pictures)


@cache  # with the templates, which Jinja compiles when they are first used
def _environment() -> Environment:
    """Return the Jinja environment of the templates. It escapes HTML in all values."""
    made = Environment(
        autoescape=True,
        loader=PackageLoader("migrate_groups.show"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "name": lambda text: cut(text, _MOST_CHARACTERS),
        "visible": one_line,
        "number": COUNT.of,
        "counted": counted,
        "time": SECOND.of,
        "moment": lambda time: rfc_3339(milliseconds_of(time)),
        "names": some,
        "seconds": SECONDS.of,
        "expected": EXPECTED.of,
        "share": _share,
        "word": lambda text: text.replace(" ", "-"),
        "line": _line,
    }
    made.globals |= {"cell": _cell, "heading": _heading}
    return made


def _heading(column: Column[Any]) -> Markup:
    side = Markup(' class="n"') if column.kind.role is Role.FIGURE else ""
    return Markup('<th scope="col"{}>{}</th>').format(side, column.title)


def _cell(column: Column[Any], row: Any) -> Markup:
    text = column.text(row)
    if column.tone is not None:
        return Markup('<td><span class="chip {}">{}</span></td>').format(column.tone(row).replace(" ", "-"), text)
    if column.kind.role is Role.FIGURE:
        return Markup('<td class="n">{}</td>').format(text)
    if column.kind.role is Role.TEXT:
        return Markup('<td class="reason">{}</td>').format(cut(text, _MOST_IN_TEXT))
    if column.kind.role is Role.NAME and column.value(row) is not None:
        return Markup("<td><code>{}</code></td>").format(cut(text, _MOST_CHARACTERS))
    return Markup("<td>{}</td>").format(cut(text, _MOST_CHARACTERS))


def _line(line: Line) -> Markup:
    """Return a line as HTML. The parts of a hint between backticks become code."""
    phrases = ((one_line(part), is_code) for part, is_code in line.phrases())
    return Markup().join(Markup("<code>{}</code>").format(part) if is_code else part for part, is_code in phrases)


def _share(value: float, most: float) -> str:
    """Return ``value`` in percent of ``most`` as text, such as ``12.50``, for the length of a bar.

    A negative ``value`` gives ``0.00``.
    """
    # A lag is below 0 if the log end offset was read before a commit at a higher offset.
    return f"{100 * max(value, 0) / most:.2f}" if most > 0 else "0"
