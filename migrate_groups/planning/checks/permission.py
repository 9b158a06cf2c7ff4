"""Check that the client's principal has the permissions that a write requires, as brokers return them (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.change import Change
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import GroupDeletionFacts, HandOverFacts, WayBackFacts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.planning.survey import Survey
from migrate_groups.text import some

Permissions = Mapping[Resource, frozenset[Operation] | None]
OFFSETS = Resource(ResourceType.TOPIC, OFFSETS_TOPIC)
"""The topic ``__consumer_offsets``."""
ANY_TOPIC = Resource(ResourceType.TOPIC, "no-topic-has-this-name.migrate-groups")
"""A name that no topic has. A principal that may describe it can most likely describe every topic, because only a
permission on all topics includes it."""
ANY_GROUP = Resource(ResourceType.GROUP, OFFSETS_TOPIC)
"""A group name that no application uses. A principal that may describe this group can most likely describe every group,
because only a permission on all groups includes it."""
_LOOK = frozenset({Operation.DESCRIBE})
_WRITE = frozenset({Operation.DESCRIBE, Operation.READ})
_DELETE = frozenset({Operation.DESCRIBE, Operation.DELETE})


def permission(facts: HandOverFacts) -> Judgement:
    """Check that the principal has Describe on the source groups, and Read on the target groups and on each topic.

    The verdict is ``not known`` if brokers don't return the permissions. The check warns if the permissions for a later
    rollback are missing (docs/kafka-behaviour.md#what-a-principal-may-not-see).
    """
    known = facts.survey.cluster_facts
    if (judgement := _not_granted(needed(facts.wanted), facts.survey)) is not None:
        return judgement
    targets = {each.group for each in facts.wanted}
    sources = {each.source_group for each in facts.wanted if each.source_group}
    deletes = {Resource(ResourceType.GROUP, group): frozenset({Operation.DELETE}) for group in targets}
    sets = {Resource(ResourceType.GROUP, group): _WRITE for group in sources}
    if lacking := missing(sets | deletes, known.permissions):
        reason = f"{known.principal} lacks {some(lacking)}, so a rollback would be refused: grant this before the write"
        return Verdict.WARN, reason
    return Verdict.PASS, f"{known.principal} has all permissions for the write and for a rollback"


def source_permission(facts: HandOverFacts) -> Judgement:
    """Check that the principal has Describe on the source groups, and Read on each topic, on the source cluster.

    The verdict is ``not known`` if brokers don't return the permissions.
    """
    granted = Verdict.PASS, f"{facts.survey.cluster_facts.principal} has all permissions"
    return _not_granted(needed(facts.wanted, has_targets=False), facts.survey) or granted


def way_back_permission(facts: WayBackFacts) -> Judgement:
    """Check that the principal has all permissions for a rollback or a deletion.

    The verdict is ``not known`` if brokers don't return the permissions.
    """
    granted = Verdict.PASS, f"{facts.survey.cluster_facts.principal} has all permissions for the write"
    return _not_granted(facts.needed, facts.survey) or granted


def deletion_permission(facts: GroupDeletionFacts) -> Judgement:
    """Check that the principal may delete the group's offsets. Warn if a rollback could not set them again."""
    known = facts.survey.cluster_facts
    verdict, reason = way_back_permission(facts)
    sets = {Resource(ResourceType.GROUP, group): _WRITE for group in facts.survey.groups}
    if verdict is Verdict.PASS and (lacking := missing(sets, known.permissions)):
        lead = f"{known.principal} lacks {some(lacking)}"
        return Verdict.WARN, f"{lead}, so a rollback would be refused: grant this first"
    return verdict, reason


def _not_granted(wanted: Mapping[Resource, frozenset[Operation]], survey: Survey) -> Judgement | None:
    """Return the judgement of permissions that are missing, not known, or not needed; None if all are granted.

    wanted: the operations that the principal needs.
    """
    principal, permissions = survey.cluster_facts.principal, survey.cluster_facts.permissions
    if not wanted:
        return Verdict.NOT_APPLICABLE, "no permission is needed: there is nothing to write"
    if lacking := missing(wanted, permissions):
        return Verdict.REFUSE, lacks(principal, lacking)
    if silent := [resource for resource in wanted if permissions[resource] is None]:
        reason = f"the brokers do not return what {principal} may do with {some(silent)}: check its ACLs first"
        return Verdict.NOT_KNOWN, reason
    return None


def hidden_topics(facts: HandOverFacts) -> Judgement:
    """Say whether a source group may have offsets on topics that the principal can't see because it lacks Describe.

    Brokers leave out these topics without an error (docs/kafka-behaviour.md#what-a-principal-may-not-see). The verdict
    is ``not known`` if the principal may not describe `ANY_TOPIC`, because then it may not describe every topic.
    """
    sources = {each.source_group for each in facts.wanted if each.source_group is not None}
    if not sources:
        return Verdict.NOT_APPLICABLE, "no source group, whose topics could be hidden"
    known, reasons = facts.survey.cluster_facts, []
    if known.hides_topics is not False:
        reasons.append(
            f"{known.principal} may not describe every topic, so topics with commits but no member of {some(sources)} "
            "may be missing here; grant Describe on Topic '*' for the dry run, or compare with a snapshot that another "
            "principal takes"
        )
    if OFFSETS.name not in known.topic_names:
        reasons.append(f"without Describe on {OFFSETS.name}, audit can't prove this run later")
    if reasons:
        return Verdict.NOT_KNOWN, "; ".join(reasons)
    return Verdict.PASS, "no topic is hidden, as far as the brokers show it"


def needed(wanted: Sequence[Change], *, has_targets: bool = True) -> Mapping[Resource, frozenset[Operation]]:
    """Return, for each group and topic, the operations that the principal needs to hand over these partitions.

    has_targets: whether the target groups are on the same cluster.
    """
    return of_hand_over(
        {each.source_group for each in wanted if each.source_group is not None},
        {each.group for each in wanted} if has_targets else (),
        {each.topic for each in wanted},
    )


def needed_on_way_back(
    changes: Sequence[Change], looked_at: Iterable[str] = ()
) -> Mapping[Resource, frozenset[Operation]]:
    """Return, for each group and topic, the operations that the principal needs to set or delete these offsets.

    looked_at: groups that only need Describe.
    """
    wanted = {Resource(ResourceType.GROUP, group): _LOOK for group in looked_at}
    for change in changes:
        group, topic = Resource(ResourceType.GROUP, change.group), Resource(ResourceType.TOPIC, change.topic)
        wanted[group] = wanted.get(group, frozenset()) | (_DELETE if change.after is None else _WRITE)
        wanted[topic] = _WRITE
    return wanted


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


def of_deletion(group: str, topics: Iterable[str] = ()) -> Mapping[Resource, frozenset[Operation]]:
    """Return the permissions required to delete a group, or its committed offsets of these topics."""
    return {Resource(ResourceType.GROUP, group): _DELETE} | {
        Resource(ResourceType.TOPIC, topic): _WRITE for topic in topics
    }


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


RULES = (
    Rule(name="permission", scopes=(Scope.HAND_OVER, Scope.HAND_BACK, Scope.TARGET), judge=permission),
    Rule(name="permission", scopes=(Scope.SOURCE,), judge=source_permission),
    Rule(name="permission", scopes=(Scope.ROLLBACK, Scope.DELETE_OF_RUN), judge=way_back_permission),
    Rule(name="permission", scopes=(Scope.DELETE_OF_GROUP,), judge=deletion_permission),
    Rule(name="hidden topics", scopes=(Scope.HAND_OVER, Scope.HAND_BACK, Scope.SOURCE), judge=hidden_topics),
)
