"""Judge what the log says about shared groups: whether a split would help, and what it would cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.advice_job import SharedCost

_LOOK = 0.001
"""The share of the time that an application stood still for others, from which on a group is worth a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """A group, what sharing costs its applications, and what to do about it.

    predicted: for each application whose members restart together, the seconds without an owner that the same time
    would have had after a split. Its group would be Empty each time, and wait.
    """

    group: str
    applications: tuple[SharedCost, ...]
    advice: str
    predicted: Mapping[str, float]

    @property
    def stood_still(self) -> float | None:
        """The seconds that the application hit hardest stood still for others, at most; None: not known."""
        return max((each.stood_still for each in self.applications if each.stood_still is not None), default=None)


def judge_costs(rows: Iterable[SharedCost], now: datetime, delay: timedelta | None) -> tuple[GroupCost, ...]:
    """Return the groups, worst first. delay: ``group.initial.rebalance.delay.ms`` of the brokers; None: not known."""
    by_group = groupby(sorted(rows, key=lambda row: row.group), lambda row: row.group)
    found = (_judged(group, tuple(of_group), now, delay) for group, of_group in by_group)
    return tuple(sorted(found, key=lambda each: (-(each.stood_still or 0), -len(each.applications), each.group)))


def _judged(group: str, rows: tuple[SharedCost, ...], now: datetime, delay: timedelta | None) -> GroupCost:
    predicted = {row.application: _alone(row, delay) for row in rows if row.replaced and delay}
    made = GroupCost(group=group, applications=rows, advice="", predicted=predicted)
    return GroupCost(group=group, applications=rows, advice=_advice(made, now), predicted=predicted)


def _alone(row: SharedCost, delay: timedelta) -> float:
    """Return the outage of an application in a group of its own.

    An Empty group waits the delay, and once more if another member joins meanwhile.
    """
    waits = 2 if len(row.clients) > 1 else 1
    return (row.outage or 0) + row.replaced * waits * delay.total_seconds()


def _advice(found: GroupCost, now: datetime) -> str:
    first, seconds = found.applications[0], found.stood_still
    if any(row.regex for row in found.applications):
        return "not known: a member subscribes by a regular expression, whose topics the log does not have"
    if first.applications < 2:
        return "nothing to do: one application"
    if first.assignor not in ("range", "roundrobin", "sticky"):
        return f"nothing to do as far as the log shows: {first.assignor} has no stop of all members"
    share = (seconds or 0) / max((now - first.since).total_seconds(), 1)
    if share < _LOOK:
        return f"nothing to do: at most {seconds or 0:.1f} s stood still for others"
    trigger = max(found.applications, key=lambda row: row.caused)
    parts = [
        f"look: at most {seconds:.1f} s ({share:.1%}) stood still for others",
        f"{trigger.application} began {trigger.caused:,} of {counted(first.rebalances, 'rebalance')}",
        "try cooperative-sticky or KIP-848 first",
    ]
    worse = [
        f"{name} alone would stand still about {alone:.0f} s, not {_outage(found, name):.0f} s"
        for name, alone in found.predicted.items()
    ]
    return "; ".join([*parts, *worse])


def _outage(found: GroupCost, application: str) -> float:
    return next(row.outage or 0 for row in found.applications if row.application == application)
