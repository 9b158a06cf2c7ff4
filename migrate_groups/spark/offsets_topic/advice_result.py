"""The result of the job behind ``advise --log``: plain values of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class SharedCost(NamedTuple):
    """What sharing a group costs one of its applications (members that share topics), from ``__consumer_offsets``.

    All times are in seconds. A time without consumption is measured between records: from the last commit of a member's
    partitions to the record of the next generation. None means: not known.

    - assignor: the last assignor of the group; ``consumer`` for a KIP-848 group.
    - applications: the number of applications in the group.
    - regex: whether a member of the group subscribes by a regular expression. Its topics are then not known.
    - clients: the client ids of the application, at most 20.
    - since: the time of the group's first record about members.
    - rebalances: the number of the group's generations that have ended.
    - caused: how many of these generations ended because members of this application joined or left.
    - stood_still: how long the application stood still because members of other applications joined or left.
    - outage: how long the application stood still because its own members joined or left. In a KIP-848 group: how long
      partitions of the application had no owner.
    - replaced: how often all members of the application restarted together.
    - restart_outage: the part of ``outage`` in the restarts of all members.
    - restart_gone: the part of ``restart_outage`` in which the application certainly had no member.
    - single_most: the longest single outage in which not all members restarted.
    - keeps_up: the records consumed divided by the records produced, since ``since``.
    - best_third: the highest ratio of records consumed to records produced in a third of this time.
    - idle: the number of members without a partition in the application's last generation. None in a KIP-848 group.
    - spread: the records that the busiest member consumed, divided by the mean of all members.
    - missing: the number of records in the group's partition of ``__consumer_offsets`` that were compacted away or have
      expired.
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
    """A generation of a classic group: the time from one rebalance to the next.

    - until: when the next generation began; None: the log has no next generation.
    - members: the number of members.
    - joined, left: the client ids of the members that joined or left at ``until``; None if ``until`` is None.
    - caused_by: the applications (members that share topics) whose members joined or left.
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
    """A client id in a group, its application (the members that share topics), and the topics that it subscribes to."""

    group: str
    application: str
    client_id: str
    topics: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What shared groups cost each application (the members of a group that share topics).

    Each list has at most 1000 rows.

    - applications: sorted by the number of applications in the group, then by how long the application stood still
      because of others, the highest first.
    - found: the number of all applications.
    - generations: of the groups with several applications, the latest first.
    - subscriptions: of the groups with several applications.
    """

    applications: tuple[SharedCost, ...]
    found: int
    generations: tuple[Generation, ...]
    subscriptions: tuple[Subscription, ...]
