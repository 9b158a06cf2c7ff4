"""The plan of a write: the change of each partition's committed offset, and the verdict of every check."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import msgspec

from migrate_groups.planning.change import Action, Change
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.translation import Translation
from migrate_groups.text import some


class Verdict(StrEnum):
    """The possible verdicts of a check, from best to worst.

    - not applicable: there was nothing to compare, or a check that comes first refuses.
    - pass: something was compared, and nothing speaks against the write.
    - warn: what was found allows the write.
    - not known: what had to be compared could not be read. The write is allowed, as with ``warn``.
    - pending: the condition of the check does not hold yet, but must hold when offsets are written. A dry run succeeds,
      and a write is refused.
    - refuse: the write is forbidden.
    """

    NOT_APPLICABLE = "not applicable"
    PASS = "pass"  # noqa: S105  no password
    WARN = "warn"
    NOT_KNOWN = "not known"
    PENDING = "pending"
    REFUSE = "refuse"


NOTHING_TO_COMPARE = "there is nothing to compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The verdict of a named check. reason: what the check found, and what the user can do about it."""

    name: str
    verdict: Verdict
    reason: str

    @staticmethod
    def passed(name: str, reason: str) -> Check:
        """Return a check with the verdict ``pass``."""
        return Check(name=name, verdict=Verdict.PASS, reason=reason)

    @staticmethod
    def not_applicable(name: str, reason: str) -> Check:
        """Return a check with the verdict ``not applicable``: it compared nothing."""
        return Check(name=name, verdict=Verdict.NOT_APPLICABLE, reason=reason)

    @staticmethod
    def not_known(name: str, reason: str) -> Check:
        """Return a check with the verdict ``not known``, which allows the write."""
        return Check(name=name, verdict=Verdict.NOT_KNOWN, reason=reason)

    @staticmethod
    def warned(name: str, reason: str) -> Check:
        """Return a check with the verdict ``warn``, which allows the write."""
        return Check(name=name, verdict=Verdict.WARN, reason=reason)

    @staticmethod
    def pending(name: str, reason: str) -> Check:
        """Return a check with the verdict ``pending``: its condition does not hold yet, and must hold at the write."""
        return Check(name=name, verdict=Verdict.PENDING, reason=reason)

    @staticmethod
    def refused(name: str, reason: str) -> Check:
        """Return a check with the verdict ``refuse``, which forbids the write."""
        return Check(name=name, verdict=Verdict.REFUSE, reason=reason)

    @staticmethod
    def of(name: str, found: Collection[str], complaint: str, fine: str, *, compared: Collection[object]) -> Check:
        """Return a check that refuses if ``found`` has any items, and otherwise passes with the reason ``fine``.

        The reason of a refusal is the first three items and ``complaint``. compared: what was searched for ``found``.
        If it is empty, the verdict is ``not applicable``.
        """
        if found:
            return Check.refused(name, f"{some(found, 3)}: {complaint}")
        return Check.passed(name, fine) if compared else Check.not_applicable(name, NOTHING_TO_COMPARE)

    def depending_on(self, *others: Check) -> Check:
        """Return the check; if one of the others refuses, a check of the same name that is ``not applicable``.

        The result of a check says nothing if what it compares is already known to be wrong.
        """
        refusing = next((each for each in others if each.verdict is Verdict.REFUSE), None)
        if refusing is None:
            return self
        return Check.not_applicable(self.name, f"not judged, because the check {refusing.name!r} refuses")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What would be written: the change of each partition's committed offset, and the verdict of every check.

    - changes: sorted by group, topic and partition.
    - topic_ids: topic ids (KIP-516) by topic; a topic whose id is not known is absent.
    - translation: the offsets of a source group on another cluster, translated to this one; otherwise None.
    """

    cluster_id: str
    options: WriteOptions
    changes: tuple[Change, ...]
    checks: tuple[Check, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    translation: Translation | None = None

    @cached_property
    def intent(self) -> str:
        """The hash of what a reviewer approves: clusters, groups, topic partitions and options, without offsets.

        Options that do not change what is written are left out (``planning.options.FREE``).
        """
        moves = [(change.source_group, *change.order) for change in self.changes]
        return _hash(self.cluster_id, self.options.reviewed, moves, *self._from_elsewhere)

    @cached_property
    def content(self) -> str:
        """The hash of everything that the plan decides: clusters, options, groups, topic partitions and offsets."""
        offsets = [(each.source, each.offset) for each in self.translation.partitions] if self.translation else []
        changes = [
            (each.source_group, *each.order, each.before, each.after, each.source_committed, each.action)
            for each in self.changes
        ]
        return _hash(self.cluster_id, self.options, changes, *self._from_elsewhere, *offsets)

    @property
    def _from_elsewhere(self) -> tuple[object, ...]:
        """The source cluster, the source group and the topics with their copies; empty if there is only one cluster."""
        there = self.translation
        return (there.cluster_id, there.group, there.topics) if there else ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all checks; ``not applicable`` if there are no checks."""
        return max((check.verdict for check in self.checks), key=list(Verdict).index, default=Verdict.NOT_APPLICABLE)

    @property
    def source_topics(self) -> frozenset[str]:
        """The topics that are handed over, as they are named on the source group's cluster."""
        return self.translation.source_topics if self.translation else frozenset(each.topic for each in self.changes)

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
            replace(check, verdict=Verdict.PENDING)
            if check.name in names and check.verdict is Verdict.REFUSE
            else check
            for check in self.checks
        )
        return replace(self, checks=checks)


def _hash(*values: object) -> str:
    return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()
