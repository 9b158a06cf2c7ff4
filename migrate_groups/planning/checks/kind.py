"""Check the kind of the groups: groups of Kafka Streams and Connect keep state beside their committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from migrate_groups.model.groups import GroupDescription
from migrate_groups.planning.change import Change
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check
from migrate_groups.planning.survey import Survey
from migrate_groups.text import named, some

_INTERNAL = ("-changelog", "-repartition")


def kind(wanted: Sequence[Change], survey: Survey, options: WriteOptions) -> Check:
    """Check that all groups are plain consumer groups, which start at committed offsets and keep no other state.

    The check refuses share groups, Connect sinks, groups that are not consumer groups, and Kafka Streams applications
    with internal topics. With the option ``any_kind``, it refuses only share groups. It can't recognise Flink and
    Spark, which start from their own checkpoints.
    """
    name = "kind"
    involved = {group for row in wanted for group in (row.group, row.source_group) if group is not None}
    # In a move, each cluster has only its own groups.
    groups = [survey.groups[group] for group in sorted(involved & survey.groups.keys())]
    if not groups:
        return Check.not_applicable(name, "no group to write to")
    share = [group.group for group in groups if group.group_type == "share"]
    if share:
        reason = f"{named('share group', share)} without committed offsets (KIP-932): use Kafka's kafka-share-groups.sh"
        return Check.refused(name, reason)
    internal = sorted(topic for topic in survey.cluster_facts.topic_names if topic.endswith(_INTERNAL))
    found = [f"{group.group} {other}" for group in groups if (other := other_kind(group, internal))]
    if found and not options.any_kind:
        connectors = sorted({connector for group in groups for connector in group.connectors})
        stop = f"; {_stopping(connectors)}" if connectors else ""
        reason = f"{some(found, most=3)}{stop}; pass --any-kind to treat every group as a plain consumer group"
        return Check.refused(name, reason)
    if found:
        return Check.warned(name, f"{some(found, most=3)}; treated as a plain consumer group (--any-kind)")
    if streams := [group.group for group in groups if is_streams(group)]:
        reason = (
            f"{named('group', streams)} of Kafka Streams without internal topics, as far as this principal sees them"
        )
        return Check.warned(name, f"{reason}; give the new application the new group as its application.id")
    if not any(group.exists for group in groups):
        return Check.not_applicable(name, "no group exists yet, and no internal topic of Kafka Streams has their names")
    return Check.passed(name, "all groups are plain consumer groups, as far as brokers show it")


def _stopping(connectors: Sequence[str]) -> str:
    """Return how Kafka Connect stops connectors, so that their tasks leave the group (KIP-875)."""
    request = some([f"PUT /connectors/{each}/stop" for each in connectors], most=3)
    return f"stop it in Connect with {request}, because a connector that is PAUSED and not STOPPED stays a member"


def is_streams(group: GroupDescription) -> bool:
    """Return whether a group's description shows that it belongs to Kafka Streams.

    The result is False for a stopped classic group, because brokers return no assignor for an Empty group.
    """
    return group.group_type == "streams" or group.assignor == "stream"


def other_kind(group: GroupDescription, internal_topics: Collection[str]) -> str | None:
    """Return why a group is not a plain consumer group, such as ``belongs to a Connect sink``; None if it is one.

    internal_topics: the internal topics of Kafka Streams in the cluster.
    """
    if reason := group.not_a_consumer_group:
        return f"{reason}{group.connect and f' ({group.connect})'}"
    if group.connect:
        return f"belongs to {group.connect}"
    # The state in internal topics fits only the committed offsets of this group.
    topics = [topic for topic in internal_topics if topic.startswith(f"{group.group}-")]
    return f"belongs to a Kafka Streams application with state: it has {named('topic', topics)}" if topics else None
