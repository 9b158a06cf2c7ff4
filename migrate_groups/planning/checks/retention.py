"""Report when the offsets written to the target groups expire if no consumer joins these groups."""

from __future__ import annotations

from datetime import timedelta

from migrate_groups.model.groups import GroupDescription
from migrate_groups.planning.change import Action
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import Facts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.text import counted, some

_SHORT = timedelta(days=1)


def retention(facts: Facts) -> Judgement:
    """Report when the offsets written to the target groups expire, and warn if that may be soon (KIP-211).

    The verdict is ``not known`` if the brokers do not report it.

    In a classic group that has had members, all offsets expire ``offsets.retention.minutes`` after the last member
    left. In other groups, each offset expires this long after its commit (docs/kafka-behaviour.md#expiry).
    """
    changes, kept = facts.changes, facts.survey.cluster_facts.offsets_retention
    if not changes:
        return Verdict.NOT_APPLICABLE, "no offset is written"
    if kept is None:
        reason = "offsets.retention.minutes is not known (default: 7 days); grant DescribeConfigs on Cluster to read it"
        return Verdict.NOT_KNOWN, reason
    targets = sorted({change.group for change in changes})
    started = [group for group in targets if _counts_from_last_member(facts.survey.groups[group])]
    if started:
        reason = (
            f"all offsets of {some(started)}, the new ones too, expire {_duration(kept)} after the group's last member "
            "left; start its consumers soon"
        )
        return Verdict.WARN, reason
    unchanged = sum(change.action is Action.UNCHANGED for change in changes)
    earlier = f", {counted(unchanged, 'unchanged offset')} {_duration(kept)} after the commit" if unchanged else ""
    reason = f"the new offsets expire in {_duration(kept)}{earlier}, unless a consumer joins the group before"
    return (Verdict.WARN if kept < _SHORT else Verdict.PASS), reason


def _counts_from_last_member(group: GroupDescription) -> bool:
    # A classic group keeps the protocol type of its last member. A group that never had a member has no protocol type.
    return group.group_type == "classic" and group.protocol_type == "consumer"


def _duration(time: timedelta) -> str:
    minutes = time // timedelta(minutes=1)
    for unit, size in (("day", 24 * 60), ("hour", 60)):
        if minutes and minutes % size == 0:
            return counted(minutes // size, unit)
    return counted(minutes, "minute")


RULES = (Rule(name="retention", scopes=(Scope.HAND_OVER, Scope.HAND_BACK, Scope.TARGET), judge=retention),)
