"""The HTML page of ``advise --log``: what sharing a group costs the applications, and which split is suggested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from migrate_groups.migration.advise.predicted_costs import GroupCost
from migrate_groups.migration.advise.propose import Suggestion
from migrate_groups.show import html
from migrate_groups.show.costs import of_group, result
from migrate_groups.show.curves import drawn
from migrate_groups.spark.offsets_topic.advice_result import Costs, Generation, Subscription
from migrate_groups.spark.reconciliation.result import Moment
from migrate_groups.text import some

_MOST_GROUPS, _MOST_CURVES = 50, 50
_MOST_MEMBERS, _MOST_TOPICS = 40, 20
_WIDTH, _HEIGHT = 600, 24


class _Map(NamedTuple):
    """A table of the subscriptions of a group: client ids are the rows, topics the columns.

    members: for each client id, the number of its application (from 1), and whether it subscribes to each topic. more:
    a text that says how many client ids and topics are left out.
    """

    topics: Sequence[str]
    members: Sequence[tuple[str, int, Sequence[bool]]]
    more: str


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar on the timeline of a group, for one generation.

    at, width: the start and the length, in percent of the timeline. colour: the number (from 1) of the application
    whose members ended the generation; 0 if several applications or none did. text: an explanation.
    """

    at: float
    width: float
    colour: int
    text: str


class _Timeline(NamedTuple):
    """The ended generations of a group as bars, in order.

    since: when the first generation began. until: when the last generation ended.
    """

    since: datetime
    until: datetime
    bars: Sequence[_Bar]


def page(found: Costs, groups: Sequence[GroupCost], lag: Sequence[Moment], suggested: Mapping[str, Suggestion]) -> str:
    """Return what sharing consumer groups costs applications, as one self-contained HTML page.

    lag: the lag of the groups over time. suggested: by group name, the suggested client settings or split.
    """
    shared = [each for each in groups if len(each.applications) > 1][:_MOST_GROUPS]
    return html.page(
        "advice.html",
        result(found, groups),
        shared=shared,
        timelines={each.group: _timeline(each, found.generations) for each in shared},
        maps={each.group: _map(each, found.subscriptions) for each in shared},
        most={each.group: _most(each) for each in shared},
        evidence={each.group: of_group(each) for each in shared},
        suggested=suggested,
        bar_width=_WIDTH,
        bar_height=_HEIGHT,
        **drawn(
            [each for each in lag if each.topic is None],
            _MOST_CURVES,
            "history (migrate-groups history)",
            lambda each: each.group,
        ),
    )


def _most(group: GroupCost) -> float:
    """Return the highest number of seconds in a group's bar chart of costs; 0 if it shows none."""
    known = [each or 0 for row in group.applications for each in (row.stood_still, row.outage)]
    return max([*known, *(each.high for each in group.predicted.values())], default=0)


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
    """Return the ended generations of a group as bars; None if no generation has ended."""
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
