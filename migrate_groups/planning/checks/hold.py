"""Check that this tool can hold the source group: join it as its first member, so that consumers are kept out."""

from __future__ import annotations

from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.permissions import Operation
from migrate_groups.planning.plan import Check


def can_be_held(principal: str, source: GroupDescription, permitted: frozenset[Operation] | None) -> Check:
    """Check that the principal may hold the source group: join it as its first member, so that consumers are kept out.

    The check refuses if the principal lacks Read on the group. permitted: the operations that it may perform; with None
    the verdict is ``not known``. The check warns if the group never had a member: joining makes
    all its offsets expire together (KIP-211, docs/kafka-behaviour.md#holding-a-group).
    """
    if permitted is not None and Operation.READ not in permitted:
        reason = f"{principal} lacks Read on Group {source.group!r}, which --hold needs: grant it, or drop --hold"
        return Check.refused("hold", reason)
    if permitted is None:
        reason = f"the brokers do not return what {principal} may do with Group {source.group!r}: check its ACLs first"
        return Check.not_known("hold", reason)
    if not source.protocol_type:
        reason = (
            f"{source.group} never had a member: with --hold, all its offsets expire together, "
            "offsets.retention.minutes after the hold; drop --hold to let each expire that long after its own commit"
        )
        return Check.warned("hold", reason)
    return Check.passed("hold", f"{source.group} can be held during the hand-over")
