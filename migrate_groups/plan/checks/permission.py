"""Whether this principal may do all that a write takes, as the brokers say before anything is written (KIP-430)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate_groups.cluster.ports import Operation, Resource, ResourceType
from migrate_groups.offsets.snapshot import Row
from migrate_groups.plan.plan import Check, Verdict
from migrate_groups.plan.survey import Survey
from migrate_groups.text import some

Permissions = Mapping[Resource, frozenset[Operation] | None]
_LOOK = frozenset({Operation.DESCRIBE})
_WRITE = frozenset({Operation.DESCRIBE, Operation.READ})


def permission(rows: Sequence[Row], survey: Survey) -> Check:
    """The principal may read the source groups, and write the targets: Read on the group and on each topic (measured).

    Delete on a target is for the way back alone, which deletes what was created: its lack is a warning.
    """
    name = "permission"
    wanted, permissions = needed(rows), survey.surroundings.permissions
    lacking = missing(wanted, permissions)
    if lacking:
        reason = f"this principal lacks {some(lacking, most=20)}; grant it these permissions"
        return Check(name=name, verdict=Verdict.REFUSE, reason=reason)
    silent = [resource for resource in wanted if permissions[resource] is None]
    if silent:
        reason = f"the brokers don't say what this principal may do with {some(silent)}"
        return Check(name=name, verdict=Verdict.WARN, reason=reason)
    targets = {Resource(ResourceType.GROUP, row.group): frozenset({Operation.DELETE}) for row in rows if row.group}
    lacking = missing(targets, permissions)
    if lacking:
        reason = f"this principal lacks {some(lacking)}: a rollback could not delete the offsets that are created"
        return Check(name=name, verdict=Verdict.WARN, reason=reason)
    return Check(name=name, verdict=Verdict.PASS, reason="this principal may do all of it, and roll it back")


def needed(rows: Sequence[Row]) -> Mapping[Resource, frozenset[Operation]]:
    """Return what a principal must be allowed to do, to write these rows, each of which names its group."""
    sources = {Resource(ResourceType.GROUP, row.source_group) for row in rows if row.source_group is not None}
    targets = {Resource(ResourceType.GROUP, row.group) for row in rows if row.group is not None}
    topics = {Resource(ResourceType.TOPIC, row.topic) for row in rows}
    return dict.fromkeys(sources, _LOOK) | dict.fromkeys(targets | topics, _WRITE)


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
