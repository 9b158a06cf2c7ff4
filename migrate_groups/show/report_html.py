"""A reconciliation as one HTML file that needs nothing beside it: no script, no network, no font.

The template escapes whatever it is given (Jinja's autoescape). Names go through its filter ``name`` besides, which
makes control characters visible and cuts what is too long to read. The same reconciliation makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from migrate_groups.show import verdicts as in_words
from migrate_groups.text import counted, cut, one_line

if TYPE_CHECKING:
    from migrate_groups.spark.result import GroupTopic, Moment, Reconciliation

# What a person still looks at; the tables in the file have more, and those on disk have all.
_MOST_TOPICS = 25
_MOST_GROUPS = 40
_MOST_CURVES = 24
_MOST_CHARACTERS = 250
# Of a curve, in units of the drawing, which is as wide as the page lets it be.
_WIDTH, _HEIGHT = 600, 120


class _Group(NamedTuple):
    """One group: the topics that are drawn, how many more it has, and the lag that fills a bar."""

    first: GroupTopic
    drawn: Sequence[GroupTopic]
    rest: int
    most: int


class _Curve(NamedTuple):
    """Lag over time, as SVG paths: ``line`` and ``dots`` with a gap where lag is not known, ``area`` below the line."""

    moments: Sequence[Moment]
    highest: int | None
    line: str
    area: str
    dots: str


def report(found: Reconciliation) -> str:
    """Return the page."""
    groups = [_group(rows) for rows in in_words.by_group(found.summary)]
    history = in_words.history(found.timeline)
    times = [moment.taken_at for moment in found.timeline]
    return (
        _environment()
        .get_template("report.html")
        .render(
            found=found,
            conclusion=in_words.conclusion(found),
            meanings=in_words.MEANING,
            where=in_words.where(found),
            timed=in_words.is_timed(found),
            groups=groups[:_MOST_GROUPS],
            more_groups=len(groups) - _MOST_GROUPS,
            times=(min(times), max(times)) if times else None,
            curves=[_curve(moments, min(times), max(times)) for moments in history[:_MOST_CURVES]],
            more_curves=len(history) - _MOST_CURVES,
            width=_WIDTH,
            height=_HEIGHT,
        )
    )


def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("migrate_groups.show"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "name": lambda text: cut(text, _MOST_CHARACTERS),
        "visible": one_line,
        "number": in_words.number,
        "tally": in_words.tally,
        "span": in_words.span,
        "counted": counted,
        "time": lambda moment: f"{moment:%Y-%m-%d %H:%M:%S}",
        "share": _share,
    }
    return environment


def _group(rows: Sequence[GroupTopic]) -> _Group:
    drawn = rows[:_MOST_TOPICS]
    most = max(lag or 0 for row in drawn for lag in (row.lag_before, row.lag_after))
    return _Group(rows[0], drawn, len(rows) - len(drawn), most)


def _share(lag: int, most: int) -> str:
    """Return the length of a bar in percent; lag below 0 (an offset read after the log's end) has none."""
    return f"{100 * max(lag, 0) / most:.2f}" if most > 0 else "0"


def _curve(moments: Sequence[Moment], first: datetime, last: datetime) -> _Curve:
    highest = in_words.highest(moments)
    seconds = (last - first).total_seconds() or 1
    known = [
        [
            (
                _WIDTH * (moment.taken_at - first).total_seconds() / seconds,
                _HEIGHT * (1 - max(moment.lag or 0, 0) / max(highest or 0, 1)),
            )
            for moment in run
        ]
        for is_known, run in groupby(moments, lambda moment: moment.lag is not None)
        if is_known
    ]
    return _Curve(
        moments,
        highest,
        # Nothing drawn to the right of a point makes it visible where it stands alone.
        line=" ".join(f"M{points[0][0]:.1f} {points[0][1]:.1f}h0{_to(points[1:])}" for points in known),
        area=" ".join(f"M{points[0][0]:.1f} {_HEIGHT}{_to(points)}L{points[-1][0]:.1f} {_HEIGHT}Z" for points in known),
        dots=" ".join(f"M{x:.1f} {y:.1f}h0" for x, y in chain.from_iterable(known)),
    )


def _to(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"L{x:.1f} {y:.1f}" for x, y in points)
