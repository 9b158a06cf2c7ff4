"""Whether the old group can be held: joined by us when it has stopped, so that nobody else can."""

from __future__ import annotations

from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.permissions import Operation
from migrate_groups.planning.plan import Check


def can_be_held(principal: str, source: GroupDescription, permitted: frozenset[Operation] | None) -> Check:
    """The principal may join the source group: Read on it. A group that never had a member pays with its offsets.

    The offsets of such a group expire one by one after their commit; one that had members has all of them expire one
    retention after the last of them left (KIP-211), and the hold is a member that leaves
    (docs/kafka-behaviour.md#holding-a-group).
    """
    if permitted is not None and Operation.READ not in permitted:
        reason = f"{principal} lacks Read on Group {source.group!r}, which joining it takes; grant it, or drop --hold"
        return Check.refused("hold", reason)
    if not source.protocol_type:
        reason = (
            f"{source.group} never had a member: once held, all its offsets expire together, one offsets.retention "
            "after the hold; without --hold each counts from its own commit"
        )
        return Check.warned("hold", reason)
    return Check.passed("hold", f"{source.group} can be kept shut while it is handed over")
