"""The plan of a write: the change of each partition's committed offset, and the verdict of every check."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec
from msgspec import structs

from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.planning.change import Action, Change, share_groups
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.survey import ClusterFacts
from migrate_groups.planning.translation import Translation


@dataclass(frozen=True, kw_only=True)
class Write:
    """A write of offsets to a cluster, planned or carried out, with one change for each partition.

    - changes: sorted by group, topic and partition.
    - topic_ids: topic ids (KIP-516) by topic; a topic whose id is not known is absent.
    - translation: the offsets of a source group on another cluster, translated to this one; otherwise None.
    """

    cluster_id: str
    options: WriteOptions
    changes: tuple[Change, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    translation: Translation | None = None

    @property
    def source_groups(self) -> frozenset[str]:
        """The groups that hand over offsets. They may be on another cluster."""
        if self.translation:
            return frozenset({self.translation.group})
        return frozenset(each.source_group for each in self.changes if each.source_group is not None)

    @property
    def is_fail_over(self) -> bool:
        """Whether the cluster of the source group is lost, so that nothing could be read there."""
        return self.translation is not None and self.translation.compared_at is not None

    @property
    def source_topics(self) -> frozenset[str]:
        """The topics of this write, as they are named on the source group's cluster."""
        return self.translation.source_topics if self.translation else frozenset(each.topic for each in self.changes)


@dataclass(frozen=True, kw_only=True)
class Plan(Write):
    """What would be written: the change of each partition's committed offset, and the verdict of every check."""

    checks: tuple[Check, ...]

    @cached_property
    def intent(self) -> str:
        """The hash of what a reviewer approves: clusters, groups, topic partitions and options, without offsets.

        Options that do not change what is written are left out (``planning.options.FREE``).
        """
        moves = [(change.source_group, *change.order) for change in self.changes]
        return _hash(self.cluster_id, self.options.reviewed, moves, *share_groups(self.changes), *self._from_elsewhere)

    @cached_property
    def content(self) -> str:
        """The hash of everything that the plan decides: clusters, options, groups, topic partitions and offsets."""
        offsets = [(each.source, each.offset) for each in self.translation.partitions] if self.translation else []
        changes = [
            (each.source_group, *each.order, each.before, each.after, each.source_committed, each.action)
            for each in self.changes
        ]
        shares = share_groups(self.changes)
        return _hash(self.cluster_id, self.options, changes, *shares, *self._from_elsewhere, *offsets)

    @property
    def _from_elsewhere(self) -> tuple[object, ...]:
        """The source cluster, the source group and the topics with their copies; empty if there is only one cluster."""
        there = self.translation
        return (there.cluster_id, there.group, there.topics) if there else ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all checks; ``not applicable`` if there are no checks."""
        return max((check.verdict for check in self.checks), key=list(Verdict).index, default=Verdict.NOT_APPLICABLE)

    def to_write(self) -> tuple[Change, ...]:
        """Return the changes that set or delete a committed offset, without those that leave it ``unchanged``."""
        return tuple(change for change in self.changes if change.action is not Action.UNCHANGED)

    def refusals(self, *, at_the_write: bool) -> tuple[Check, ...]:
        """Return the checks that forbid the write: those with the verdict ``refuse``.

        at_the_write: whether checks with the verdict ``pending`` forbid the write too. They come last.
        """
        forbidding = (Verdict.REFUSE, Verdict.PENDING) if at_the_write else (Verdict.REFUSE,)
        return tuple(check for verdict in forbidding for check in self.checks if check.verdict is verdict)

    def with_checks(self, checks: Iterable[Check]) -> Plan:
        """Return the plan with these checks added."""
        return replace(self, checks=(*self.checks, *checks))

    def provisional(self, names: Collection[str]) -> Plan:
        """Return the plan with the verdict ``pending`` instead of ``refuse`` for the checks with these names.

        This is for a plan that is shown while groups still run.
        """
        checks = tuple(
            structs.replace(check, verdict=Verdict.PENDING)
            if check.name in names and check.verdict is Verdict.REFUSE
            else check
            for check in self.checks
        )
        return replace(self, checks=checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan to write offsets to target groups, and the facts from which it was made.

    changes: those of the target groups, also those without an offset. bounds: the log ranges of their partitions.
    facts: permissions and topic names for the next plan; None if it must read them again.
    """

    plan: Plan
    changes: Sequence[Change]
    bounds: Mapping[TopicPartition, LogRange]
    facts: ClusterFacts | None = None


def _hash(*values: object) -> str:
    return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()
