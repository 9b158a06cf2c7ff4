"""One write to the cluster, as the receipt records it: each change with its pre-image and what became of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from msgspec import structs

from migrate_groups.model.partitions import CommittedOffset, PartitionValue
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Action, Change, Plan
from migrate_groups.planning.run_states import Verb

Order = tuple[str, str, int]
"""Group, topic and partition."""


class Outcome(StrEnum):
    """What became of a change. A partition that nobody answered for is ``unknown``, never a success."""

    CONFIRMED = "confirmed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_ATTEMPTED = "not attempted"


class Entry(PartitionValue, frozen=True, kw_only=True):
    """One change (its ``before`` is the pre-image), its outcome, the number of attempts, and why it failed.

    own: offsets that interrupted earlier runs of this migration wrote, or may have written, and what this run wrote
    where it is refused all the same. They are nobody else's commit.
    """

    change: Change
    outcome: Outcome
    attempts: int = 0
    error: str = ""
    own: tuple[CommittedOffset | None, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether the partition was read back as asked for."""
        return self.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED)

    @property
    def written(self) -> tuple[CommittedOffset | None, ...]:
        """What this run and those that it resumes wrote there, or may have written.

        An entry that is not attempted yet counts: the run may have been killed before it could record the answer.
        """
        if self.change.action is Action.UNCHANGED or self.outcome is Outcome.REFUSED:
            return self.own
        return *self.own, self.change.after

    def refused(self, error: str, *, sent: bool = False) -> Entry:
        """Return the entry as refused; ``sent``: its offset may have been in place all the same."""
        own = (*self.own, self.change.after) if sent and self.change.after not in self.own else self.own
        return structs.replace(self, outcome=Outcome.REFUSED, error=error, own=own)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """One write to the cluster, with one entry for each change of its plan, in the plan's order.

    number: counts the executions of a receipt from 1; clocks jump, so that no time orders them. topic_ids: by topic, as
    far as known (KIP-516); a way back refuses a topic that was created again. moved: what a group that must no longer
    consume did after its offsets were read; those records are processed twice. remarks: what a person must know
    besides, for instance that one client alone confirmed.
    """

    number: int = 1
    verb: Verb = Verb.HAND_OVER
    cluster_id: str
    options: WriteOptions
    intent: str
    content: str
    started_at: datetime
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[Entry, ...]
    moved: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @staticmethod
    def of(plan: Plan, started_at: datetime, verb: Verb = Verb.HAND_OVER, number: int = 1) -> Execution:
        """Return the execution of a plan before its first request."""
        return Execution(
            number=number,
            verb=verb,
            cluster_id=plan.cluster_id,
            options=plan.options,
            intent=plan.intent,
            content=plan.content,
            started_at=started_at,
            topic_ids=plan.topic_ids,
            entries=tuple(
                Entry(
                    change=change,
                    outcome=Outcome.UNCHANGED if change.action is Action.UNCHANGED else Outcome.NOT_ATTEMPTED,
                )
                for change in plan.changes
            ),
        )

    def resuming(self, earlier: Mapping[Order, Entry]) -> Execution:
        """Return the execution as the continuation of what earlier runs of the same migration wrote.

        What those runs asked for keeps its pre-image: the offset that is committed now may be such a run's own write,
        also where it was killed before it could record that. What is in place is unknown until it is read back, and is
        not written again.
        """
        return replace(self, entries=tuple(_resumed(entry, earlier.get(entry.change.order)) for entry in self.entries))

    def origins(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return the source groups by target group and topic; a partition that was added since has its topic's."""
        claims: dict[tuple[str, str], set[str | None]] = defaultdict(set)
        for entry in self.entries:
            claims[entry.change.group, entry.change.topic].add(entry.change.source_group)
        return {place: frozenset(group for group in groups if group is not None) for place, groups in claims.items()}

    def handed_over(self) -> tuple[Change, ...]:
        """Return the changes of topics that a source group hands over, each with that group as its source."""
        origins = self.origins()
        return tuple(
            entry.change if entry.change.source_group == source else structs.replace(entry.change, source_group=source)
            for entry in self.entries
            for source in origins[entry.change.group, entry.change.topic]
            if entry.change.source_group in (None, source)
        )

    def updated(self, entries: Iterable[Entry]) -> Execution:
        """Return the execution with these entries in place of its own for the same partitions."""
        new = {entry.change.order: entry for entry in entries}
        if not new:
            return self
        return replace(self, entries=tuple(new.get(entry.change.order, entry) for entry in self.entries))

    def remarked(self, remark: str) -> Execution:
        """Return the execution with this remark added, once."""
        return replace(self, remarks=tuple(dict.fromkeys((*self.remarks, remark))))

    def with_moved(self, reasons: Iterable[str]) -> Execution:
        """Return the execution with these reasons added, each once."""
        return replace(self, moved=tuple(dict.fromkeys((*self.moved, *reasons))))

    def count(self) -> Mapping[Outcome, int]:
        """Return how many entries have each outcome."""
        return Counter(entry.outcome for entry in self.entries)

    @cached_property
    def failed(self) -> tuple[Entry, ...]:
        """The entries that are neither confirmed nor unchanged."""
        return tuple(entry for entry in self.entries if not entry.settled)

    @property
    def is_whole(self) -> bool:
        """Whether each partition is as it was asked for, and no group has moved that must not."""
        return not (self.failed or self.moved)

    @property
    def wrote_nothing(self) -> bool:
        """Whether every offset was in place before, written by somebody else."""
        return all(entry.change.action is Action.UNCHANGED for entry in self.entries)


def _resumed(entry: Entry, earlier: Entry | None) -> Entry:
    if earlier is None or entry.change.before not in (earlier.change.before, *earlier.written):
        return entry  # somebody else's commit, and the pre-image
    change = structs.replace(entry.change, before=earlier.change.before)
    own = tuple(each for each in dict.fromkeys(earlier.written) if each != change.after)
    if entry.outcome is not Outcome.UNCHANGED:
        return structs.replace(entry, change=change, own=own)
    if change.action is Action.UNCHANGED:
        return entry
    return Entry(change=change, outcome=Outcome.UNKNOWN, attempts=max(1, earlier.attempts), own=own)
