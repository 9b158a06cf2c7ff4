"""Delete groups without members, with all their committed offsets, for instance after a replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from migrate_groups.clock import Clock
from migrate_groups.errors import (
    ClusterUnavailable,
    GroupNotFound,
    MigrateGroupsError,
    NotAuthorized,
    PartlyApplied,
    Refused,
)
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.migration.reading.requests import describe_group, existing_group
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.model.answers import Answer
from migrate_groups.planning.checks.permission import lacks, missing, of_deletion
from migrate_groups.planning.checks.source import running
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, shell_command, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The result of deleting groups.

    - committed: the committed offsets of each group before the deletion.
    - deleted: the groups that no longer exist.
    - failures: the errors of the groups that still exist, or may still exist.
    """

    committed: Mapping[str, SnapshotTable]
    deleted: tuple[str, ...]
    failures: Mapping[str, MigrateGroupsError]

    def check(self) -> None:
        """Raise an error if a deletion failed: `Refused` if all deletions were refused, otherwise `PartlyApplied`.

        After `Refused`, all groups still exist.
        """
        if not self.failures:
            return
        reasons = "; ".join(map(str, self.failures.values()))
        if not self.deleted and all(isinstance(error, Refused) for error in self.failures.values()):
            raise Refused(reasons)
        if not self.deleted:
            raise PartlyApplied(reasons)
        groups = counted(len(self.deleted) + len(self.failures), "group")
        raise PartlyApplied(f"{len(self.deleted):,} of {groups} deleted; {reasons}")


def what_would_go(reader: GroupReader, groups: Sequence[str], clock: Clock) -> Mapping[str, SnapshotTable]:
    """Return, for each group, the committed offsets that would be deleted with it. Deletes nothing.

    Checks all groups, then raises one error with all reasons: `NotAuthorized` if only permissions are lacking;
    otherwise `Refused`, for instance if a group has members or does not exist.
    """
    going: dict[str, SnapshotTable] = {}
    errors: list[MigrateGroupsError] = []
    for group in groups:
        try:
            going[group] = _committed(reader, group, clock)
        except (Refused, NotAuthorized) as error:
            errors.append(error)
    match errors:
        case []:
            return going
        case [GroupNotFound() as missing_group]:
            raise missing_group
    kind = NotAuthorized if all(isinstance(error, NotAuthorized) for error in errors) else Refused
    raise kind("; ".join([*map(str, errors), "nothing was deleted"]))


def delete_groups(
    writer: GroupWriter,
    groups: Sequence[str],
    clock: Clock,
    writing: Callable[[str], object] = lambda told_by: None,
    gone: Callable[[str], object] = lambda group: None,
) -> Deletion:
    """Delete the groups, and return which were deleted and which were not.

    If one deletion fails, the other groups are still deleted. writing: as of `Events`. gone: called with each group
    that no longer exists. Raises the errors of `what_would_go`, before anything is deleted.
    """
    committed = what_would_go(writer, groups, clock)  # again, because a member may have joined since the user was asked
    deleted: list[str] = []
    failures: dict[str, MigrateGroupsError] = {}
    for group in groups:
        before = f"deleted: {some(deleted)}; " if deleted else ""
        describe = shell_command("describe", [group])
        writing(f"{before}group {group} may be deleted: migrate-groups {describe} tells")
        try:
            _delete(writer, group)
        except MigrateGroupsError as error:
            failures[group] = error
        else:
            deleted.append(group)
            gone(group)
    return Deletion(committed=committed, deleted=tuple(deleted), failures=failures)


def _committed(reader: GroupReader, group: str, clock: Clock) -> SnapshotTable:
    """Return the committed offsets of a group that may be deleted.

    Raises `GroupNotFound`; `Refused` if the group has members or is not a consumer group; `NotAuthorized` without
    Delete on the group.
    """
    described = existing_group(reader, group)
    if reason := described.not_a_consumer_group:
        raise Refused(f"group {group!r} {reason}")
    members = running(described, None)
    if members:
        raise Refused(f"group {group!r} {members[0]}; stop its members first")
    wanted = of_deletion(group)
    lacking = missing(wanted, reader.permissions(wanted))
    if lacking:
        raise NotAuthorized(f"not authorized: {lacks(reader.principal, lacking)}")
    return SnapshotTable.of_rows(row for row in take_snapshot(reader, [group], clock).rows() if row.offset is not None)


def _delete(writer: GroupWriter, group: str) -> None:
    """Delete a group, and verify that it no longer exists.

    Raises `Refused` if the coordinator refuses; `PartlyApplied` if the group still exists or can't be described
    afterwards.
    """
    answer = writer.delete_groups([group])[group]
    if answer.answer is Answer.REFUSED and answer.error != "GROUP_ID_NOT_FOUND":
        raise Refused(f"group {group!r} was not deleted: {answer.error}; stop its members, and try again")
    try:
        exists = describe_group(writer, group).exists
    except ClusterUnavailable as error:
        raise PartlyApplied(
            f"group {group!r} may be deleted; it can't be described: {error}; try describe again"
        ) from error
    if exists:
        reason = answer.error or "a consumer has joined or committed since"
        raise PartlyApplied(f"group {group!r} still exists ({reason}): find its members with describe, and try again")
