"""Check the kind of the groups: groups of Kafka Streams and Connect keep state beside their committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from migrate_groups.model.groups import GroupDescription
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.wanted import Wanted
from migrate_groups.text import some

_INTERNAL = ("-changelog", "-repartition")


def kind(wanted: Sequence[Wanted], survey: Survey, options: WriteOptions) -> Check:
    """Check that every group is a plain consumer group, whose consumers start at its committed offsets.

    A Kafka Streams application has state in topics named after its group, and this state must agree with its committed
    offsets. A Connect sink's group is named after its connector, and Connect has its own API for offsets (KIP-875).
    Both kinds are recognised as far as brokers show them: the Empty group of a Streams application without such topics
    looks like any other group. Flink and Spark start from their own checkpoints, which no broker shows.
    """
    name = "kind"
    involved = {group for row in wanted for group in (row.group, row.source_group) if group is not None}
    groups = [survey.groups[group] for group in sorted(involved)]
    share = [group.group for group in groups if group.group_type == "share"]
    if share:
        reason = f"{some(share)} is a share group, which has no committed offsets (KIP-932)"
        return Check.refused(name, reason)
    internal = [topic for topic in survey.cluster_facts.topic_names if topic.endswith(_INTERNAL)]
    found = [f"{group.group} {other}" for group in groups if (other := _other_kind(group, internal))]
    if not found:
        return Check.passed(name, "plain consumer groups, as far as the brokers show it")
    if not options.any_kind:
        reason = f"{some(found, most=3)}; --any-kind takes them for plain consumer groups"
        return Check.refused(name, reason)
    return Check.warned(name, f"{some(found, most=3)}; taken for plain consumer groups")


def _other_kind(group: GroupDescription, internal_topics: Collection[str]) -> str | None:
    if group.group_type == "streams" or group.assignor == "stream":
        return "is a Kafka Streams application's"
    if group.exists and not group.is_consumer_group:
        return f"is not a consumer group but {group.group_type} {group.protocol_type}".rstrip()
    if group.group.startswith("connect-") or any(
        member.client_id.startswith("connector-consumer-") for member in group.members
    ):
        return "is a Connect sink's"
    topics = [topic for topic in internal_topics if topic.startswith(f"{group.group}-")]
    return f"is a Kafka Streams application's: there is topic {some(topics, most=1)}" if topics else None
