"""Judge what the log says about shared groups: whether a split would help, and what it would cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.advice_job import SharedCost

_EAGER = ("range", "roundrobin", "sticky")
_HEARTBEAT = 5.0
"""The seconds between two heartbeats of a KIP-848 member by default (``group.consumer.heartbeat.interval.ms``)."""

KIP_848 = "consumer"
"""The assignor of a KIP-848 group, as the job names it."""

_LOOK = 0.001
"""The share of the time that an application stood still for others, from which on a group is worth a look."""


class Predicted(NamedTuple):
    """The seconds without an owner that are expected after a split, and how many they may be at most."""

    seconds: float
    at_most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """A group, what sharing costs its applications, and what to do about it.

    predicted: for each application the seconds without an owner that the same restarts would have had in a group of its
    own; none if the brokers' delay is not known and it restarted.
    """

    group: str
    applications: tuple[SharedCost, ...]
    advice: str
    predicted: Mapping[str, Predicted]

    @property
    def stood_still(self) -> float | None:
        """The seconds that the application hit hardest stood still for others, at most; None: not known."""
        return max((each.stood_still for each in self.applications if each.stood_still is not None), default=None)


def judge_costs(rows: Iterable[SharedCost], now: datetime, delay: timedelta | None) -> tuple[GroupCost, ...]:
    """Return the groups, worst first. delay: ``group.initial.rebalance.delay.ms`` of the brokers; None: not known."""
    by_group = groupby(sorted(rows, key=lambda row: row.group), lambda row: row.group)
    found = (_judged(group, tuple(of_group), now, delay) for group, of_group in by_group)
    return tuple(sorted(found, key=lambda each: (-(each.stood_still or 0), -len(each.applications), each.group)))


def alone(
    row: SharedCost, delay: timedelta | None, *, restarts: int | None = None, times: float = 1.0
) -> Predicted | None:
    """Return the seconds that an application would be without an owner in a group of its own; None: not known.

    restarts: how often all its members restart together; None: as often as in the shared group. times: how long the
    predicted time is, as a multiple of the time in the shared group.

    Others no longer stop it. What its single members cost stays. A restart of all members leaves the group Empty. A
    classic group then waits: once the delay after the first member joins, and once more if another joins meanwhile.
    The time that the members take to come back is added, as far as the log shows it; it is at most their outage in the
    shared group. A KIP-848 group does not wait, but after each start a partition that moves on to the second member
    may wait for its heartbeat. docs/advise.md#predictions has the measurements.
    """
    again = row.replaced if restarts is None else restarts
    single = max((row.outage or 0) - (row.restart_outage or 0), 0) * times
    if again and not row.replaced:
        return None
    if row.assignor == KIP_848:
        each = (row.restart_outage or 0) / (row.replaced or 1)
        wait = max(_HEARTBEAT, row.single_most or 0) if len(row.clients) > 1 else 0.0
        return _predicted(again * each, again * each + (again + 1) * wait)
    if not again:
        return _predicted(single, single)
    if delay is None:
        return None
    waits = single + again * delay.total_seconds() * (2 if len(row.clients) > 1 else 1)
    least, most = (again * (each or 0) / row.replaced for each in (row.restart_gone, row.restart_outage))
    return _predicted(waits + least, waits + most)


def _predicted(seconds: float, at_most: float) -> Predicted:
    """Return predicted seconds, to the millisecond, as the log has them."""
    return Predicted(round(seconds, 3), round(at_most, 3))


def _judged(group: str, rows: tuple[SharedCost, ...], now: datetime, delay: timedelta | None) -> GroupCost:
    predicted = {row.application: found for row in rows if (found := alone(row, delay)) is not None}
    made = GroupCost(group=group, applications=rows, advice="", predicted=predicted)
    return GroupCost(group=group, applications=rows, advice=_advice(made, now), predicted=predicted)


def _advice(found: GroupCost, now: datetime) -> str:
    first, seconds = found.applications[0], found.stood_still
    clients = [client for row in found.applications for client in row.clients]
    compacted = f"; {counted(first.missing, 'offset')} compacted away: earlier rebalances are not counted"
    more = compacted if first.missing else ""
    if first.assignor == "stream":
        return "nothing to split: the topics of a Kafka Streams application belong together"
    if found.group.startswith("connect-") or any(each.startswith("connector-consumer-") for each in clients):
        return "nothing to split: it belongs to a Connect sink"
    if any(row.regex for row in found.applications):
        return "not known: a member subscribes by a regular expression, whose topics the log does not have"
    if first.applications < 2:
        return "nothing to do: one application"
    if first.assignor not in _EAGER:
        return f"nothing to do as far as the log shows: {first.assignor} has no stop of all members{more}"
    share = (seconds or 0) / max((now - first.since).total_seconds(), 1)
    if share < _LOOK:
        return f"nothing to do: at most {seconds or 0:.1f} s stood still for others{more}"
    trigger = max(found.applications, key=lambda row: row.caused)
    parts = [
        f"look: at most {seconds:.1f} s ({share:.1%}) stood still for others",
        f"{trigger.application} began {trigger.caused:,} of {counted(first.rebalances, 'rebalance')}",
        "try cooperative-sticky or KIP-848 first",
    ]
    worse = [
        f"{row.application} alone would stand still {_range(expected)} for {counted(row.replaced, 'restart')}, "
        f"not {row.outage or 0:.0f} s"
        for row in found.applications
        if row.replaced and (expected := found.predicted.get(row.application))
    ]
    return "; ".join([*parts, *worse]) + more


def _range(expected: Predicted) -> str:
    seconds, at_most = round(expected.seconds), round(expected.at_most)
    return f"about {seconds} s" if seconds == at_most else f"about {seconds} s (at most {at_most} s)"
