"""Compare the predicted cost of splitting a consumer group with the cost measured in ``__consumer_offsets``.

The cost for an application is the time in which its partitions have no owner: no member consumes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from migrate_groups.errors import UsageError
from migrate_groups.migration.advise.predicted_costs import Predicted, alone
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.planning.execution import Execution
    from migrate_groups.spark.offsets_topic.advice_result import SharedCost

_SHARE, _SECONDS = 0.2, 2.0
"""A prediction holds if the measured seconds are beyond its range by at most this share of them, or by at most these
seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterSplit:
    """An application before and after its consumer group was split. None means not known.

    - before: what sharing the source group cost the application.
    - groups: the target groups that took over the application's topics.
    - restarts: how often all members of the application restarted together since the split.
    - predicted, measured: the seconds since the split in which partitions of the application had no owner.
    - remarks: what is not known, and why.
    """

    before: SharedCost
    groups: tuple[str, ...]
    restarts: int | None
    predicted: Predicted | None
    measured: float | None
    remarks: tuple[str, ...]

    @property
    def holds(self) -> bool | None:
        """Whether the measured seconds are in the predicted range, or differ from it by at most 20 % or 2 s.

        None: no prediction or no measurement.
        """
        if self.predicted is None or self.measured is None:
            return None
        nearest = min(max(self.measured, self.predicted.low), self.predicted.high)
        return abs(self.measured - nearest) <= max(_SECONDS, self.measured * _SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A split that was carried out: target groups took over topics of a source group with their committed offsets.

    targets: the target groups of each source group and topic. written_at: when the target groups' offsets were written.
    """

    targets: Mapping[tuple[str, str], Collection[str]]
    written_at: datetime

    @staticmethod
    def of(execution: Execution) -> Split:
        """Return what a hand-over split. Raises `UsageError` if no group of this cluster handed over offsets."""
        if execution.translation is not None:
            raise UsageError(
                f"the run moved group {execution.translation.group!r} from another cluster, and --after compares "
                "groups of one cluster: pass the run directory of a split"
            )
        targets: dict[tuple[str, str], set[str]] = defaultdict(set)
        for (group, topic, _), sources in execution.sources().items():
            for source in sources:
                targets[source.group, topic].add(group)
        if not targets:
            raise UsageError("no group handed over offsets in this run: pass the run directory of a split, of migrate")
        return Split(targets=targets, written_at=execution.started_at)

    @property
    def source_groups(self) -> frozenset[str]:
        """The groups that were split."""
        return frozenset(source for source, _ in self.targets)

    @property
    def target_groups(self) -> frozenset[str]:
        """The groups that took over topics."""
        return frozenset().union(*self.targets.values())


def compare(
    before: Sequence[SharedCost],
    after: Sequence[SharedCost],
    split: Split,
    *,
    delay: timedelta | None,
    read_at: datetime,
) -> tuple[AfterSplit, ...]:
    """Compare each application of a source group before and after the split; the highest cost after the split is first.

    before: the applications of the source group until the split. after: the applications of the target groups since the
    split. delay: ``group.initial.rebalance.delay.ms``; None: not known. read_at: when the log of ``__consumer_offsets``
    was copied.
    """
    found = [_compared(row, after, split, delay, read_at) for row in before]
    return tuple(sorted(found, key=lambda each: (-(each.measured or 0), each.before.application)))


def _compared(
    before: SharedCost, after: Sequence[SharedCost], split: Split, delay: timedelta | None, read_at: datetime
) -> AfterSplit:
    groups = tuple(sorted({of for topic in before.topics for of in split.targets.get((before.group, topic), ())}))
    rows = [row for row in after if row.group in groups and {*row.topics} & {*before.topics}]
    remarks = [*_remarks(before, rows, groups)]
    seen = bool(rows) and {row.group for row in rows} == {*groups}
    restarts = sum(row.replaced for row in rows) if seen else None
    predicted = None
    if len(groups) == 1 and restarts is not None:
        spans = read_at - min(row.since for row in rows), split.written_at - before.since
        times = spans[0] / spans[1] if spans[1] else 1.0
        predicted = alone(before, delay, restarts=restarts, times=times)
        if restarts and not before.replaced:
            remarks.append("no prediction: its members never restarted together before the split")
        elif predicted is None:
            remarks.append("no prediction: group.initial.rebalance.delay.ms can't be read")
        elif before.replaced and not restarts:
            remarks.append("its members have not restarted together since the split")
    return AfterSplit(
        before=before,
        groups=groups,
        restarts=restarts,
        predicted=predicted,
        measured=_measured(rows) if seen else None,
        remarks=tuple(remarks),
    )


def _measured(rows: Sequence[SharedCost]) -> float | None:
    if any(row.outage is None and row.rebalances for row in rows):
        return None
    return round(sum(((row.outage or 0) + (row.stood_still or 0) for row in rows), 0.0), 3)


def _remarks(before: SharedCost, rows: Sequence[SharedCost], groups: Collection[str]) -> list[str]:
    found = []
    if not groups:
        return ["its topics have not moved"]
    if silent := {*groups} - {row.group for row in rows}:
        found.append(f"the log has no record of members of {some(silent)} since the split: not started yet?")
    if len(groups) > 1:
        found.append(f"no prediction: its topics went to {counted(len(groups), 'group')}")
    if others := {topic for row in rows for topic in row.topics} - {*before.topics}:
        found.append(f"it shares its new group with readers of {some(others)}")
    if rows and _measured(rows) is None:
        found.append("not measured: no commit of its members before a rebalance")
    if missing := sum(row.missing for row in [before, *rows]):
        found.append(f"{counted(missing, 'offset')} compacted away: earlier rebalances are not counted")
    return found
