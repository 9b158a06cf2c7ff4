"""Delete the moved topics' committed offsets from the source group, after the targets have taken over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec import structs

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.ways_back.common import (
    committed_by_order,
    last_hand_over,
    permissions_wanted,
    permitted,
    same_cluster,
)
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.checks.source import running
from migrate_groups.planning.plan import Change, Check, Plan, sorted_changes
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, Verb
from migrate_groups.text import some


def delete_source_offsets(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that deletes the moved partitions' committed offsets from the source group.

    If they were kept, the source group would show a growing lag on topics that it no longer consumes. The plan's checks
    refuse if a target group has no committed offset or a lower one than the hand-over wrote, if the source group has
    committed since, or if a member of it still has the topics.

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
    described = reader.describe_groups(sorted(topics))
    missing = [group for group in topics if not described[group].exists]
    reason = f"group {some(missing)} does not exist any more: it has no offset left to delete"
    gone = [Check.warned("source", reason)] if missing else []
    execution = last_hand_over(receipt)
    return Plan(
        cluster_id=reader.cluster_id(),
        options=execution.options,
        changes=changes,
        topic_ids=execution.topic_ids,
        checks=(
            same_cluster(reader, execution),
            permitted(reader, wanted, permissions),
            Check.of(
                "taken over",
                behind,
                "not taken over yet",
                "every target group is at or after the offset that it was handed",
            ),
            Check.of("not moved", changed, "moved in the source group since", "the source group has not moved since"),
            _nobody_holds(described, topics),
            *gone,
        ),
    )


def _of_source(change: Change) -> Change:
    group = change.source_group or ""
    return structs.replace(change, source_group=None, source_committed=None, group=group, before=None, after=None)


def _is_behind(now: CommittedOffset | None, handed_over: Change) -> bool:
    return now is None or (handed_over.after is not None and now.offset < handed_over.after.offset)


def _nobody_holds(described: Mapping[str, GroupDescription], topics: Mapping[str, set[str]]) -> Check:
    live = [
        f"{group} {reason}"
        for group, held in topics.items()
        if described[group].exists
        for reason in running(described[group], held)
    ]
    return Check.of("stopped", live, "still consumed", "no member holds the moved topics")
