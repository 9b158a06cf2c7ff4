"""Detect that target groups have started since a migration, so that the same migration is not written again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from migrate_groups.errors import PartlyApplied, Refused, ShareGroupStarted, without_errors
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.clusters import Clusters
from migrate_groups.migration.events import Events
from migrate_groups.migration.guard import Consumed, consumed_since
from migrate_groups.migration.journal import refuse_taken
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import committed_by_order, describe_groups
from migrate_groups.planning.change import Relation, by_group, partitions_by_group
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.snapshots.row import Row
from migrate_groups.text import named, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What was observed of the groups of a migration after at least one of its target groups has started.

    - groups: the target groups that have started.
    - consumed: what is known of source groups that have consumed what they handed over.
    - lost: partitions for which a target group no longer has a committed offset.
    """

    groups: tuple[str, ...]
    consumed: Consumed
    lost: tuple[str, ...]


def started_since(clusters: Clusters[GroupReader], receipt: Receipt) -> Started | None:
    """Return which target groups have started since offsets were last handed over to them; None if none has started.

    A group has started if it has members, or has committed beyond the offsets that it was given; a share group, if it
    has had members. The result is also None if the hand-over is incomplete, was undone, or was on other clusters.
    """
    execution, reader = receipt.hand_over_to_resume, clusters.target
    if execution is None or not _is_of_these_clusters(execution, clusters):
        return None
    # The hand-over to resume lacks partitions that were rolled back or handed back.
    written = receipt.last_hand_over.changes if receipt.last_hand_over else ()
    if any(receipt.partition_states[each.order].state is not State.HANDED_OVER for each in written):
        return None
    # Groups that got offsets without a source group, as for a replay, are not target groups of the hand-over.
    of_groups = by_group(execution.changes)
    targets = sorted(
        group for group, of_it in of_groups.items() if execution.translation or any(each.source_group for each in of_it)
    )
    answers = reader.committed(partitions_by_group(change for group in targets for change in of_groups[group]))
    now, shares = without_errors(answers, ShareGroupStarted)
    described = describe_groups(reader, targets)
    topics = reader.describe_topics({change.topic for change in execution.changes})
    added = committed_by_order(reader, [order for order in receipt.added(topics) if order[0] not in shares])
    on_added = {group for (group, *_), committed in added.items() if committed is not None}
    groups = tuple(
        group
        for group in targets
        if group in shares
        or described[group].members
        or group in on_added
        or any(each.relation(now[group][each.topic_partition]) is Relation.AHEAD for each in of_groups[group])
    )
    if not groups:
        return None
    lost = tuple(f"{group} {partition}" for group, found in now.items() for partition in found if not found[partition])
    return Started(groups=groups, consumed=consumed_since(clusters.source, execution), lost=lost)


def say_over(clusters: Clusters[GroupReader | None], started: Started, file: ReceiptFile, events: Events) -> None:
    """Tell the user that the migration in the receipt is over, because a target group has started.

    Raises `PartlyApplied` if a source group consumes, has consumed since the hand-over, or can't be read;
    `Refused` if a target group has lost a committed offset, or another run has undone the migration.
    """
    refuse_taken(clusters, file.receipt, Verb.ROLLBACK)
    handed_over = f"{file.path}: handed over already, and started since: {named('group', started.groups)}"
    signs, is_live, not_watched = started.consumed
    if is_live:
        raise PartlyApplied(
            f"{handed_over}; {signs}: stop these consumers, because what they read is processed twice; nothing was "
            "written"
        )
    if signs:
        raise PartlyApplied(
            f"{handed_over}; {signs}; what it has read is processed twice: audit counts it; nothing was written"
        )
    if not_watched:
        raise PartlyApplied(
            f"{handed_over}; {some(not_watched, 3)}: run the same command again, which looks at the group; "
            "nothing was written"
        )
    if started.lost:
        raise Refused(
            f"{handed_over}; no committed offset any more for {some(started.lost)}, so it is not known how far the "
            "group read: set the right offset with rewind and apply; nothing was written"
        )
    events.said(f"{handed_over}; nothing was written")


def _is_of_these_clusters(execution: Execution, clusters: Clusters[GroupReader]) -> bool:
    source = execution.translation.cluster_id if execution.translation else None
    there = clusters.elsewhere.cluster_id() if clusters.elsewhere else None
    # A fail-over needs no source cluster, and may be looked at with it once it has returned.
    return clusters.target.cluster_id() == execution.cluster_id and (
        there == source or (there is None and execution.is_fail_over)
    )


def offsets_differently(receipt: Receipt, rows: Iterable[Row], *, are_read_now: bool) -> list[str]:
    """Return a message for each row whose offset the hand-over in the receipt has not given to its group.

    Rows without an offset are ignored. If no row has an offset, this is a difference too. are_read_now: whether the
    source group's offsets were just read, so that another offset shows that the group has consumed since.
    """
    committed_rows = [row for row in rows if row.offset is not None]
    execution = receipt.hand_over_to_resume
    known = {change.order: change for change in execution.changes} if execution else {}
    differences = [] if committed_rows else ["the file has no offset"]
    for row in committed_rows:
        change = known.get((row.group or "", row.topic, row.partition))
        name = f"{row.topic}-{row.partition}"
        if change is None or row.source_group is None or change.source_group != row.source_group:
            source = f"from {row.source_group}" if row.source_group else "without a source group"
            differences.append(f"{name} {source} to {row.group} is new")
        elif not are_read_now and (change.source_committed is None or change.source_committed.offset != row.offset):
            differences.append(f"{row.source_group} {name} was at {change.handed_over_at}, is at {row.offset}")
    return differences
