"""Delete a group without members, with all its committed offsets, for instance after a replay."""

from __future__ import annotations

from migrate_groups.clock import Clock
from migrate_groups.errors import NotAuthorized, PartlyApplied, Refused
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.migration.reading.take import existing_group, take_snapshot
from migrate_groups.model.answers import Answer
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.checks.permission import missing
from migrate_groups.planning.checks.source import running
from migrate_groups.snapshots.snapshot import Snapshot


def what_would_go(reader: GroupReader, group: str, clock: Clock) -> Snapshot:
    """Return the committed offsets that the deletion of a group would delete.

    Raises `GroupNotFound`; `Refused` if the group has members or is not a consumer group; `NotAuthorized` if this
    principal may not delete it; and the errors of `GroupReader`.
    """
    described = existing_group(reader, group)
    if not described.is_consumer_group:
        kind = f"{described.group_type} {described.protocol_type}".strip()
        raise Refused(f"group {group!r} is not a consumer group but {kind}; nothing was deleted")
    members = running(described, None)
    if members:
        raise Refused(f"group {group!r} {members[0]}; stop its members first; nothing was deleted")
    wanted = {Resource(ResourceType.GROUP, group): frozenset({Operation.DESCRIBE, Operation.DELETE})}
    lacking = missing(wanted, reader.permissions(wanted))
    if lacking:
        raise NotAuthorized(
            f"not authorized: {reader.principal} lacks {', '.join(lacking)}; grant it these permissions"
        )
    taken = take_snapshot(reader, [group], clock)
    committed = [row for row in taken.rows() if row.offset is not None]
    return Snapshot.of_rows(committed)


def delete_group(writer: GroupWriter, group: str) -> None:
    """Delete a group, and describe it to verify that it no longer exists.

    Raises `Refused` if the coordinator refuses the deletion; `PartlyApplied` if the group still exists, or exists
    again; and the errors of `GroupReader`.
    """
    answer = writer.delete_group(group)
    if answer.answer is Answer.REFUSED and answer.error != "GROUP_ID_NOT_FOUND":
        raise Refused(f"group {group!r} was not deleted: {answer.error}; a member may have joined it just now")
    if writer.describe_group(group).exists:
        reason = answer.error or "a consumer has joined or committed meanwhile"
        raise PartlyApplied(f"group {group!r} is still there, or again ({reason}); look with describe, and try again")
