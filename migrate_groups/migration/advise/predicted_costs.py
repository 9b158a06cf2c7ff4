"""Advise whether to split a shared consumer group, and predict what a split costs.

Both start from costs that a Spark job measured in the log of ``__consumer_offsets``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.applications import EAGER_ASSIGNORS, KIP_848
from migrate_groups.model.groups import CONNECT_CLIENT
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.advice_result import SharedCost

_HEARTBEAT = 5.0
"""The seconds between two heartbeats of a KIP-848 member by default (``group.consumer.heartbeat.interval.ms``)."""

_LOOK = 0.001
"""If applications stood still because of others for less than this share of the time, no change is suggested."""

_UNEVEN = 2.0
"""If the busiest member consumed at least this many times the mean of the members, the advice says so."""


class Predicted(NamedTuple):
    """The predicted seconds in which partitions of an application have no owner after a split, as a range.

    - low: if its members are back as early after a restart as the log allows.
    - high: if each restart takes as long as in the shared group; in a KIP-848 group, if each start waits for a
      heartbeat.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """A consumer group, what sharing it costs each application, and what to do about it.

    - advice: what to do, as text for users.
    - predicted: by application, the seconds in which its partitions would have no owner if it did not share the group.
      Applications without a prediction are left out.
    """

    group: str
    applications: tuple[SharedCost, ...]
    advice: str
    predicted: Mapping[str, Predicted]

    @property
    def stood_still(self) -> float | None:
        """The most seconds for which one application stood still when members of other applications joined or left.

        None: not known for any application.
        """
        return max((each.stood_still for each in self.applications if each.stood_still is not None), default=None)


def judge_costs(rows: Iterable[SharedCost], now: datetime, delay: timedelta | None) -> tuple[GroupCost, ...]:
    """Return the cost of sharing each group and the advice about it; the highest cost is first.

    rows: what sharing a group costs one application. now: the end of the measured time. delay:
    ``group.initial.rebalance.delay.ms``; None: not known.
    """
    by_group = groupby(sorted(rows, key=lambda row: row.group), lambda row: row.group)
    found = (_judged(group, tuple(of_group), now, delay) for group, of_group in by_group)
    return tuple(sorted(found, key=lambda each: (-(each.stood_still or 0), -len(each.applications), each.group)))


def alone(
    row: SharedCost, delay: timedelta | None, *, restarts: int | None = None, times: float = 1.0
) -> Predicted | None:
    """Predict the seconds in which an application's partitions would have no owner if it did not share the group.

    - row: what sharing the group cost the application.
    - delay: ``group.initial.rebalance.delay.ms``; None: not known.
    - restarts: how often all members of the application restart together; None: as often as measured.
    - times: the ratio of the predicted period to the measured period; 2.0: twice as long.

    Returns None if ``delay`` or the duration of a restart is needed and not known.
    """
    # Rebalances that other applications begin cost nothing any more; those that single members begin cost as much as
    # before. docs/evidence/performance.md#advise has the measurements.
    again = row.replaced if restarts is None else restarts
    single = max((row.outage or 0) - (row.restart_outage or 0), 0) * times
    if again and not row.replaced:
        return None
    if row.assignor == KIP_848:
        # A KIP-848 group does not wait for `delay`. But the first member gets all partitions, and the second may get
        # its partitions only with the first member's next heartbeat.
        each = (row.restart_outage or 0) / (row.replaced or 1)
        wait = max(_HEARTBEAT, row.single_most or 0) if len(row.clients) > 1 else 0.0
        return _predicted(again * each, again * each + (again + 1) * wait)
    if not again:
        return _predicted(single, single)
    if delay is None:
        return None
    # After a restart of all members, a classic group waits for `delay` once the first member has joined, and once more
    # if another member joins meanwhile. How long the restart itself takes is known only as a range: the members were
    # gone for at least `restart_gone`, and the rest of `restart_outage` they may have waited for others.
    waits = single + again * delay.total_seconds() * (2 if len(row.clients) > 1 else 1)
    least, most = (again * (each or 0) / row.replaced for each in (row.restart_gone, row.restart_outage))
    return _predicted(waits + least, waits + most)


def _predicted(low: float, high: float) -> Predicted:
    """Return a prediction with both durations rounded to milliseconds."""
    return Predicted(round(low, 3), round(high, 3))


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
    if any(each.startswith(CONNECT_CLIENT) for each in clients):
        return "nothing to split: it belongs to a Connect sink"
    if any(row.regex for row in found.applications):
        return "not known: a member subscribes by a regular expression, whose topics only advise without --log shows"
    load = "".join(f"; {each}" for each in _load(found.applications))
    nothing = "nothing to split" if load else "nothing to do"
    more = load + more
    if first.applications < 2:
        return f"{nothing}: one application{load}"
    if first.assignor not in EAGER_ASSIGNORS:
        return f"{nothing} as far as the log shows: {first.assignor} has no stop of all members{more}"
    share = (seconds or 0) / max((now - first.since).total_seconds(), 1)
    if share < _LOOK:
        return f"{nothing}: {seconds or 0:.1f} s stood still for others{more}"
    trigger = max(found.applications, key=lambda row: row.caused)
    parts = [
        f"look: {seconds:.1f} s ({share:.1%}) stood still for others",
        f"{trigger.application} began {trigger.caused:,} of {counted(first.rebalances, 'rebalance')}",
        "try cooperative-sticky or KIP-848 first",
    ]
    worse = [
        f"{row.application} alone would stand still {_range(expected)} for {counted(row.replaced, 'restart')}, "
        f"not {row.outage or 0:.0f} s"
        for row in found.applications
        if (expected := found.predicted.get(row.application)) and row.replaced and expected.high > (row.outage or 0)
    ]
    return "; ".join([*parts, *worse]) + more


def _load(rows: tuple[SharedCost, ...]) -> list[str]:
    """Return texts about the load: applications that don't keep up, members without a partition, uneven members."""
    behind = [
        f"{row.application} ({row.keeps_up:.0%})" for row in rows if row.best_third is not None and row.best_third < 1
    ]
    idle = [f"{row.application} ({row.idle})" for row in rows if row.idle]
    uneven = [f"{row.application} ({row.spread:.1f})" for row in rows if not row.idle and (row.spread or 0) >= _UNEVEN]
    found = {
        "not keeping up with what is produced: {}: add members, at most one for each partition, or process records "
        "faster (a split does not change this)": behind,
        "members without a partition: {}: stop them, or add partitions": idle,
        "the busiest member consumed several times the mean: {}: spread the records' keys, or the partitions": uneven,
    }
    return [text.format(some(names)) for text, names in found.items() if names]


def _range(expected: Predicted) -> str:
    low, high = round(expected.low), round(expected.high)
    return f"about {low} s" if low == high else f"about {low} to {high} s"
