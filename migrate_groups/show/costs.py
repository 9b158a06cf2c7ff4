"""What it costs applications to share one consumer group (``advise --log``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from migrate_groups.migration.advise.predicted_costs import GroupCost, Predicted
from migrate_groups.migration.advise.propose import Suggestion
from migrate_groups.show import html
from migrate_groups.show.curves import drawn
from migrate_groups.show.documents import Document, Part, filled, object_type
from migrate_groups.show.result import (
    COUNT,
    EXPECTED,
    NAME,
    OFFSET,
    SECONDS,
    TEXT,
    Column,
    Groups,
    Kind,
    Line,
    Result,
    Role,
    Table,
)
from migrate_groups.spark.offsets_topic.advice_result import Costs, Generation, SharedCost, Subscription
from migrate_groups.spark.reconciliation.result import Moment
from migrate_groups.text import counted, some

_MOST_ROWS = 200
_FIGURE = Kind(Role.FIGURE)
_SHARE = Kind(Role.FIGURE, "{:.0%}".format)
_RATIO = Kind(Role.FIGURE, "{:.1f}".format)
_Application, _Predicted = object_type(SharedCost), object_type(Predicted)
_LIMITS = (
    "Times are measured between records: from a member's last commit to the record of the next generation. The real "
    "time is longer by what a client takes to get its assignment after that record. It is shorter, by up to a commit "
    "interval, if the member does not commit when its partitions are revoked. "
    "Deployments count as rebalances. In cooperative groups only the partitions of members that left are counted. In "
    "KIP-848 groups a partition's time without an owner is counted, and no rebalances; commits that failed and records "
    "that came twice are in no log."
)


class _Cost(NamedTuple):
    """What sharing a group costs an application, and what is predicted for a group of its own; None: not known."""

    row: SharedCost
    predicted: Predicted | None


class CostlyGroup(Part, frozen=True, kw_only=True):
    """A consumer group, and what sharing it costs its applications (members that share topics).

    - stood_still: for how many seconds the most affected application consumed nothing because members of other
      applications joined or left, measured between records; null if not known.
    - predicted: for each application, for how many seconds its partitions would be assigned to no member after a split.
    """

    group: str
    advice: str
    stood_still: float | None
    predicted: dict[str, _Predicted]  # type: ignore[valid-type]  # made from a named tuple, as the one that follows
    applications: tuple[_Application, ...]  # type: ignore[valid-type]


class CostsDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/costs"):
    """What ``advise --log`` prints: what sharing a group costs its applications (members that share topics).

    found: the number of applications in the log of ``__consumer_offsets``. groups: sorted by ``stood_still``, the
    highest first.
    """

    found: int
    groups: tuple[CostlyGroup, ...]


_GROUP: list[Column[GroupCost]] = [
    Column("GROUP", NAME, lambda each: each.group),
    Column("APPLICATIONS", OFFSET, lambda each: each.applications[0].applications),
    Column("REBALANCES", OFFSET, lambda each: each.applications[0].rebalances),
    Column("STOOD-STILL", SECONDS, lambda each: each.stood_still),
    Column("ADVICE", TEXT, lambda each: each.advice),
]
_OF_GROUP: Column[_Cost] = Column("group", NAME, lambda each: each.row.group)
_APPLICATION: list[Column[_Cost]] = [
    Column("application", NAME, lambda each: each.row.application),
    Column("rebalances caused", _FIGURE, lambda each: f"{each.row.caused:,} of {each.row.rebalances:,}"),
    Column("stood still for others", SECONDS, lambda each: each.row.stood_still),
    Column("own outage", SECONDS, lambda each: each.row.outage),
    Column("restarted together", COUNT, lambda each: each.row.replaced),
    Column("keeps up", _SHARE, lambda each: each.row.keeps_up),
    Column("idle members", COUNT, lambda each: each.row.idle),
    Column("busiest to mean", _RATIO, lambda each: each.row.spread),
    Column("compacted away", COUNT, lambda each: each.row.missing),
    Column("after a split", EXPECTED, lambda each: each.predicted),
    Column("topics", TEXT, lambda each: some(each.row.topics)),
]


def result(found: Costs, groups: Sequence[GroupCost]) -> Result:
    """Return what sharing each group costs, in the order of ``groups``, and for a shared group each application.

    A terminal shows the first 200 groups.
    """
    document = CostsDocument(found=found.found, groups=tuple(filled(CostlyGroup, each) for each in groups))
    return Result(
        document=document,
        kind="Advice",
        title=f"Advice on {counted(len(groups), 'consumer group')}",
        parts=[
            Table(columns=_GROUP, rows=groups, thing="group", most=_MOST_ROWS),
            Line(_LIMITS),
        ],
        details=[
            Table(
                columns=[_OF_GROUP, *_APPLICATION],
                rows=[cost for each in groups if len(each.applications) > 1 for cost in _costs(each)],
                thing="application",
                groups=Groups(lambda _: ""),
            )
        ],
    )


def of_group(group: GroupCost) -> Table[_Cost]:
    """Return a table of what sharing a group costs each of its applications."""
    return Table(columns=_APPLICATION, rows=_costs(group), thing="application")


def _costs(group: GroupCost) -> list[_Cost]:
    return [_Cost(row, group.predicted.get(row.application)) for row in group.applications]


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
