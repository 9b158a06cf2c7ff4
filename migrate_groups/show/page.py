"""The Jinja environment of the HTML pages, and curves of lag over time as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from migrate_groups.show import verdicts as in_words
from migrate_groups.text import counted, cut, one_line

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import Moment

_MOST_CHARACTERS = 250
# The size of a curve in SVG units; the page scales it to its width.
_WIDTH, _HEIGHT = 600, 120


class Curve(NamedTuple):
    """The lag over time of a group, or of a group on one topic, as SVG paths.

    highest: the highest known lag; None if no lag is known. line, area, dots: the curve, the area below it, and a dot
    for each known lag. The paths have a gap where the lag is not known.
    """

    moments: Sequence[Moment]
    highest: int | None
    line: str
    area: str
    dots: str


def drawn(timeline: Sequence[Moment], most: int) -> dict[str, Any]:
    """Return the variables of the Jinja template ``curves.html``, which draws curves of lag over time.

    most: the highest number of curves. Curves of whole groups come before curves of single topics.
    """
    history = in_words.history(timeline)
    times = [moment.taken_at for moment in timeline]
    return {
        "times": (min(times), max(times)) if times else None,
        "curves": [_curve(moments, min(times), max(times)) for moments in history[:most]],
        "more_curves": len(history) - most,
        "width": _WIDTH,
        "height": _HEIGHT,
    }


def environment() -> Environment:
    """Return the Jinja environment for the templates of HTML pages. It escapes HTML in all values."""
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
        "number": in_words.number,
        "tally": in_words.tally,
        "span": in_words.span,
        "counted": counted,
        "time": lambda moment: f"{moment:%Y-%m-%d %H:%M:%S}",
        "share": _share,
    }
    return made


def _share(value: float, most: float) -> str:
    """Return ``value`` in percent of ``most`` as text, such as ``12.50``, for the length of a bar.

    A negative ``value`` gives ``0.00``.
    """
    # A lag is below 0 if the log end offset was read before a commit at a higher offset.
    return f"{100 * max(value, 0) / most:.2f}" if most > 0 else "0"


def _curve(moments: Sequence[Moment], first: datetime, last: datetime) -> Curve:
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
    return Curve(
        moments,
        highest,
        # "h0" draws a line of length 0, because otherwise a point without neighbours would be invisible.
        line=" ".join(f"M{points[0][0]:.1f} {points[0][1]:.1f}h0{_to(points[1:])}" for points in known),
        area=" ".join(f"M{points[0][0]:.1f} {_HEIGHT}{_to(points)}L{points[-1][0]:.1f} {_HEIGHT}Z" for points in known),
        dots=" ".join(f"M{x:.1f} {y:.1f}h0" for x, y in chain.from_iterable(known)),
    )


def _to(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"L{x:.1f} {y:.1f}" for x, y in points)
