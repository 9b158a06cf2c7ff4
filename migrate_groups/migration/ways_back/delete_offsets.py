"""Delete the moved topics' committed offsets from the source group, after the target groups have taken over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from msgspec import structs

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.ways_back.common import (
    committed_by_order,
    last_hand_over,
    nobody_holds,
    options_of_write,
    permissions_wanted,
    permitted,
    same_cluster,
)
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.plan import Change, Check, Plan, sorted_changes
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, Verb
from migrate_groups.text import named


def delete_source_offsets(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that deletes the moved partitions' committed offsets from the source group.

    If they were kept, the source group would show a growing lag on topics that it no longer consumes. The checks of the
    plan refuse in these cases:

    - A target group has no committed offset, or a lower one than the hand-over wrote.
    - The source group has committed since the hand-over.
    - A member of the source group still has the topics.

    A check warns if a target group has no member and still has the offsets that the hand-over wrote.

    Raises `Refused` if the receipt forbids the deletion or contains nothing to delete; `NotAuthorized`; and the errors
    of `GroupReader`.
    """
    refuse_by_record(receipt, Verb.DELETE_OFFSETS)
    moved = [
        structs.replace(lane.entry.change, source_group=source)
        for lane in receipt.lanes.values()
        if lane.takes(Verb.DELETE_OFFSETS, *WORKS) and lane.entry.change.after
        for source in lane.sources
    ]
    if not moved and not receipt.is_done(Verb.DELETE_OFFSETS):
        raise Refused("nothing to delete: this run handed over no offset of a source group")
    as_source = [_of_source(change) for change in moved]
    wanted = permissions_wanted(as_source, {change.group for change in moved})
    permissions = permissions_unless_hidden(reader, wanted)
    now_new = committed_by_order(reader, [change.order for change in moved])
    now_old = committed_by_order(reader, [source.order for source in as_source])
    behind = [
        f"{change.group} {change.topic_partition}" for change in moved if _is_behind(now_new[change.order], change)
    ]
    still = {source.order: change for change, source in zip(moved, as_source, strict=True)}
    changed = [
        str(change.topic_partition)
        for order, change in still.items()
        if (now := now_old[order]) and now.offset != change.handed_over_at
    ]
    changes = sorted_changes(
        structs.replace(source, before=now_old[source.order])
        for source in {source.order: source for source in as_source}.values()
    )
    topics: dict[str, set[str]] = defaultdict(set)
    for change in changes:
        topics[change.group].add(change.topic)
    targets = {change.group for change in moved}
    described = reader.describe_groups(sorted(topics.keys() | targets))
    started = {group for group in targets if described[group].members}
    started |= {change.group for change in moved if not _is_as_written(now_new[change.order], change)}
    missing = [group for group in topics if not described[group].exists]
    reason = f"{named('group', missing)} not found any more: no offset is left to delete there"
    gone = [Check.warned("source", reason)] if missing else []
    execution = last_hand_over(receipt)
    return Plan(
        cluster_id=reader.cluster_id(),
        options=options_of_write(execution.options, topics),
        changes=changes,
        topic_ids=execution.topic_ids,
        checks=(
            same_cluster(reader, execution),
            permitted(reader, wanted, permissions),
            _taken_over(behind, targets - started),
            Check.of(
                "not moved",
                changed,
                "the source group has committed since the hand-over: stop its consumers of these topics",
                "the source group has not committed since the hand-over",
            ),
            nobody_holds(described, topics),
            *gone,
        ),
    )


def _taken_over(behind: Collection[str], not_started: Collection[str]) -> Check:
    """Check that no target group is behind the hand-over; warn about groups that show no sign of a start.

    behind: the partitions without a committed offset, or with a lower one than was handed over. not_started: the target
    groups without a member in which every committed offset is the one that this tool wrote.
    """
    if behind or not not_started:
        return Check.of(
            "taken over",
            behind,
            "no committed offset, or a lower one than was handed over: start the group, and run again",
            "every target group has a member or has committed since, and no offset is lower than was handed over",
        )
    reason = (
        f"{named('target group', not_started)} not seen to run: no member, and every offset is the one that was handed "
        "over; start the applications first, unless they have read to the end and stopped"
    )
    return Check.warned("taken over", reason)


def _of_source(change: Change) -> Change:
    group = change.source_group or ""
    return structs.replace(change, source_group=None, source_committed=None, group=group, before=None, after=None)


def _is_as_written(now: CommittedOffset | None, handed_over: Change) -> bool:
    return now is not None and handed_over.after is not None and now.offset == handed_over.after.offset


def _is_behind(now: CommittedOffset | None, handed_over: Change) -> bool:
    return now is None or (handed_over.after is not None and now.offset < handed_over.after.offset)
