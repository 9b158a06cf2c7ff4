"""Check that the client's principal has the permissions that a write requires, as brokers return them (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.change import Change
from migrate_groups.planning.plan import Check
from migrate_groups.planning.survey import Survey
from migrate_groups.text import some

Permissions = Mapping[Resource, frozenset[Operation] | None]
OFFSETS = Resource(ResourceType.TOPIC, OFFSETS_TOPIC)
"""The topic ``__consumer_offsets``. A principal that may describe it can most likely describe every topic, because no
application needs a permission on this topic."""
ANY_GROUP = Resource(ResourceType.GROUP, OFFSETS_TOPIC)
"""A group name that no application uses. A principal that may describe this group can most likely describe every group,
because only a permission on all groups includes it."""
_LOOK = frozenset({Operation.DESCRIBE})
_WRITE = frozenset({Operation.DESCRIBE, Operation.READ})


def permission(rows: Sequence[Change], survey: Survey) -> Check:
    """Check that the principal has Describe on the source groups, and Read on the target groups and on each topic.

    The verdict is ``not known`` if brokers don't return the permissions. The check warns if the permissions for a later
    rollback are missing (docs/kafka-behaviour.md#what-a-principal-may-not-see).
    """
    name = "permission"
    permissions, principal = survey.cluster_facts.permissions, survey.cluster_facts.principal
    if (lacking_or_silent := _not_granted(name, needed(rows), survey)) is not None:
        return lacking_or_silent
    targets, sources = {row.group for row in rows}, {row.source_group for row in rows if row.source_group}
    deletes = {Resource(ResourceType.GROUP, group): frozenset({Operation.DELETE}) for group in targets if group}
    sets = {Resource(ResourceType.GROUP, group): _WRITE for group in sources}
    lacking = missing(sets | deletes, permissions)
    if lacking:
        reason = f"{principal} lacks {some(lacking)}, so a rollback would be refused: grant this before the write"
        return Check.warned(name, reason)
    return Check.passed(name, f"{principal} has all permissions for the write and for a rollback")


def source_permission(rows: Sequence[Change], survey: Survey) -> Check:
    """Check that the principal has Describe on the source groups, and Read on each topic, on the source cluster.

    The verdict is ``not known`` if brokers don't return the permissions.
    """
    name = "permission"
    wanted = needed(rows, has_targets=False)
    reason = f"{survey.cluster_facts.principal} has all permissions"
    return _not_granted(name, wanted, survey) or Check.passed(name, reason)


def _not_granted(name: str, wanted: Mapping[Resource, frozenset[Operation]], survey: Survey) -> Check | None:
    facts = survey.cluster_facts
    return not_granted(name, facts.principal, wanted, facts.permissions)


def not_granted(
    name: str, principal: str, wanted: Mapping[Resource, frozenset[Operation]], permissions: Permissions
) -> Check | None:
    """Return a check of permissions that are missing, not known, or not needed; None if all are granted.

    wanted: the operations that the principal needs. permissions: the operations that it may perform; None: not known.
    """
    if not wanted:
        return Check.not_applicable(name, "no permission is needed: there is nothing to write")
    if lacking := missing(wanted, permissions):
        return Check.refused(name, lacks(principal, lacking))
    if silent := [resource for resource in wanted if permissions[resource] is None]:
        reason = f"the brokers do not return what {principal} may do with {some(silent)}: check its ACLs first"
        return Check.not_known(name, reason)
    return None


def hidden_topics(rows: Sequence[Change], survey: Survey) -> Check:
    """Say whether a source group may have offsets on topics that the principal can't see because it lacks Describe.

    Brokers leave out these topics without an error (docs/kafka-behaviour.md#what-a-principal-may-not-see). The verdict
    is ``not known`` if ``__consumer_offsets`` is not visible, because other topics may be hidden then too.
    """
    name = "hidden topics"
    sources = {row.source_group for row in rows if row.source_group is not None}
    if not sources:
        return Check.not_applicable(name, "no source group, whose topics could be hidden")
    if OFFSETS.name in survey.cluster_facts.topic_names:
        return Check.passed(name, "no topic is hidden, as far as the brokers show it")
    reason = (
        f"{survey.cluster_facts.principal} may not describe every topic, so topics with commits but no member of "
        f"{some(sources)} may be missing here; grant Describe on Topic '*' for the dry run, or compare with a "
        "snapshot that another principal takes"
    )
    return Check.not_known(name, reason)


def needed(rows: Sequence[Change], *, has_targets: bool = True) -> Mapping[Resource, frozenset[Operation]]:
    """Return, for each group and topic, the operations that the principal needs to hand over these partitions.

    has_targets: whether the target groups are on the same cluster.
    """
    return of_hand_over(
        {row.source_group for row in rows if row.source_group is not None},
        {row.group for row in rows} if has_targets else (),
        {row.topic for row in rows},
    )


def of_hand_over(
    sources: Iterable[str], targets: Iterable[str], topics: Iterable[str]
) -> Mapping[Resource, frozenset[Operation]]:
    """Return the permissions required to write the source groups' committed offsets to the target groups.

    They are Describe on the source groups, and Describe and Read on the target groups and the topics.
    """
    read = {Resource(ResourceType.GROUP, group) for group in sources}
    written = {Resource(ResourceType.GROUP, group) for group in targets}
    written |= {Resource(ResourceType.TOPIC, topic) for topic in topics}
    return dict.fromkeys(read, _LOOK) | dict.fromkeys(written, _WRITE)


def missing(wanted: Mapping[Resource, frozenset[Operation]], permissions: Permissions) -> list[str]:
    """Return the permissions that are wanted and not granted, as texts such as ``Read on Group 'big'``.

    permissions: the granted operations. A group or topic for which they are not known (None) is left out.
    """
    return [
        f"{' and '.join(sorted(lacking))} on {resource}"
        for resource, operations in sorted(wanted.items())
        if (permitted := permissions[resource]) is not None and (lacking := operations - permitted)
    ]


def lacks(principal: str, lacking: Sequence[str]) -> str:
    """Return a message for users: the principal lacks these permissions; grant them and run again.

    lacking: texts such as ``Read on Group 'big'``.
    """
    return f"{principal} lacks {some(lacking, most=20)}; grant this and run again"


def hidden(permissions: Permissions) -> bool:
    """Return whether the principal lacks Describe on at least one of these groups and topics.

    A group or topic for which the brokers return no permissions (None) does not count.
    """
    return any(permitted is not None and Operation.DESCRIBE not in permitted for permitted in permissions.values())
