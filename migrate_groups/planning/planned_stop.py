"""What a cut-over asks of the applications of the source group: who must stop, who may stay, and for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.planning.checks.source import holding, may_consume, shows_topics

# Measured: 0.6 s for 10,000 partitions, 3.6 s for 50,000 (docs/evidence/performance.md).
_PARTITIONS_A_SECOND = 10_000
# The default of group.initial.rebalance.delay.ms, for which the coordinator keeps the first member of a group waiting.
_HOLD_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStop:
    """The stop of a source group, as planned from its description.

    source: the source group with its members. moved: the topics that members must stop consuming; None: every member
    must leave. stay: the topics that stay with the source group. partitions: how many are handed over. settle: seconds
    for which the stopped group must not commit before the write. wait: seconds within which it must stop. hold:
    consumers are kept out of the stopped group. resumed: an earlier run has written offsets.
    """

    source: GroupDescription
    moved: frozenset[str] | None
    stay: tuple[str, ...]
    partitions: int
    settle: float
    wait: float
    hold: bool
    resumed: bool

    @property
    def must_stop(self) -> tuple[Member, ...]:
        """The members that must stop consuming the moved topics; all members if it is not known which (`is_clear`)."""
        return holding(self.source, self.moved)

    @property
    def must_go_on(self) -> tuple[Member, ...]:
        """The members that must stop consuming the moved topics, and go on with the topics that stay.

        They consume topics of both kinds now.
        """
        return tuple(member for member in self.must_stop if may_consume(member, {*self.stay}))

    @property
    def may_stay(self) -> tuple[Member, ...]:
        """The members that may keep running."""
        stopping = {member.member_id for member in self.must_stop}
        return tuple(member for member in self.source.members if member.member_id not in stopping)

    @property
    def is_clear(self) -> bool:
        """Whether it is known which members must stop. It is not while a source group that keeps topics rebalances."""
        return self.moved is None or not self.source.members or shows_topics(self.source)

    @property
    def parts(self) -> dict[str, float]:
        """How long each step takes during which no group consumes, in seconds, by the name of the step.

        The watch after the write does not count, because the target groups start before it.
        """
        steps = {
            "to settle": self.settle,
            "to join for --hold": _HOLD_SECONDS if self.hold else 0.0,
            "to read, check, write and read back": float(max(1, math.ceil(self.partitions / _PARTITIONS_A_SECOND))),
        }
        return {step: seconds for step, seconds in steps.items() if seconds}
