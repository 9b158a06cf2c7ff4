"""The result of the job behind ``advise --log``: plain values of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class SharedCost(NamedTuple):
    """What sharing a group costs one of its applications (members that share topics), from ``__consumer_offsets``.

    All times are seconds; None: not known.

    - assignor: the last assignor of the group; ``consumer`` for a KIP-848 group.
    - applications: the number of applications in the group.
    - regex: whether a member of the group subscribes by a regular expression, whose topics are then not known.
    - clients: the client ids of the application, at most 20.
    - since: the time of the group's first record about members.
    - rebalances: the number of generations of the group that have ended since then.
    - caused: how many of these generations ended because members of this application joined or left.
    - stood_still: an upper bound of the total time for which the application stood still because members of other
      applications joined or left. Generations for which this time is not known are left out.
    - outage: the same for its own members that joined or left. In a KIP-848 group: the total time in which partitions
      of the application had no owner.
    - replaced: how often all members of the application restarted together.
    - restart_outage: the part of ``outage`` in these restarts.
    - restart_gone: the part of ``restart_outage`` in which the application certainly had no member.
    - single_most: the longest single outage in which not all members restarted.
    - keeps_up: the number of records consumed divided by the number produced, since ``since``. None: nothing was
      produced, or the history of the group was not computed.
    - best_third: the highest ratio of the three thirds of this period, each computed like ``keeps_up``. None: one of
      them is not known.
    - idle: the number of members without a partition in the last generation in which the application had members. None:
      not known, as in a KIP-848 group.
    - spread: the number of records that the busiest member consumed, divided by the mean of all members of the
      application; an average over the generations, weighted by records. None: not known, or nothing was consumed.
    - missing: how many records of the group's partition of ``__consumer_offsets``, which other groups may share, were
      compacted away or have expired.
    """

    group: str
    application: str
    assignor: str
    applications: int
    regex: bool
    topics: list[str]
    clients: list[str]
    since: datetime
    rebalances: int
    caused: int
    stood_still: float | None
    outage: float | None
    replaced: int
    restart_outage: float | None
    restart_gone: float | None
    single_most: float | None
    keeps_up: float | None
    best_third: float | None
    idle: int | None
    spread: float | None
    missing: int


class Generation(NamedTuple):
    """A generation of a classic group.

    until: when the next generation began; None for the last one. members: the number of members. joined, left: the
    client ids of the members that joined or left at the end of the generation. caused_by: the applications of these
    members.
    """

    group: str
    generation: int
    assignor: str
    since: datetime
    until: datetime | None
    members: int
    joined: list[str] | None
    left: list[str] | None
    caused_by: list[str]


class Subscription(NamedTuple):
    """A client id in a group, its application, and the topics to which the members with this client id subscribed."""

    group: str
    application: str
    client_id: str
    topics: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What sharing groups costs their applications. Each list has at most 1000 rows (`audit_result.MAX_ROWS`).

    applications: sorted by the number of applications in their group, then by the time for which other applications'
    rebalances made them stand still (``stood_still``), the highest first. found: the number of all applications.
    generations: the latest generations of the groups that several applications share. subscriptions: one row for each
    client id in these groups, with its topics, sorted by group.
    """

    applications: tuple[SharedCost, ...]
    found: int
    generations: tuple[Generation, ...]
    subscriptions: tuple[Subscription, ...]
