"""Find groups that several applications share, and members without a partition, from one description of all groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrate_groups.clock import Clock
from migrate_groups.migration.advise.application import Application, applications
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.groups import list_groups
from migrate_groups.migration.reading.status import GroupStatus
from migrate_groups.model.groups import Member
from migrate_groups.planning.checks.kind import is_streams, other_kind
from migrate_groups.text import counted, some

_NO_MEMBERS = "it has no members: stopped, or consumers without membership; run it while they consume"


class Finding(StrEnum):
    """The main finding about the applications of a consumer group. The values are in order, the worst first.

    - shared: several applications share the group.
    - joined by one subscription: if one subscription, such as a regex, were removed, the members would be several
      applications.
    - members without a partition: the group is one application, and some members have no partition.
    - not known: the members or their subscriptions are not known.
    - nothing to do: no finding.
    """

    SHARED = "shared"
    JOINED = "joined by one subscription"
    IDLE = "members without a partition"
    UNKNOWN = "not known"
    NOTHING = "nothing to do"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdvice:
    """A consumer group, and the finding about its applications.

    advice: the finding as text for users. applications: None if they are not known. broad: the members whose
    subscription, such as a regular expression, connects topics that would otherwise belong to several applications.
    """

    status: GroupStatus
    finding: Finding
    advice: str
    applications: tuple[Application, ...] | None = None
    broad: tuple[Member, ...] = ()

    @property
    def idle(self) -> tuple[Member, ...]:
        """The members without an assigned partition; empty if ``applications`` is None."""
        return idle(self.status.members or ()) if self.applications is not None else ()

    @property
    def unsubscribed(self) -> frozenset[str]:
        """The topics with a committed offset to which no member of the group subscribes.

        Empty if the subscriptions are not known.
        """
        if self.applications is None:
            return frozenset()
        return self.status.topics.difference(*(each.topics for each in self.applications))


def advise(reader: GroupReader, clock: Clock, groups: Sequence[str] = ()) -> tuple[GroupAdvice, ...]:
    """Return what was found about each of these groups, or about all groups if none is named; the worst finding first.

    A finding says whether several applications share the group, and whether members have no partition. Raises
    `GroupNotFound`.
    """
    return tuple(sorted(map(judge, list_groups(reader, clock, names=groups)), key=_rank))


def judge(status: GroupStatus) -> GroupAdvice:
    """Return whether several applications share the group, and whether members have no partition, as far as known."""
    if is_streams(status.description):
        return _nothing(status, "the topics of a Kafka Streams application belong together")
    if other := other_kind(status.description, ()):
        return _nothing(status, f"it {other}")
    if status.description.connectors:
        return _nothing(status, f"it belongs to {status.description.connect}")
    if status.group_type not in ("classic", "consumer"):
        return _nothing(status, f"it is a {status.group_type} group")
    if status.members is None:
        return _unknown(status, "; ".join(status.remarks))
    if not status.members:
        return _unknown(status, _NO_MEMBERS)
    # While a classic group rebalances, its description has no subscriptions.
    if status.state != "Stable":
        return _unknown(status, f"it is {status.state}: run it again when it is Stable")
    return _judged(status, status.members)


def idle(members: Sequence[Member]) -> tuple[Member, ...]:
    """Return the members without an assigned partition."""
    return tuple(member for member in members if not member.assignment)


def _judged(status: GroupStatus, members: Sequence[Member]) -> GroupAdvice:
    found = applications(members, status.topics)
    broad, without = max((each.joining() for each in found), key=lambda each: len(each[1]), default=((), []))
    idlers = idle(members)
    said = f"{len(idlers):,} of {counted(len(members), 'member')} without a partition" if idlers else ""
    alike = [each.name for each in found if each.unconnected > 1]
    if len(found) > 1:
        finding, advice = Finding.SHARED, f"{len(found)} applications share it: {some([each.name for each in found])}"
    elif broad:
        clients = some({member.client_id for member in broad}, most=2)
        finding = Finding.JOINED
        advice = f"one application; it would be {len(without)} without the subscription of {clients}"
    elif idlers:
        finding, advice, said = Finding.IDLE, said, ""
    else:
        finding, advice = Finding.NOTHING, "nothing to do: one application, and each member has a partition"
    by_client_ids = f"one application by client ids alone, not by topics: {some(alike)}" if alike else ""
    advice = "; ".join(filter(None, (advice, said, by_client_ids)))
    return GroupAdvice(status=status, finding=finding, advice=advice, applications=found, broad=broad)


def _nothing(status: GroupStatus, why: str) -> GroupAdvice:
    return GroupAdvice(status=status, finding=Finding.NOTHING, advice=f"nothing to split: {why}")


def _unknown(status: GroupStatus, why: str) -> GroupAdvice:
    return GroupAdvice(status=status, finding=Finding.UNKNOWN, advice=f"not known: {why}")


def _rank(advice: GroupAdvice) -> tuple[int, int, int, int, str]:
    return (
        [*Finding].index(advice.finding),
        -len(advice.applications or ()),
        -len(advice.idle),
        -(advice.status.lag or 0),
        advice.status.group,
    )
