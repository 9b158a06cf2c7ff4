"""The receipt: what became of every change of a plan, with the pre-image that a way back needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from msgspec import structs

from migrate_groups.cluster.ports import CommittedOffset, ManyTimes
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Action, Change, Plan


class Outcome(StrEnum):
    """What became of a change. A partition that nobody answered for is ``unknown``, never a success."""

    CONFIRMED = "confirmed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_ATTEMPTED = "not attempted"


class Deed(StrEnum):
    """What a write was for."""

    HAND_OVER = "hand-over"
    ROLLBACK = "rollback"
    HAND_BACK = "hand-back"
    DELETE_OFFSETS = "delete-offsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What a write was for; ``answers``: when the write began that a way back, or the clean-up, answers."""

    deed: Deed
    answers: datetime | None = None


HAND_OVER = Purpose(deed=Deed.HAND_OVER)
"""What `apply` and `migrate` write for."""


class Entry(ManyTimes, frozen=True, kw_only=True):
    """One change (its ``before`` is the pre-image), what became of it, after how many attempts, and why not.

    own: what runs that this one resumes have put there, or may have. That is nobody else's commit.
    """

    change: Change
    outcome: Outcome
    attempts: int = 0
    error: str = ""
    own: tuple[CommittedOffset | None, ...] = ()

    @property
    def of_its_runs(self) -> tuple[CommittedOffset | None, ...]:
        """What this run and those that it resumes have put there, or may have."""
        return self.own if self.change.action is Action.UNCHANGED else (*self.own, self.change.after)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of a plan, one entry a change in the plan's order.

    options: those of the plan, which a way back plans with. source_moved: what a source group did after its offsets
    were read; the new groups would process that again. remarks: what a person must know besides, for instance that one
    client alone confirmed.
    """

    purpose: Purpose = HAND_OVER

    cluster_id: str
    options: WriteOptions
    intent: str
    content: str
    started_at: datetime
    entries: tuple[Entry, ...]
    source_moved: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @staticmethod
    def of(plan: Plan, started_at: datetime, purpose: Purpose = HAND_OVER) -> Receipt:
        """Return the receipt of a plan before its first request."""
        return Receipt(
            purpose=purpose,
            cluster_id=plan.cluster_id,
            options=plan.options,
            intent=plan.intent,
            content=plan.content,
            started_at=started_at,
            entries=tuple(
                Entry(
                    change=change,
                    outcome=Outcome.UNCHANGED if change.action is Action.UNCHANGED else Outcome.NOT_ATTEMPTED,
                )
                for change in plan.changes
            ),
        )

    def resuming(self, earlier: Receipt) -> Receipt:
        """Return the receipt as the continuation of an earlier run of the same intent.

        What that run asked for keeps its pre-image: what is on the broker now may be that run's own write, also where
        it was killed before it could say so. What is in place is unknown until read back, and not written again.
        """
        before = {entry.change.order: entry for entry in earlier.entries}
        return replace(self, entries=tuple(_resumed(entry, before.get(entry.change.order)) for entry in self.entries))

    def origins(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return the source groups of each group's topic; a partition that was added since has that of its topic."""
        claims: dict[tuple[str, str], set[str | None]] = defaultdict(set)
        for entry in self.entries:
            claims[entry.change.group, entry.change.topic].add(entry.change.source_group)
        return {place: frozenset(group for group in groups if group is not None) for place, groups in claims.items()}

    def handed_over(self) -> tuple[Change, ...]:
        """Return the changes of topics that a group hands over, each with that group as its source."""
        origins = self.origins()
        return tuple(
            entry.change if entry.change.source_group == source else structs.replace(entry.change, source_group=source)
            for entry in self.entries
            for source in origins[entry.change.group, entry.change.topic]
            if entry.change.source_group in (None, source)
        )

    def own_writes(self) -> Mapping[tuple[str, str, int], tuple[CommittedOffset | None, ...]]:
        """Return what this run and those before it have put somewhere, or may have, by group, topic and partition."""
        return {entry.change.order: entry.of_its_runs for entry in self.entries}

    def moved_since(self, plan: Plan) -> list[str]:
        """Return the partitions that this receipt confirmed, that stand elsewhere now, and that a plan would move."""
        wanted = {change.order: change for change in plan.to_write()}
        return [
            f"{entry.change.group} {entry.change.topic_partition}"
            for entry in self.entries
            if entry.outcome is Outcome.CONFIRMED
            and (change := wanted.get(entry.change.order))
            and change.before not in (entry.change.before, *entry.of_its_runs)
        ]

    def updated(self, entries: Iterable[Entry]) -> Receipt:
        """Return the receipt with these entries in place of its own for the same partitions."""
        new = {entry.change.order: entry for entry in entries}
        if not new:
            return self
        return replace(self, entries=tuple(new.get(entry.change.order, entry) for entry in self.entries))

    def remarked(self, remark: str) -> Receipt:
        """Return the receipt with this remark added, once."""
        return replace(self, remarks=tuple(dict.fromkeys((*self.remarks, remark))))

    def with_source_moved(self, reasons: Iterable[str]) -> Receipt:
        """Return the receipt with these reasons added, each once."""
        return replace(self, source_moved=tuple(dict.fromkeys((*self.source_moved, *reasons))))

    def count(self) -> Mapping[Outcome, int]:
        """Return how many entries have each outcome."""
        return Counter(entry.outcome for entry in self.entries)

    @cached_property
    def failed(self) -> tuple[Entry, ...]:
        """The entries that are neither confirmed nor unchanged."""
        return tuple(entry for entry in self.entries if entry.outcome not in (Outcome.CONFIRMED, Outcome.UNCHANGED))

    @property
    def is_whole(self) -> bool:
        """Whether all is as it was asked for, and no source group has moved."""
        return not (self.failed or self.source_moved)


def _resumed(entry: Entry, earlier: Entry | None) -> Entry:
    if earlier is None or entry.change.before not in (earlier.change.before, *earlier.of_its_runs):
        return entry  # what is there now is somebody else's, and the pre-image
    change = structs.replace(entry.change, before=earlier.change.before)
    own = tuple(each for each in dict.fromkeys(earlier.of_its_runs) if each != change.after)
    if entry.outcome is not Outcome.UNCHANGED:
        return structs.replace(entry, change=change, own=own)
    if change.action is Action.UNCHANGED:
        return entry
    return Entry(change=change, outcome=Outcome.UNKNOWN, attempts=max(1, earlier.attempts), own=own)
