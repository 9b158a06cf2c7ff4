"""Delete the moved topics' committed offsets from the source group, after the target groups have taken over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from msgspec import structs

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.reading.take import committed_by_order
from migrate_groups.migration.record import check_clusters_named, refuse_by_record
from migrate_groups.migration.ways_back.common import (
    both_clusters,
    nobody_holds,
    options_of_write,
    permissions_wanted,
    permitted,
    plan_for_wrong_cluster,
)
from migrate_groups.planning.change import Change, Order, Relation, sorted_changes
from migrate_groups.planning.execution import Source
from migrate_groups.planning.plan import Check, Plan, Verdict
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, Verb
from migrate_groups.text import named, some


def delete_source_offsets(reader: GroupReader, receipt: Receipt, elsewhere: GroupReader | None = None) -> Plan:
    """Return the plan that deletes the source group's committed offsets of partitions that target groups took over.

    A check refuses if a target group lacks an offset, or if the source group still consumes. elsewhere: reads target
    groups on another cluster.

    Raises `Refused` if the receipt (the record of the run) forbids it or has nothing to delete; `UsageError` if
    ``elsewhere`` is missing or not needed; `NotAuthorized`, `ClusterUnavailable` and `PendingCommits`.
    """
    refuse_by_record(receipt, Verb.DELETE_OFFSETS)
    states = [
        partition for partition in receipt.partition_states.values() if partition.takes(Verb.DELETE_OFFSETS, *WORKS)
    ]
    moved = [
        (partition.change, source)
        for partition in states
        if partition.change.after
        for source in partition.handed_over_by
    ]
    execution = receipt.last_hand_over
    if execution is None or (not moved and not receipt.is_done(Verb.DELETE_OFFSETS)):
        raise Refused("nothing to delete: this run handed over no offset of a source group")
    check_clusters_named(execution, is_target_named=elsewhere is not None)
    cluster = both_clusters(reader, elsewhere or reader, execution)
    if cluster.verdict is Verdict.REFUSE:
        return plan_for_wrong_cluster(reader, execution, cluster)
    sources = {source.order: source for _, source in moved}
    deletions = [_deletion(source) for source in sources.values()]
    targets = {change.group for change, _ in moved}
    wanted = permissions_wanted(deletions, () if elsewhere else targets)
    permissions = permissions_unless_hidden(reader, wanted)
    if elsewhere:
        permissions_unless_hidden(elsewhere, permissions_wanted((), targets))
    now = committed_by_order(reader, sources)
    changed = [
        str(source.partition)
        for order, source in sources.items()
        if (committed := now[order]) and committed.offset != source.stopped_at
    ]
    changes = sorted_changes(structs.replace(each, before=now[each.order]) for each in deletions)
    topics: dict[str, set[str]] = defaultdict(set)
    for change in changes:
        topics[change.group].add(change.topic)
    described = reader.describe_groups(sorted(topics))
    missing = [group for group in topics if not described[group].exists]
    reason = f"{named('group', missing)} not found any more: no offset is left to delete there"
    gone = [Check.warned("source", reason)] if missing else []
    return Plan(
        cluster_id=reader.cluster_id(),
        options=options_of_write(execution.options, topics),
        changes=changes,
        topic_ids={} if elsewhere else execution.topic_ids,
        checks=(
            cluster,
            permitted(reader, wanted, permissions),
            _taken_over(
                elsewhere or reader,
                [change for change, _ in moved],
                _refused(elsewhere or reader, receipt),
                {change.order for change, source in moved if now[source.order] is None},
            ),
            Check.of(
                "not moved",
                changed,
                "the source group has committed since the hand-over: stop its consumers of these topics",
                "the source group has not committed since the hand-over",
                compared=[each for each in now.values() if each is not None],
            ),
            nobody_holds(described, topics),
            *gone,
        ),
    )


def _refused(reader: GroupReader, receipt: Receipt) -> list[Change]:
    """Return the changes that brokers refused in the hand-over, without the changes of deleted topics.

    reader: reads the target groups.
    """
    # If several target groups get the same partition (fan_out), one of them may still need the offset to delete.
    changes = [partition.change for partition in receipt.refused.values() if partition.handed_over_by]
    topics = reader.describe_topics({change.topic for change in changes}) if changes else {}
    return [change for change in changes if change.topic in topics]


def _taken_over(
    reader: GroupReader, handed_over: Collection[Change], refused: Collection[Change], without_source: set[Order]
) -> Check:
    """Return a check that refuses if a target group has no committed offset, or a lower one than was handed over.

    The check warns of a target group that may not have started. refused: the changes that brokers refused in the
    hand-over. without_source: the partitions for which the source group has no committed offset.
    """
    now = committed_by_order(reader, dict.fromkeys(change.order for change in (*handed_over, *refused)))
    if neither := [
        f"{change.group} {change.topic_partition}"
        for change in handed_over
        if change.order in without_source and now[change.order] is None
    ]:
        # Also after a deletion that was killed before it could set the offset back (`put_back`).
        complaint = (
            "neither this group nor the old group has a committed offset any more: set that of the old group with "
            "apply --restore and before.parquet of the run directory"
        )
        return Check.refused("taken over", f"{some(neither, 3)}: {complaint}")
    described = reader.describe_groups(sorted({change.group for change in handed_over}))
    behind = [
        f"{change.group} {change.topic_partition}" for change in handed_over if change.is_lowered(now[change.order])
    ]
    # If brokers refused the write, a target group that still has its offset from before lacks the one handed over.
    behind += [
        f"{change.group} {change.topic_partition}"
        for change in refused
        if now[change.order] == change.before or change.is_lowered(now[change.order])
    ]
    started = {change.group for change in handed_over if change.relation(now[change.order]) is Relation.AHEAD}
    not_started = [group for group, each in described.items() if group not in started and not each.members]
    if behind or not not_started:
        return Check.of(
            "taken over",
            behind,
            "no committed offset, or a lower one than was handed over: start the group; if brokers refused the write, "
            "run migrate or apply again or, if the group has started, set its offset with snapshot, filter and apply",
            "every target group has a member or has committed since, and no offset is lower than was handed over",
            compared=now,
        )
    reason = (
        f"{named('target group', not_started)} not seen to run: no member, and no commit beyond the offsets that were "
        "handed over; start the applications first, unless they have read to the end and stopped"
    )
    return Check.warned("taken over", reason)


def _deletion(source: Source) -> Change:
    topic, partition = source.partition
    return Change(source_group=None, group=source.group, topic=topic, partition=partition, before=None, after=None)
