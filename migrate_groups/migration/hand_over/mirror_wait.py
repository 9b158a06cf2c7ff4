"""Wait, while the source group runs, until a mirror has copied its topics nearly to the log end. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.migration.across.mirror import Mirror
from migrate_groups.migration.across.progress import progress
from migrate_groups.migration.across.translate import translate
from migrate_groups.migration.events import Events
from migrate_groups.migration.prepare import refuse_forbidden
from migrate_groups.mirrors.place import Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.checks.mirror import in_words, places
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.translation import Translated, Translation
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted

LEAST_BOUND_SECONDS = 10.0
"""The mirror may be this far behind when the group is asked to stop, or as far as ``settle`` if that is longer.

The group is stopped for ``settle`` in any case, and meanwhile the mirror delivers what was produced before the stop."""
_POLL_SECONDS = 0.5
_QUIET_SECONDS = 3.0
_REPORT_SECONDS = 30.0


class _Ends(NamedTuple):
    """When log end offsets on the source were read, in seconds of the monotonic clock, and the offsets."""

    read_at: float
    ends: Mapping[TopicPartition, int]


def wait_for_mirror(mirror: Mirror, plan: Plan, clock: Clock, wait: float, events: Events, *, is_running: bool) -> None:
    """Wait until a stop of the source group would not have to wait long for the mirror. Reads only.

    The mirror must have delivered the records up to every offset of the plan. If the group runs, the mirror must also
    have delivered all records that were on the source some seconds ago: `LEAST_BOUND_SECONDS`, or ``settle`` if that is
    longer.

    plan: the plan that the user agreed to. wait: seconds until giving up; 0: do not wait. Raises `Refused` if the wait
    runs out, or if an offset can't be translated any more; `ClusterUnavailable` and `NotAuthorized`.
    """
    if plan.translation is None or not wait:
        return
    waiting = _Waiting(mirror, plan, plan.translation, clock, is_running=is_running)
    group, most = plan.translation.group, span_in_words(timedelta(seconds=wait))
    running = f"; do not stop {group} yet" if is_running else ""
    began, reported = clock.monotonic(), None
    while behind := waiting.behind():
        waited = clock.monotonic() - began
        if waited >= wait:
            raise Refused(_gave_up(behind, group, most, waiting.bound))
        if waited >= _QUIET_SECONDS and (reported is None or waited - reported >= _REPORT_SECONDS):
            first = f"waiting up to {most} for the mirror{running}: " if reported is None else f"{waited:4.0f} s  "
            events.said(f"{first}{_listed(behind)}")
            reported = waited
        clock.sleep(min(_POLL_SECONDS, wait - waited))


class _Waiting:
    """What is known of a mirror while `wait_for_mirror` waits."""

    def __init__(self, mirror: Mirror, plan: Plan, translation: Translation, clock: Clock, *, is_running: bool) -> None:
        self._mirror, self._options, self._translation, self._clock = mirror, plan.options, translation, clock
        self._late = [*translation.with_status(Status.NOT_MIRRORED)]
        # Of a group that has stopped, only the offsets count.
        self._is_running = is_running
        self._copies = {
            source: copy
            for source, copy in translation.copies.items()
            if is_running or any(each.source == source for each in self._late)
        }
        self._read: list[_Ends] = []
        self.bound = max(plan.options.settle, LEAST_BOUND_SECONDS)

    def behind(self) -> list[Translated]:
        """Return the partitions for which to wait; each has how far the mirror is behind, if that is known.

        Raises `Refused` if an offset can't be translated any more.
        """
        late = {each.source: each for each in self._still_late()}
        now = self._clock.monotonic()
        # Of all readings within the bound, the oldest counts. The last one is needed even if it took long.
        self._read = [each for each in self._read[:-1] if now - each.read_at <= self.bound] + self._read[-1:]
        since = self._read[0].ends if self._read else {}
        seen = progress(self._mirror, self._copies, since)
        self._read.append(_Ends(now, {each: at.end for each, at in seen.items()}))
        since = self._read[0].ends
        behind = []
        for each in self._translation.partitions:
            if each.source not in self._copies:
                continue
            at, must = seen.get(each.source), since.get(each.source)
            is_near = at is not None and must is not None and at.reached is not None and at.reached >= must
            if each.source in late or (self._is_running and not is_near):
                behind.append(replace(late.get(each.source, each), behind=at.behind if at else None))
        return behind

    def _still_late(self) -> Sequence[Translated]:
        """Return the partitions whose offset in the plan the mirror has not delivered yet."""
        if self._late:
            asked = {each.source: (each.offset, each.committed) for each in self._late}
            again = translate(self._mirror, self._translation.group, asked)
            check = places(again, self._options)
            refuse_forbidden([check] if check.verdict == "refuse" else [])
            self._late = [*again.with_status(Status.NOT_MIRRORED)]
        return self._late


def _listed(behind: Sequence[Translated]) -> str:
    return f"{counted(len(behind), 'partition')} behind: {in_words(behind)}"


def _gave_up(behind: Sequence[Translated], group: str, most: str, bound: float) -> str:
    return (
        f"the mirror is still behind after {most}: {_listed(behind)}; {group} was not asked to stop, and nothing was "
        f"written; start the mirror, or wait longer with --wait; if it is always more than "
        f"{span_in_words(timedelta(seconds=bound))} behind, pass a longer --settle"
    )
