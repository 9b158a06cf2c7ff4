"""What sharing a group costs, as an HTML page: maps of members and topics, timelines, bars, lag, and the split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from migrate_groups.migration.advise.costs import GroupCost
from migrate_groups.migration.advise.cures import Cure
from migrate_groups.show.after_split import expected
from migrate_groups.show.costs import LIMITS, TITLES, figures, seconds
from migrate_groups.show.page import drawn, environment
from migrate_groups.spark.offsets_topic.advice_job import Costs, Generation, Subscription
from migrate_groups.spark.reconciliation.result import Moment
from migrate_groups.text import some

_MOST_GROUPS, _MOST_CURVES = 50, 50
_MOST_MEMBERS, _MOST_TOPICS = 40, 20
_WIDTH, _HEIGHT = 600, 24


class Drawn(NamedTuple):
    """What the page suggests for a group. spec: the split as the text of a spec; empty: none, see why_not."""

    cures: Sequence[Cure]
    spec: str
    why_not: str


class _Map(NamedTuple):
    """The map of a group: for each client id, its application's number from 1 and whether it reads each topic."""

    topics: Sequence[str]
    members: Sequence[tuple[str, int, Sequence[bool]]]
    more: str


@dataclass(frozen=True, slots=True)
class _Bar:
    """A generation in the drawing of a group's time: position and width in percent, its cause, and a text."""

    at: float
    width: float
    colour: int
    text: str


class _Timeline(NamedTuple):
    """The generations of a group that have ended, in their order, from the first begin to the last end."""

    since: datetime
    until: datetime
    bars: Sequence[_Bar]


def page(found: Costs, groups: Sequence[GroupCost], lag: Sequence[Moment], suggested: Mapping[str, Drawn]) -> str:
    """Return the advice as one HTML file without external parts. lag: of the groups over time, as in ``history``."""
    shared = [each for each in groups if len(each.applications) > 1][:_MOST_GROUPS]
    return (
        environment()
        .get_template("advice.html")
        .render(
            groups=groups,
            shared=shared,
            timelines={each.group: _timeline(each, found.generations) for each in shared},
            maps={each.group: _map(each, found.subscriptions) for each in shared},
            most={each.group: _most(each) for each in shared},
            suggested=suggested,
            titles=TITLES,
            figures=figures,
            seconds=seconds,
            expected=expected,
            limits=LIMITS,
            bar_width=_WIDTH,
            bar_height=_HEIGHT,
            where=lambda each: each.group,
            **drawn([each for each in lag if each.topic is None], _MOST_CURVES),
            table="history (migrate-groups history)",
        )
    )


def _most(group: GroupCost) -> float:
    """Return the longest bar of a group, in seconds."""
    known = [each or 0 for row in group.applications for each in (row.stood_still, row.outage)]
    return max([*known, *(each.seconds for each in group.predicted.values())], default=0)


def _map(group: GroupCost, subscriptions: Sequence[Subscription]) -> _Map:
    names = [each.application for each in group.applications]
    own = [each for each in subscriptions if each.group == group.group]
    topics = [topic for row in group.applications for topic in row.topics]
    shown = topics[:_MOST_TOPICS]
    members = [
        (each.client_id, names.index(each.application) + 1, [topic in each.topics for topic in shown])
        for each in own[:_MOST_MEMBERS]
        if each.application in names
    ]
    left = [(len(own) - _MOST_MEMBERS, "more client ids"), (len(topics) - len(shown), "more topics")]
    more = ", ".join(f"{number:,} {what}" for number, what in left if number > 0)
    return _Map(shown, members, f"… and {more} in subscriptions.parquet" if more else "")


def _timeline(group: GroupCost, generations: Sequence[Generation]) -> _Timeline | None:
    """Return the generations of a group over time. The colour is the application that ended it; 0: none or several."""
    own = [each for each in generations if each.group == group.group and each.until is not None]
    if not own:
        return None
    own.sort(key=lambda each: each.since)
    first, last = own[0].since, max(each.until or each.since for each in own)
    seconds = (last - first).total_seconds() or 1
    names = [each.application for each in group.applications]

    def place(moment: datetime | None) -> float:
        return 100 * ((moment or last) - first).total_seconds() / seconds

    bars = [
        _Bar(
            place(each.since),
            place(each.until) - place(each.since),
            names.index(each.caused_by[0]) + 1 if len(each.caused_by) == 1 else 0,
            f"generation {each.generation}, ended by {some(each.caused_by) or 'no member'}",
        )
        for each in own
    ]
    return _Timeline(first, last, bars)
