"""The plan: what would be written, partition by partition, and the verdict of every check."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import msgspec
from msgspec import structs

from migrate_groups.cluster.ports import CommittedOffset, ManyTimes, TopicPartition
from migrate_groups.plan.options import WriteOptions


class Action(StrEnum):
    """What a change does to a committed offset."""

    CREATE = "create"
    MOVE = "move"
    DELETE = "delete"
    UNCHANGED = "unchanged"


class Change(ManyTimes, frozen=True, kw_only=True):
    """One partition of one group: what is committed now, and what will be. None: nothing is committed.

    source_group: the group that hands over; None where the offset is simply set. source_offset: where that group stood
    when its offsets were read; ``after`` differs from it where an option had it so.
    """

    source_group: str | None
    group: str
    topic: str
    partition: int
    before: CommittedOffset | None
    after: CommittedOffset | None
    source_offset: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def action(self) -> Action:
        """What the change does."""
        before, after = self.before, self.after
        if before == after:
            return Action.UNCHANGED
        if before is None:
            return Action.CREATE
        return Action.MOVE if after is not None else Action.DELETE

    @property
    def handed_over_at(self) -> int | None:
        """Where the source group went no further: what it commits beyond is processed twice."""
        return self.source_offset if self.source_offset is not None or self.after is None else self.after.offset

    @property
    def inverse(self) -> Change:
        """The change that undoes this one: it restores what was there, and claims no source group."""
        return structs.replace(self, source_group=None, source_offset=None, before=self.after, after=self.before)

    @property
    def order(self) -> tuple[str, str, int]:
        """The order of changes in a plan: group, topic, partition."""
        return self.group, self.topic, self.partition


class Verdict(StrEnum):
    """What a check found. ``pending`` must hold at the write and can't hold yet; there it refuses."""

    PASS = "pass"  # noqa: S105  no password
    WARN = "warn"
    PENDING = "pending"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The verdict of a named check; ``reason`` says what was found and, where there is one, the option to overrule."""

    name: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A deterministic list of changes, sorted by group, topic and partition, with its checks."""

    cluster_id: str
    options: WriteOptions
    changes: tuple[Change, ...]
    checks: tuple[Check, ...]

    @cached_property
    def intent(self) -> str:
        """Hash of what a reviewer approves: cluster, groups, topic partitions and options, without offsets."""
        moves = [(change.source_group, *change.order) for change in self.changes]
        return _hash(self.cluster_id, self.options, moves)

    @cached_property
    def content(self) -> str:
        """Hash of everything that would be written, offsets included; binds a plan made for a stopped group."""
        return _hash(self.cluster_id, self.options, self.changes)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all checks."""
        return max((check.verdict for check in self.checks), key=list(Verdict).index, default=Verdict.PASS)

    def to_write(self) -> tuple[Change, ...]:
        """Return the changes that differ from what is there."""
        return tuple(change for change in self.changes if change.action is not Action.UNCHANGED)

    def refusals(self, *, at_the_write: bool) -> tuple[Check, ...]:
        """Return the checks that forbid the write; at the write the pending ones do as well."""
        forbidding = {Verdict.REFUSE, Verdict.PENDING} if at_the_write else {Verdict.REFUSE}
        return tuple(check for check in self.checks if check.verdict in forbidding)


def sorted_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes in a plan's order."""
    return tuple(sorted(changes, key=lambda change: change.order))


def _hash(*values: object) -> str:
    return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()
