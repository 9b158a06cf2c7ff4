"""Which members of the source group must stop for a cut-over, which may stay, and how long the stop takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.planning.checks.source import holding, may_consume, shows_topics

# Measured: 0.6 s for 10,000 partitions, 3.6 s for 50,000 (docs/evidence/performance.md).
_PARTITIONS_A_SECOND = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStop:
    """The stop of a source group, as planned from its description.

    source: the source group with its members. moved: the topics that members must stop consuming; None if every member
    must leave the group. stay: the topics that stay with the source group. partitions: the number of partitions that
    are handed over. settle: seconds without a commit that must pass between the stop and the write. wait: seconds
    within which the group must stop. resumed: whether an earlier run has written offsets.
    """

    source: GroupDescription
    moved: frozenset[str] | None
    stay: tuple[str, ...]
    partitions: int
    settle: float
    wait: float
    resumed: bool

    @property
    def must_stop(self) -> tuple[Member, ...]:
        """The members that must stop consuming the moved topics.

        All members are returned if the group's description does not show which of them consume these topics (`is_clear`
        is False).
        """
        return holding(self.source, self.moved)

    @property
    def must_go_on(self) -> tuple[Member, ...]:
        """The members that consume both moved topics and topics that stay.

        They must stop consuming the moved topics, and go on with the topics that stay.
        """
        return tuple(member for member in self.must_stop if may_consume(member, {*self.stay}))

    @property
    def may_stay(self) -> tuple[Member, ...]:
        """The members that may keep running as they are, because they consume none of the moved topics."""
        stopping = {member.member_id for member in self.must_stop}
        return tuple(member for member in self.source.members if member.member_id not in stopping)

    @property
    def is_clear(self) -> bool:
        """Whether the group's description shows which members must stop.

        It is False if the source group has members, keeps topics and is not Stable, for instance while it rebalances:
        its description does not show then which member has which topics.
        """
        return self.moved is None or not self.source.members or shows_topics(self.source)

    @property
    def parts(self) -> dict[str, float]:
        """The expected duration in seconds of each step in which no group consumes, by the name of the step.

        Steps that take no time are left out. The watch of the source group after the write is not included, because the
        target groups start before it.
        """
        steps = {
            "to settle": self.settle,
            "to read, check, write and read back": float(max(1, math.ceil(self.partitions / _PARTITIONS_A_SECOND))),
        }
        return {step: seconds for step, seconds in steps.items() if seconds}
