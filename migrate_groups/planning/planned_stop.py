"""The stop of a source group before the write: the members that must stop, those that may go on, and the duration."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.planning.checks.source import holding, may_consume, shows_topics

# Measured: 0.6 s for 10,000 partitions, 3.6 s for 50,000 (docs/evidence/performance.md).
_PARTITIONS_A_SECOND = 10_000
# From the stop to START: two until settle begins (description; offsets and topics) and six from its end; without settle
# 21 (docs/kafka-behaviour.md#which-reading-comes-after-which).
_ROUND_TRIPS, _ROUND_TRIPS_WITHOUT_SETTLE = 8, 21
# Seconds between heartbeats: the defaults of heartbeat.interval.ms and of group.consumer.heartbeat.interval.ms
# (docs/kafka-behaviour.md#members-and-states).
_CLASSIC_HEARTBEAT, _KIP_848_HEARTBEAT = 3.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStop:
    """The stop of a source group before its offsets are handed over, as planned from the group's description.

    - moved: the topics that members must stop consuming; None if every member must leave the group.
    - stay: the topics that stay with the source group.
    - partitions: the number of partitions that are handed over.
    - settle: seconds without a commit that must pass between the stop and the write.
    - wait: seconds within which the group must stop.
    - resumed: whether an earlier run has written offsets.
    - round_trip: seconds from a request to its response, as measured on the connection to the brokers.
    - mirror_lag: seconds that a mirror between two clusters was behind.
    """

    source: GroupDescription
    moved: frozenset[str] | None
    stay: tuple[str, ...]
    partitions: int
    settle: float
    wait: float
    resumed: bool
    round_trip: float = 0.0
    mirror_lag: float = 0.0

    @property
    def must_stop(self) -> tuple[Member, ...]:
        """The members that must stop consuming the topics that are handed over.

        All members are returned if the group's description does not show which topics each member consumes.
        """
        return holding(self.source, self.moved)

    @property
    def must_go_on(self) -> tuple[Member, ...]:
        """The members that must stop consuming the topics that are handed over, and go on with their other topics."""
        return tuple(member for member in self.must_stop if may_consume(member, {*self.stay}))

    @property
    def may_stay(self) -> tuple[Member, ...]:
        """The members that may keep running as they are, because they consume no topic that is handed over."""
        stopping = {member.member_id for member in self.must_stop}
        return tuple(member for member in self.source.members if member.member_id not in stopping)

    @property
    def is_clear(self) -> bool:
        """Whether the group's description shows which members must stop; often False during a rebalance."""
        return self.moved is None or not self.source.members or shows_topics(self.source)

    @property
    def to_rejoin(self) -> float:
        """The expected seconds until the members that stay have rejoined after the stop; 0 if no member stays or stops.

        Until then the group's description does not show which members have which topics.
        """
        if not (self.must_stop and self.may_stay):
            return 0.0
        protocols = [member.group_protocol or self.source.group_type for member in self.may_stay]
        intervals = Counter(_CLASSIC_HEARTBEAT if each == "classic" else _KIP_848_HEARTBEAT for each in protocols)
        # Each learns of the rebalance at its next heartbeat, and the last one counts: of times that are spread evenly
        # over the interval, the last one on average. If classic members rejoin a KIP-848 group, the others learn of it
        # at a further heartbeat.
        return sum(interval * members / (members + 1) for interval, members in intervals.items())

    @property
    def parts(self) -> dict[str, float]:
        """The expected seconds of each step in which no group consumes, by the name of the step.

        Steps that take no time are left out.
        """
        steps = {
            "until the members that stay have rejoined": float(round(self.to_rejoin)),
            # While the group settles, the mirror delivers what it is behind.
            "for the mirror": float(math.ceil(max(0.0, min(self.mirror_lag, most_behind(self.settle)) - self.settle))),
        }
        then = steps_until_start(self.settle, self.partitions, self.round_trip)
        return {step: seconds for step, seconds in steps.items() if seconds} | then


def most_behind(settle: float) -> float:
    """Return the seconds that a mirror may be behind when the source group is asked to stop.

    The group is stopped for ``settle`` in any case. Meanwhile the mirror delivers what was produced before the stop.
    """
    return max(settle, 10.0)


def steps_until_start(settle: float, partitions: int, round_trip: float = 0.0) -> dict[str, float]:
    """Return the expected seconds of each step until applications may start, by the name of the step.

    Steps that take no time are left out. settle: seconds without a commit. partitions: the number that is written.
    round_trip: seconds from a request to its response.
    """
    round_trips = _ROUND_TRIPS if settle else _ROUND_TRIPS_WITHOUT_SETTLE
    writing = partitions / _PARTITIONS_A_SECOND + round_trips * round_trip
    steps = {"to settle": settle, "to read, check, write and read back": float(max(1, math.ceil(writing)))}
    return {step: seconds for step, seconds in steps.items() if seconds}
