"""One write to the cluster, as the receipt records it: each change with its pre-image and its outcome."""

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
    """The outcome of a change. A partition without an answer is ``unknown``, never a success."""

    CONFIRMED = "confirmed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_ATTEMPTED = "not attempted"


class Entry(PartitionValue, frozen=True, kw_only=True):
    """One change (its ``before`` is the pre-image), its outcome, the number of attempts, and why it failed.

    own: offsets that interrupted earlier runs of this migration wrote, or may have written, and the offset of this run
    if it was refused after it may have been in place. None of them is another client's commit.
    """

    change: Change
    outcome: Outcome
    attempts: int = 0
    error: str = ""
    own: tuple[CommittedOffset | None, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether the offset is in place: written and read back, or there before."""
        return self.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED)

    @property
    def written(self) -> tuple[CommittedOffset | None, ...]:
        """The offsets that this run and the runs that it resumes wrote, or may have written.

        An entry that is not attempted counts, because the run may have been killed before it recorded the answer.
        """
        if self.change.action is Action.UNCHANGED or self.outcome is Outcome.REFUSED:
            return self.own
        return *self.own, self.change.after

    def refused(self, error: str, *, sent: bool = False) -> Entry:
        """Return the entry as refused. ``sent``: its offset may have been in place nevertheless."""
        own = (*self.own, self.change.after) if sent and self.change.after not in self.own else self.own
        return structs.replace(self, outcome=Outcome.REFUSED, error=error, own=own)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """One write to the cluster, with one entry for each change of its plan, in the plan's order.

    number: counts the executions of a receipt from 1, and orders them, because clocks jump. topic_ids: by topic, as far
    as known (KIP-516); a rollback refuses a topic that was created again. moved: what a group that must no longer
    consume did after its offsets were read; those records are processed twice. remarks: other facts for the user, for
    instance that only one client confirmed the offsets.
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
        """Return the execution as one that resumes earlier runs of the same migration.

        A partition that those runs were to write keeps their pre-image, because the offset that is committed now may be
        such a run's own write, even if the run was killed before it recorded that. An offset that is in place already
        is ``unknown`` until it is read back, and is not written again.
        """
        return replace(self, entries=tuple(_resumed(entry, earlier.get(entry.change.order)) for entry in self.entries))

    def origins(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return the source groups by target group and topic.

        A partition that was added to a topic since has the source groups of its topic.
        """
        claims: dict[tuple[str, str], set[str | None]] = defaultdict(set)
        for entry in self.entries:
            claims[entry.change.group, entry.change.topic].add(entry.change.source_group)
        return {place: frozenset(group for group in groups if group is not None) for place, groups in claims.items()}

    def handed_over(self) -> tuple[Change, ...]:
        """Return the changes of topics that a source group hands over, one for each source group, which it names."""
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
        """Return the execution with this remark, which it has only once."""
        return replace(self, remarks=tuple(dict.fromkeys((*self.remarks, remark))))

    def with_moved(self, reasons: Iterable[str]) -> Execution:
        """Return the execution with these reasons added to ``moved``, each only once."""
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
        """Whether every partition is confirmed or unchanged, and no group that must not consume has moved."""
        return not (self.failed or self.moved)

    @property
    def wrote_nothing(self) -> bool:
        """Whether this migration wrote nothing, because every offset was in place before."""
        return all(entry.change.action is Action.UNCHANGED for entry in self.entries)


def _resumed(entry: Entry, earlier: Entry | None) -> Entry:
    if earlier is None or entry.change.before not in (earlier.change.before, *earlier.written):
        return entry  # another client's commit, which is the pre-image
    change = structs.replace(entry.change, before=earlier.change.before)
    own = tuple(each for each in dict.fromkeys(earlier.written) if each != change.after)
    if entry.outcome is not Outcome.UNCHANGED:
        return structs.replace(entry, change=change, own=own)
    if change.action is Action.UNCHANGED:
        return entry
    return Entry(change=change, outcome=Outcome.UNKNOWN, attempts=max(1, earlier.attempts), own=own)
