"""Wait, while the source group runs, until a mirror has copied its topics nearly to the log end. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.migration.across.mirror_lag import MirrorLag, mirror_lag
from migrate_groups.migration.across.translate import translate
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.events import Events
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.mirrors.position import Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.checks.mirror import TRANSLATED_OFFSETS, in_words, judge_translation
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.planned_stop import most_behind
from migrate_groups.planning.translation import TranslatedOffset, Translation
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted

_POLL_SECONDS = 0.5
_QUIET_SECONDS = 3.0  # a healthy mirror needs no line
_REPORT_SECONDS = 30.0


class _Ends(NamedTuple):
    """When log end offsets on the source were read, in seconds of the monotonic clock, and the offsets."""

    read_at: float
    ends: Mapping[TopicPartition, int]


def wait_for_mirror(mirror: Mirror, plan: Plan, clock: Clock, wait: float, events: Events, *, is_running: bool) -> None:
    """Wait until a stop of the source group would not have to wait long for the mirror. Reads only.

    The mirror must have delivered the records up to every offset of the plan. If the group runs, the mirror must also
    have delivered all records that were on the source some seconds ago: `most_behind`.

    plan: the plan that the user agreed to. wait: seconds until giving up; 0: do not wait. Raises `Refused` if the wait
    runs out, or if an offset can't be translated any more.
    """
    if plan.translation is None or not wait:
        return
    waiting = _Waiting(mirror, plan, plan.translation, clock, is_running=is_running)
    group, most = plan.translation.group, span_in_words(timedelta(seconds=wait))
    running = f"; do not stop {group} yet" if is_running else ""
    began, report_at = clock.monotonic(), _QUIET_SECONDS
    while True:
        waited = clock.monotonic() - began
        is_over, is_due = waited >= wait, waited >= report_at
        behind = waiting.behind(measure=is_over or is_due)
        if not behind:
            return
        if is_over:
            bound = span_in_words(timedelta(seconds=waiting.bound))
            advice = f"; if it is always more than {bound} behind, pass a longer --settle" if is_running else ""
            raise Refused(
                f"the mirror is still behind after {most}: {_listed(behind)}; {group} was not asked to stop, and "
                f"nothing was written; start the mirror, or wait longer with --wait{advice}"
            )
        if is_due:
            is_first = report_at == _QUIET_SECONDS
            first = f"waiting up to {most} for the mirror{running}: " if is_first else f"{waited:4.0f} s  "
            events.doing(f"{first}{_listed(behind)}")
            report_at = waited + _REPORT_SECONDS
        clock.sleep(min(_POLL_SECONDS, wait - waited))


class _Waiting:
    """What is known of a mirror while `wait_for_mirror` waits."""

    def __init__(self, mirror: Mirror, plan: Plan, translation: Translation, clock: Clock, *, is_running: bool) -> None:
        self._mirror, self._options, self._translation, self._clock = mirror, plan.options, translation, clock
        self._late = {each.source: each for each in translation.with_status(Status.NOT_MIRRORED)}
        # Of a group that has stopped, only the offsets count.
        self._is_running = is_running
        copies = translation.copies
        self._copies = copies if is_running else {each: copies[each] for each in self._late}
        self._read: list[_Ends] = []
        self._stable: Mapping[TopicPartition, int] = {}
        self._seen: dict[TopicPartition, MirrorLag] = {}
        self.bound = most_behind(plan.options.settle)

    def behind(self, *, measure: bool) -> list[TranslatedOffset]:
        """Return the partitions for which to wait; each has how far the mirror is behind, if that is known.

        measure: also measure again how far the mirror is behind in partitions to which it has delivered nothing since.

        Raises `Refused` if an offset can't be translated any more.
        """
        now = self._clock.monotonic()
        # Of all readings within the bound, the oldest counts. The last one is needed even if it took long.
        self._read = [each for each in self._read[:-1] if now - each.read_at <= self.bound] + self._read[-1:]
        self._read_lag(now, measure=measure)
        self._translate_late(measure=measure)
        return [
            replace(self._late.get(each.source, each), behind=at.behind if at else None)
            for each in self._translation.partitions
            if each.source in self._copies
            for at in [self._seen.get(each.source)]
            if each.source in self._late or (self._is_running and not self._is_near(each.source, at))
        ]

    def _read_lag(self, now: float, *, measure: bool) -> None:
        stable = self._mirror.target.groups.last_stable_offsets(self._copies.values())
        # Records are only read again where it matters, because a mirror may be far behind for a long time.
        copies = {
            each: copy
            for each, copy in self._copies.items()
            if measure or copy not in stable or stable[copy] != self._stable.get(copy) or not self._is_behind(each)
        }
        self._stable = stable
        read = mirror_lag(
            self._mirror, copies, {each: must for each in copies if (must := self._must(each)) is not None}
        )
        self._seen = {each: at for each, at in self._seen.items() if each not in copies} | {**read}
        self._read.append(_Ends(now, {each: at.end for each, at in read.items()}))

    def _is_behind(self, partition: TopicPartition) -> bool:
        at = self._seen.get(partition)
        return at is not None and at.behind is not None and at.behind.records > 0

    def _must(self, partition: TopicPartition) -> int | None:
        """Return the source offset that the mirror must have reached: the log end offset some seconds ago."""
        return next((each.ends[partition] for each in self._read if partition in each.ends), None)

    def _is_near(self, partition: TopicPartition, at: MirrorLag | None) -> bool:
        must = self._must(partition)
        return at is not None and at.reached is not None and must is not None and at.reached >= must

    def _translate_late(self, *, measure: bool) -> None:
        """Translate the offsets again that the mirror had not delivered, if it may have delivered them by now."""
        asked = {
            each.source: (each.offset, each.committed)
            for each in self._late.values()
            if measure or ((at := self._seen.get(each.source)) and (at.reached or 0) >= each.offset)
        }
        if not asked:
            return
        again = translate(self._mirror, self._translation.group, asked)
        late = {each.source: each for each in again.with_status(Status.NOT_MIRRORED, Status.UNDETERMINED)}
        found = replace(again, partitions=tuple(each for each in again.partitions if each.source not in late))
        verdict, reason = judge_translation(found, self._options)
        if verdict is Verdict.REFUSE:
            refuse_forbidden([Check(name=TRANSLATED_OFFSETS, verdict=verdict, reason=reason)])
        self._late = {each: of for each, of in self._late.items() if each not in asked} | late


def _listed(behind: Sequence[TranslatedOffset]) -> str:
    return f"{counted(len(behind), 'partition')} behind: {in_words(behind)}"
