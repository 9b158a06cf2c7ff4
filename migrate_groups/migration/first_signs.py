"""During the guard after a hand-over, read when each target group has its first member or commit."""

from __future__ import annotations

from dataclasses import replace

from migrate_groups.clock import Clock
from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.ports import GroupReader
from migrate_groups.planning.change import Change, by_group
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.outage import FirstSign, Sign


def with_first_signs(reader: GroupReader, execution: Execution, clock: Clock) -> Execution:
    """Return the record of a hand-over with the target groups that have begun to consume since the previous reading.

    The groups that have begun are not read again. A group that can't be read has no sign, and raises no error, because
    the offsets are in place and the guard is about the source groups.
    """
    groups = by_group(execution.changes)
    outage = execution.outage
    if not outage.first_signs:
        outage = replace(outage, first_signs=tuple(FirstSign(group=group) for group in sorted(groups)))
    without_sign = [each.group for each in outage.first_signs if each.at is None and each.group in groups]
    if without_sign:
        signs = _signs(reader, {group: groups[group] for group in without_sign})
        outage = outage.with_signs(signs, clock.now())
    return replace(execution, outage=outage)


def _signs(reader: GroupReader, groups: dict[str, list[Change]]) -> dict[str, Sign]:
    """Return the sign of each group that consumes: a member with one of the partitions, or else a commit."""
    signs: dict[str, Sign] = {}
    for group, described in reader.describe_groups(groups).items():
        written = {change.topic_partition for change in groups[group]}
        if not isinstance(described, MigrateGroupsError) and any(
            member.assignment & written for member in described.members
        ):
            signs[group] = "member"
    # A consumer that uses assign() is never a member.
    others = {
        group: [change.topic_partition for change in changes] for group, changes in groups.items() if group not in signs
    }
    for group, found in (reader.committed(others, wait=False) if others else {}).items():
        if not isinstance(found, MigrateGroupsError) and any(
            (now := found.get(change.topic_partition)) is not None and now != change.after for change in groups[group]
        ):
            signs[group] = "commit"
    return signs
