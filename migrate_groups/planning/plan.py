"""The plan: the change of each partition, and the verdict of every check."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import msgspec
from msgspec import structs

from migrate_groups.model.partitions import CommittedOffset, PartitionValue, TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.text import counted, some


class Action(StrEnum):
    """What a change does to a committed offset."""

    CREATE = "create"
    MOVE = "move"
    DELETE = "delete"
    UNCHANGED = "unchanged"


class Change(PartitionValue, frozen=True, kw_only=True):
    """One partition of one group: its committed offset before and after. None: no committed offset.

    source_group: the group that hands over; None where the offset is set without a source group. source_committed: the
    source group's committed offset when it was read, None where it had none. ``after`` differs from it only where an
    option replaced the offset.
    """

    source_group: str | None
    group: str
    topic: str
    partition: int
    before: CommittedOffset | None
    after: CommittedOffset | None
    source_committed: CommittedOffset | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def action(self) -> Action:
        """What the change does to the committed offset."""
        before, after = self.before, self.after
        if before == after:
            return Action.UNCHANGED
        if before is None:
            return Action.CREATE
        return Action.MOVE if after is not None else Action.DELETE

    @property
    def handed_over_at(self) -> int | None:
        """The offset at which the source group stopped. Records that it consumes after this are processed twice."""
        stopped = self.source_committed or self.after
        return None if stopped is None else stopped.offset

    @property
    def inverse(self) -> Change:
        """The change that undoes this one. It restores ``before``, and has no source group."""
        return structs.replace(self, source_group=None, source_committed=None, before=self.after, after=self.before)

    @property
    def order(self) -> tuple[str, str, int]:
        """The sort key of changes in a plan: group, topic, partition."""
        return self.group, self.topic, self.partition


class Verdict(StrEnum):
    """The verdict of a check, from best to worst. ``pending``: it does not hold yet, and would refuse the write now."""

    PASS = "pass"  # noqa: S105  no password
    WARN = "warn"
    PENDING = "pending"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The verdict of a named check. ``reason``: what was found, and the option that allows it, where there is one."""

    name: str
    verdict: Verdict
    reason: str

    @staticmethod
    def passed(name: str, reason: str) -> Check:
        """Return a check that passes."""
        return Check(name=name, verdict=Verdict.PASS, reason=reason)

    @staticmethod
    def warned(name: str, reason: str) -> Check:
        """Return a check that allows the write, with a warning."""
        return Check(name=name, verdict=Verdict.WARN, reason=reason)

    @staticmethod
    def pending(name: str, reason: str) -> Check:
        """Return a check that does not hold yet and must hold at the write."""
        return Check(name=name, verdict=Verdict.PENDING, reason=reason)

    @staticmethod
    def refused(name: str, reason: str) -> Check:
        """Return a check that forbids the write."""
        return Check(name=name, verdict=Verdict.REFUSE, reason=reason)

    @staticmethod
    def of(name: str, found: Collection[str], complaint: str, fine: str) -> Check:
        """Return a check that refuses with ``complaint`` if anything was ``found``, or else passes with ``fine``."""
        if not found:
            return Check.passed(name, fine)
        return Check.refused(name, f"{counted(len(found), 'case')}: {some(found, 3)}: {complaint}")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A deterministic list of changes, sorted by group, topic and partition, with its checks.

    topic_ids: the topic ids when the plan was made, by topic, as far as known (KIP-516).
    """

    cluster_id: str
    options: WriteOptions
    changes: tuple[Change, ...]
    checks: tuple[Check, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def intent(self) -> str:
        """The hash of what a reviewer approves: cluster, groups, topic partitions and options, without offsets."""
        moves = [(change.source_group, *change.order) for change in self.changes]
        return _hash(self.cluster_id, self.options, moves)

    @cached_property
    def content(self) -> str:
        """The hash of everything that would be written, offsets included. It binds a plan made for a stopped group."""
        return _hash(self.cluster_id, self.options, self.changes)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all checks."""
        return max((check.verdict for check in self.checks), key=list(Verdict).index, default=Verdict.PASS)

    def to_write(self) -> tuple[Change, ...]:
        """Return the changes that are not in place already."""
        return tuple(change for change in self.changes if change.action is not Action.UNCHANGED)

    def refusals(self, *, at_the_write: bool) -> tuple[Check, ...]:
        """Return the checks that forbid the write. At the write, pending checks forbid it too."""
        forbidding = {Verdict.REFUSE, Verdict.PENDING} if at_the_write else {Verdict.REFUSE}
        return tuple(check for check in self.checks if check.verdict in forbidding)

    def provisional(self, names: Collection[str]) -> Plan:
        """Return the plan with refusals of these checks as pending: it is made again once the groups have stopped."""
        checks = tuple(
            replace(check, verdict=Verdict.PENDING)
            if check.name in names and check.verdict is Verdict.REFUSE
            else check
            for check in self.checks
        )
        return replace(self, checks=checks)


def sorted_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes in a plan's order."""
    return tuple(sorted(changes, key=lambda change: change.order))


def _hash(*values: object) -> str:
    return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()
