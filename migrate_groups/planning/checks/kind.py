"""Check the kind of the groups: Kafka Streams and workers of Connect keep state beside their committed offsets."""

from __future__ import annotations

from collections.abc import Collection

from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.planning.change import share_groups
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import HandOverFacts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.text import named, some

_INTERNAL = ("-changelog", "-repartition")
_DEFAULT_GROUP = "connect-"  # and the name of the connector


def kind(facts: HandOverFacts) -> Judgement:
    """Check that all groups are plain consumer groups, which start at committed offsets and keep no other state.

    The check refuses groups of this tool, share groups that are not wanted as such, groups that are not consumer
    groups, and Kafka Streams applications with internal topics. With the option ``any_kind``, it refuses only the first
    two. It warns about Connect sinks, which must be STOPPED. It can't recognise Flink and Spark, which start from their
    own checkpoints.
    """
    involved = {group for each in facts.wanted for group in (each.group, each.source_group) if group is not None}
    described = facts.survey.groups
    # In a move, each cluster has only its own groups.
    groups = [described[group] for group in sorted(involved & described.keys())]
    if not groups:
        return Verdict.NOT_APPLICABLE, "no group to write to"
    if own := sorted(group for group in involved if group.startswith(OWN_GROUPS)):
        return Verdict.REFUSE, f"{named('group', own)} of this tool: choose another name, without {OWN_GROUPS!r}"
    # In a move, the old group may have the same name as a share group on the other cluster.
    shares = {*share_groups(facts.wanted)} - {each.source_group for each in facts.wanted}
    if wrong := [
        f"{group.group} exists, and is {'no' if group.group in shares else 'a'} share group"
        for group in groups
        if group.exists and (group.group_type == "share") is not (group.group in shares)
    ]:
        return Verdict.REFUSE, f"{some(wrong, most=3)}: name another group, or correct its type in the spec"
    groups = [group for group in groups if group.group not in shares]
    internal = sorted(topic for topic in facts.survey.cluster_facts.topic_names if topic.endswith(_INTERNAL))
    found = [f"{group.group} {other}" for group in groups if (other := other_kind(group, internal))]
    if found and not facts.options.any_kind:
        reason = f"{some(found, most=3)}; such a group can't be moved: pass --any-kind only if it is a consumer group"
        return Verdict.REFUSE, reason
    if found:
        return Verdict.WARN, f"{some(found, most=3)}; treated as a plain consumer group (--any-kind)"
    if sinks := [advice for group in groups for advice in _of_sinks(group)]:
        return Verdict.WARN, (
            f"{some(sinks, most=3)}; a sink must be STOPPED before the write, because a PAUSED one stays a member; "
            'create a new one with "initial_state": "STOPPED"'
        )
    if streams := [group.group for group in groups if is_streams(group)]:
        reason = (
            f"{named('group', streams)} of Kafka Streams without internal topics, as far as this principal sees them"
        )
        return Verdict.WARN, f"{reason}; give the new application the new group as its application.id"
    if not any(group.exists for group in groups):
        return Verdict.NOT_APPLICABLE, "no group exists yet, and no internal topic of Kafka Streams has their names"
    return Verdict.PASS, "all groups are plain consumer groups, as far as brokers show it"


def share(facts: HandOverFacts) -> Judgement | None:
    """Warn that there is no exact way back from share groups that have started. None if no target is a share group.

    The check refuses if the brokers do not offer the requests for start offsets (KIP-932).
    """
    if not (shares := share_groups(facts.wanted)):
        return None
    if not facts.survey.cluster_facts.offers.alters_share_groups:
        return Verdict.REFUSE, "the brokers do not set start offsets of share groups: they need Kafka 4.2 or later"
    return Verdict.WARN, f"no exact way back once a member joins {some(shares)}: rollback is possible only before"


def _of_sinks(group: GroupDescription) -> list[str]:
    """Return the sink connectors of a group, with the request that stops them, so that their tasks leave (KIP-875).

    A group without their tasks may belong to a stopped sink if it has the default name of a sink's group.
    """
    by_name = group.group.removeprefix(_DEFAULT_GROUP)
    names = group.connectors or ([by_name] if by_name != group.group else [])
    verb = "belongs to" if group.connectors else "may be the group of"
    return [f"{group.group} {verb} Connect sink {name} (PUT /connectors/{name}/stop)" for name in names]


def is_streams(group: GroupDescription) -> bool:
    """Return whether a group's description shows that it belongs to Kafka Streams.

    The result is False for a stopped classic group, because brokers return no assignor for an Empty group.
    """
    return group.group_type == "streams" or group.assignor == "stream"


def other_kind(group: GroupDescription, internal_topics: Collection[str]) -> str | None:
    """Return why a group's committed offsets are not its whole position; None if they are.

    internal_topics: the internal topics of Kafka Streams in the cluster.
    """
    if reason := group.not_a_consumer_group:
        return f"{reason}{group.connect and f' ({group.connect})'}"
    # The state in internal topics fits only the committed offsets of this group.
    topics = [topic for topic in internal_topics if topic.startswith(f"{group.group}-")]
    return f"belongs to a Kafka Streams application with state: it has {named('topic', topics)}" if topics else None


RULES = (
    Rule(name="kind", scopes=(Scope.HAND_OVER, Scope.HAND_BACK, Scope.SOURCE, Scope.TARGET), judge=kind),
    Rule(name="share groups", scopes=(Scope.HAND_OVER, Scope.TARGET), judge=share),
)
