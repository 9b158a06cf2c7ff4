"""Curves of lag over time, as inline SVG in HTML pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from migrate_groups.show.result import NAME, SECOND, UNKNOWN, Column, Table, counts

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import Moment

# The size of a curve in SVG units; the page scales it to its width.
_WIDTH, _HEIGHT = 600, 120


class Curve(NamedTuple):
    """The lag over time of a group, or of a group on one topic, as SVG paths.

    name: of the group. highest: the highest known lag; None if no lag is known. line, area, dots: the curve, the area
    below it, and a dot for each known lag. The paths have a gap where the lag is not known. marks: the number of marked
    times. marked: a vertical line at each.
    """

    name: str
    moments: Sequence[Moment]
    highest: int | None
    line: str
    area: str
    dots: str
    marks: int
    marked: str


def drawn(
    timeline: Sequence[Moment],
    most: int,
    file: str,
    name: Callable[[Moment], str | None],
    marks: Callable[[Moment], Sequence[datetime]] = lambda moment: (),
) -> dict[str, Any]:
    """Return the variables of the Jinja template ``curves.html``, which draws curves of lag over time.

    most: the highest number of curves. Curves of whole groups come before curves of single topics. file: the table with
    every moment. name: returns the name of a moment's group. marks: returns the times to mark in a moment's curve.
    """
    series = by_series(timeline)
    times = [moment.taken_at for moment in timeline]
    columns: list[Column[Moment]] = [
        Column("group", NAME, name),
        Column("topic", NAME._replace(unknown="(all)"), lambda moment: moment.topic),
        Column("moment (UTC)", SECOND, lambda moment: moment.taken_at),
        *counts("partitions", "lag", "produced", "consumed"),
    ]
    return {
        "times": (min(times), max(times)) if times else None,
        "curves": [
            _curve(name(moments[0]) or UNKNOWN, moments, min(times), max(times), marks(moments[0]))
            for moments in series[:most]
        ],
        "more_curves": len(series) - most,
        "moments": Table(columns=columns, rows=[*chain.from_iterable(series[:most])], thing="moment"),
        "file": file,
        "width": _WIDTH,
        "height": _HEIGHT,
    }


def by_series(timeline: Iterable[Moment]) -> list[list[Moment]]:
    """Return the lag over time as lists: one for each whole group, then one for each topic of each group.

    The lists of whole groups, and the lists of topics, are sorted by their highest lag, the highest first.
    """
    series: dict[tuple[str | None, str, str | None], list[Moment]] = {}
    for moment in timeline:
        series.setdefault((moment.cluster_id, moment.group, moment.topic), []).append(moment)
    return sorted(series.values(), key=lambda moments: (moments[0].topic is not None, -(highest(moments) or 0)))


def highest(moments: Iterable[Moment]) -> int | None:
    """Return the highest known lag over time; None if no lag is known."""
    return max((moment.lag for moment in moments if moment.lag is not None), default=None)


def _curve(name: str, moments: Sequence[Moment], first: datetime, last: datetime, marks: Sequence[datetime]) -> Curve:
    most = highest(moments)
    seconds = (last - first).total_seconds() or 1

    def place(time: datetime) -> float:
        return _WIDTH * max((time - first).total_seconds(), 0) / seconds

    known = [
        [
            (
                place(moment.taken_at),
                _HEIGHT * (1 - max(moment.lag or 0, 0) / max(most or 0, 1)),
            )
            for moment in run
        ]
        for is_known, run in groupby(moments, lambda moment: moment.lag is not None)
        if is_known
    ]
    return Curve(
        name,
        moments,
        most,
        # "h0" draws a line of length 0, because otherwise a point without neighbours would be invisible.
        line=" ".join(f"M{points[0][0]:.1f} {points[0][1]:.1f}h0{_to(points[1:])}" for points in known),
        area=" ".join(f"M{points[0][0]:.1f} {_HEIGHT}{_to(points)}L{points[-1][0]:.1f} {_HEIGHT}Z" for points in known),
        dots=" ".join(f"M{x:.1f} {y:.1f}h0" for x, y in chain.from_iterable(known)),
        marks=len(marks),
        marked=" ".join(f"M{place(time):.1f} 0V{_HEIGHT}" for time in marks),
    )


def _to(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"L{x:.1f} {y:.1f}" for x, y in points)
