"""The result of ``reconcile`` as one HTML page, which has no script and loads nothing from the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.show import page
from migrate_groups.show import verdicts as in_words

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import GroupTopic, Reconciliation

# More bars and curves are hard to read. The tables in the page have more rows, the tables on disk have all.
_MOST_TOPICS = 25
_MOST_GROUPS = 40
_MOST_CURVES = 24


class _Group(NamedTuple):
    """The topics of one consumer group, with their lag as bars.

    first: the group's first row. drawn: the rows with bars. rest: the number of rows without bars. most: the highest
    lag in ``drawn``.
    """

    first: GroupTopic
    drawn: Sequence[GroupTopic]
    rest: int
    most: int


def report(found: Reconciliation) -> str:
    """Return the result of a reconciliation as an HTML page."""
    groups = [_group(rows) for rows in in_words.by_group(found.summary)]
    return (
        page.environment()
        .get_template("report.html")
        .render(
            found=found,
            conclusion=in_words.conclusion(found),
            meanings=in_words.MEANING,
            where=in_words.where(found),
            timed=in_words.is_timed(found),
            groups=groups[:_MOST_GROUPS],
            more_groups=len(groups) - _MOST_GROUPS,
            **page.drawn(found.timeline, _MOST_CURVES),
            table="lag_timeline",
        )
    )


def _group(rows: Sequence[GroupTopic]) -> _Group:
    drawn = rows[:_MOST_TOPICS]
    most = max(lag or 0 for row in drawn for lag in (row.lag_before, row.lag_after))
    return _Group(rows[0], drawn, len(rows) - len(drawn), most)
