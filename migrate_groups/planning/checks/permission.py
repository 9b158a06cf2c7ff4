"""Whether this principal may do all that a write takes, as the brokers say before anything is written (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.plan import Check
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.wanted import Wanted
from migrate_groups.text import some

Permissions = Mapping[Resource, frozenset[Operation] | None]
OFFSETS = Resource(ResourceType.TOPIC, OFFSETS_TOPIC)
"""What no application reads: whoever may describe it may most likely describe every topic."""
_LOOK = frozenset({Operation.DESCRIBE})
_WRITE = frozenset({Operation.DESCRIBE, Operation.READ})


def permission(rows: Sequence[Wanted], survey: Survey) -> Check:
    """The principal may read the source groups, and write the targets: Read on the group and on each topic.

    See docs/kafka-behaviour.md#what-a-principal-may-not-see.

    Delete on a target and Read on a source group are for a rollback alone: their lack is a warning.
    """
    name = "permission"
    wanted, permissions = needed(rows), survey.cluster_facts.permissions
    principal = survey.cluster_facts.principal
    lacking = missing(wanted, permissions)
    if lacking:
        reason = f"{principal} lacks {some(lacking, most=20)}; grant it these permissions"
        return Check.refused(name, reason)
    silent = [resource for resource in wanted if permissions[resource] is None]
    if silent:
        reason = f"the brokers don't say what {principal} may do with {some(silent)}"
        return Check.warned(name, reason)
    deletes = {Resource(ResourceType.GROUP, row.group): frozenset({Operation.DELETE}) for row in rows if row.group}
    sets = {Resource(ResourceType.GROUP, row.source_group): _WRITE for row in rows if row.source_group}
    lacking = missing(sets | deletes, permissions)
    if lacking:
        reason = f"{principal} lacks {some(lacking)}: a rollback would be refused"
        return Check.warned(name, reason)
    return Check.passed(name, f"{principal} may do all of it, and roll it back")


def hidden_topics(rows: Sequence[Wanted], survey: Survey) -> Check:
    """Nothing of an old group is hidden: Kafka leaves a topic without Describe out of its answers.

    See docs/kafka-behaviour.md#what-a-principal-may-not-see.

    No broker says how much it hides. A principal that may not describe `OFFSETS` is warned.
    """
    name = "hidden topics"
    sources = {row.source_group for row in rows if row.source_group is not None}
    if not sources or OFFSETS.name in survey.cluster_facts.topic_names:
        return Check.passed(name, "no topic is hidden, as far as the brokers show it")
    reason = (
        f"{survey.cluster_facts.principal} may not describe every topic: one that {some(sources)} has commits for, and "
        "that no member is on and the spec does not name, would stay behind unseen; compare with somebody's snapshot "
        "who may, or grant Describe on Topic '*' for the dry run"
    )
    return Check.warned(name, reason)


def needed(rows: Sequence[Wanted]) -> Mapping[Resource, frozenset[Operation]]:
    """Return what a principal must be allowed to do, to write these rows, each of which names its group."""
    return of_hand_over(
        {row.source_group for row in rows if row.source_group is not None},
        {row.group for row in rows if row.group is not None},
        {row.topic for row in rows},
    )


def of_hand_over(
    sources: Iterable[str], targets: Iterable[str], topics: Iterable[str]
) -> Mapping[Resource, frozenset[Operation]]:
    """Return what a principal must be allowed to do, to write what source groups have committed to target groups."""
    read = {Resource(ResourceType.GROUP, group) for group in sources}
    written = {Resource(ResourceType.GROUP, group) for group in targets}
    written |= {Resource(ResourceType.TOPIC, topic) for topic in topics}
    return dict.fromkeys(read, _LOOK) | dict.fromkeys(written, _WRITE)


def missing(wanted: Mapping[Resource, frozenset[Operation]], permissions: Permissions) -> list[str]:
    """Return each operation that is wanted and not permitted, by resource, in the words of Kafka's ACLs."""
    return [
        f"{' and '.join(sorted(lacking))} on {resource}"
        for resource, operations in sorted(wanted.items())
        if (permitted := permissions[resource]) is not None and (lacking := operations - permitted)
    ]


def hidden(permissions: Permissions) -> bool:
    """Return whether one of these groups and topics may not even be described."""
    return any(permitted is not None and Operation.DESCRIBE not in permitted for permitted in permissions.values())
