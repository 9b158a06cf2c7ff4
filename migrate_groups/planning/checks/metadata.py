"""Check that brokers accept the metadata of the offsets to write."""

from __future__ import annotations

from migrate_groups.model.partitions import metadata_length
from migrate_groups.planning.change import Action
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import Facts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.text import counted, some

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


RULES = (
    Rule(
        name="metadata",
        scopes=(Scope.HAND_OVER, Scope.HAND_BACK, Scope.TARGET),
        judge=metadata,
        depends_on=("topics", "not moved"),
    ),
)
