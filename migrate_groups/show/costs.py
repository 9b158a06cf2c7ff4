"""What it costs applications to share one consumer group (``advise --log``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from migrate_groups.migration.advise.predicted_costs import GroupCost, Predicted
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
from migrate_groups.spark.offsets_topic.advice_result import Costs, SharedCost
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
