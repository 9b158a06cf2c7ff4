"""Checks of the offsets to write: brokers accept them, keep them, and the second client can read them back."""

from __future__ import annotations

from datetime import timedelta

from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import metadata_length
from migrate_groups.planning.change import Action, share_groups
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import Facts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.text import counted, named, some

_DEFAULT = 4096


def metadata(facts: Facts) -> Judgement | None:
    """Check that no metadata is longer than ``offset.metadata.max.bytes``. None if there is no metadata.

    If the brokers do not report this setting, its default is assumed, and the verdict is at best ``not known``.
    """
    lengths = {
        f"{change.group} {change.topic_partition}": metadata_length(change.after.metadata)
        for change in facts.changes
        if change.after is not None and change.after.metadata and change.action is not Action.UNCHANGED
    }
    if not lengths:
        return None
    known = facts.survey.cluster_facts.metadata_limit
    limit = _DEFAULT if known is None else known
    setting = f"offset.metadata.max.bytes is {limit:,}"
    if known is None:
        setting = f"{setting} by default; grant DescribeConfigs on Cluster to read it"
    if longer := [f"{place}: {length:,}" for place, length in lengths.items() if length > limit]:
        reason = (
            f"{counted(len(longer), 'offset')} with longer metadata than brokers accept: {some(longer, most=3)} "
            f"characters, and {setting}: shorten it, or raise the setting"
        )
        return Verdict.REFUSE, reason
    longest = f"the longest metadata has {counted(max(lengths.values()), 'character')}, and {setting}"
    return (Verdict.NOT_KNOWN if known is None else Verdict.PASS), longest


_SHORT = timedelta(days=1)


def retention(facts: Facts) -> Judgement:
    """Report when the offsets written to the target groups expire, and warn if that may be soon (KIP-211).

    The verdict is ``not known`` if the brokers do not report it.

    In a classic group that has had members, all offsets expire ``offsets.retention.minutes`` after the last member
    left. In other groups, each offset expires this long after its commit (docs/kafka-behaviour.md#expiry).
    """
    # Start offsets of share groups do not expire (docs/kafka-behaviour.md#share-groups).
    changes = [change for change in facts.changes if not change.is_share]
    kept = facts.survey.cluster_facts.offsets_retention
    if not changes:
        why = "start offsets of share groups do not expire" if facts.changes else "no offset is written"
        return Verdict.NOT_APPLICABLE, why
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


def second_client(facts: Facts) -> Judgement | None:
    """Say that confluent-kafka is to read the offsets back and can't. None if it can, or if it is not to.

    The check refuses if the option ``second_client`` is "required", and warns if it is "auto".
    """
    lacks, mode = facts.survey.cluster_facts.second_client_lacks, facts.options.second_client
    if not lacks and (shares := share_groups(facts.changes)):
        lacks = f"confluent-kafka has no request for the start offsets of {named('share group', shares)}"
    if not lacks or mode == "none":
        return None
    if mode == "required":
        return Verdict.REFUSE, f"{lacks}, so it can't read back: pass --second-client none"
    return Verdict.WARN, f"{lacks}: kafka-python alone reads back"


_OF = (Scope.HAND_OVER, Scope.HAND_BACK, Scope.TARGET)
RULES = (
    Rule(name="metadata", scopes=_OF, judge=metadata, depends_on=("topics", "not moved")),
    Rule(name="retention", scopes=_OF, judge=retention),
    Rule(name="second client", scopes=_OF, judge=second_client),
)
