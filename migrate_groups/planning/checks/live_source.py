"""Checks of the source group while it may still run. The plan that is written does not have them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.permissions import Operation
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.text import named


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSource:
    """The facts of a source group that may still run.

    - principal: the client's principal. permitted: the operations that it may perform on the group; None if not known.
    - is_held: whether this tool is to keep consumers out of the group.
    - kept: the topics that the group keeps; None if it hands over all topics, or if they can't be handed back to it.
    - settle: seconds for which the groups of a hand-back must have stopped.
    """

    group: GroupDescription
    principal: str
    permitted: frozenset[Operation] | None
    is_held: bool
    kept: Collection[str] | None
    settle: float


def hold(facts: LiveSource) -> Judgement | None:
    """Check that the principal may hold the source group: join it as its first member, so that consumers are kept out.

    None without the option ``hold``. The check refuses if the principal lacks Read on the group. If its permissions are
    not known, neither is the verdict. The check warns if the group never had a member: joining makes
    all its offsets expire together (KIP-211, docs/kafka-behaviour.md#holding-a-group).
    """
    if not facts.is_held:
        return None
    principal, group, permitted = facts.principal, facts.group.group, facts.permitted
    if permitted is not None and Operation.READ not in permitted:
        reason = f"{principal} lacks Read on Group {group!r}, which --hold needs: grant it, or drop --hold"
        return Verdict.REFUSE, reason
    if permitted is None:
        reason = f"the brokers do not return what {principal} may do with Group {group!r}: check its ACLs first"
        return Verdict.NOT_KNOWN, reason
    if not facts.group.protocol_type:
        return Verdict.WARN, (
            f"{group} never had a member: with --hold, all its offsets expire together, "
            "offsets.retention.minutes after the hold; drop --hold to let each expire that long after its own commit"
        )
    return Verdict.PASS, f"{group} can be held during the hand-over"


def way_back(facts: LiveSource) -> Judgement | None:
    """Warn if the source group keeps some topics: a later hand-back of the others requires all its members to stop."""
    if facts.kept is None:
        return None
    group = facts.group.group
    if not facts.kept:
        return Verdict.PASS, f"{group} keeps no topic"
    return Verdict.WARN, (
        f"{group} keeps {named('topic', facts.kept)}: for a hand-back, all its members must stop, for "
        f"{facts.settle:g} s and the time to read and write; a rollback before the new groups start needs no stop"
    )


RULES = (
    Rule(name="hold", scopes=(Scope.LIVE_SOURCE,), judge=hold),
    Rule(name="way back", scopes=(Scope.LIVE_SOURCE,), judge=way_back),
)
