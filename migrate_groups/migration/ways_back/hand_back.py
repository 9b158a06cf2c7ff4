"""Give topics back to the source group: move it forward to the target groups' committed offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.prepare import make_plan
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.reading.take import committed_by_order, take_snapshot
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.ways_back.common import (
    options_of_write,
    plan_for_wrong_cluster,
    same_cluster,
)
from migrate_groups.model.partitions import CommittedOffset, offset_in_words
from migrate_groups.planning.checks.advice import Advice
from migrate_groups.planning.checks.permission import of_hand_over
from migrate_groups.planning.checks.source import running
from migrate_groups.planning.partition_states import PartitionState
from migrate_groups.planning.plan import Check, Plan, Verdict
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Step, Verb
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, named, some

# The snapshot is taken anew each time that the plan is made.
_ADVICE = Advice(read_again="hand-back reads its offsets again")
_SHARED = (
    "several target groups consume the same partition (fan_out), so they can't hand back to one group: choose one "
    "target group, and write its offsets back with snapshot and apply"
)


def plan_hand_back(reader: GroupReader, receipt: Receipt, clock: Clock) -> Plan:
    """Return the plan that moves the source group's offsets forward to the target groups' current committed offsets.

    A check warns of topics that the run did not hand over.

    Raises `Refused` if the receipt (the record of the run) forbids the hand-back, if a partition does not have
    exactly one source group and one target group, or if a target group has no offset to give back; `GroupNotFound`,
    `ClusterUnavailable`, `NotAuthorized` or `PendingCommits`.
    """
    refuse_by_record(receipt, Verb.HAND_BACK)
    states = {
        order: partition for order, partition in receipt.partition_states.items() if partition.state is not State.NEW
    }
    # The source groups by topic, not by partition, because a target group also consumes partitions that were added
    # later or had no commit at the hand-over.
    origin = {(group, topic): partition.sources for (group, topic, _), partition in states.items()}
    if (hand_over := receipt.last_hand_over) is None or not origin:
        raise Refused("nothing to hand back: this run wrote nothing")
    if not any(origin.values()):
        raise Refused(
            f"nothing to hand back: no old group handed over to {some({group for group, _ in origin})}; to undo the "
            "write, use rollback before the group commits; after it, delete-group, or rewind and apply"
        )
    if unclear := {topic for (_, topic), sources in origin.items() if len(sources) != 1}:
        raise Refused(
            f"no single source group for {named('topic', unclear)} in the receipt, so no group can take this back: "
            "set the offsets with snapshot and apply"
        )
    refused = [partition for partition in receipt.refused.values() if partition.sources]
    if {each.order for partition in refused for each in partition.handed_over_by} & {
        each.order for partition in states.values() for each in partition.handed_over_by
    }:
        raise Refused(_SHARED)
    cluster = same_cluster(reader, hand_over)
    if cluster.verdict is Verdict.REFUSE:
        return plan_for_wrong_cluster(reader, hand_over, cluster)
    groups = sorted({group for group, _ in origin})
    permissions_unless_hidden(
        reader, of_hand_over(groups, set().union(*origin.values()), {topic for _, topic in origin})
    )
    skipped = {
        order
        for order, partition in receipt.partition_states.items()
        if partition.takes(Verb.HAND_BACK, Step.SKIP, Step.NO_OP)
    }
    taken = [*take_snapshot(reader, groups, clock).rows()]
    rows = [
        structs.replace(row, group=next(iter(origin[row.group or "", row.topic])), source_group=row.group)
        for row in taken
        if (row.group or "", row.topic) in origin and (row.group or "", row.topic, row.partition) not in skipped
    ]
    shared = {(row.group, row.topic_partition) for row in rows}
    if len(shared) < len(rows):
        raise Refused(_SHARED)
    if all(row.offset is None for row in rows):
        raise Refused(f"nothing to hand back: {some(groups)} committed nothing on the topics that were handed over")
    there = {(row.source_group or "", row.topic, row.partition) for row in rows if row.offset is not None}
    lost = [
        f"{group} {topic}-{number}"
        for (group, topic, number), partition in states.items()
        if (group, topic, number) not in there | skipped and partition.change.after
    ]
    if lost:
        raise Refused(
            f"no committed offset any more for {some(lost)}, so it is not known how far the group read: set the right "
            "offset with rewind and apply, and run hand-back again; nothing was written"
        )
    options = replace(hand_over.options, on_existing="forward", uncommitted="leave", restore=False)
    options = options_of_write(options, {row.group or "" for row in rows})
    plan = make_plan(reader, SnapshotTable.of_rows(rows), options, advice=_ADVICE)
    return replace(
        plan, checks=(*plan.checks, *_not_handed_over(reader, refused, groups), _other_topics(taken, origin))
    )


def _not_handed_over(reader: GroupReader, refused: Sequence[PartitionState], groups: Collection[str]) -> list[Check]:
    """Return a check of the partitions that brokers refused to write in the hand-over; an empty list if there are none.

    The check refuses if, on such a partition, a target group has committed beyond the source group's offset, or the
    source group lost its offset. It also refuses if a target group that is not in ``groups`` consumes the topic.
    groups: the target groups that hand back.
    """
    if not refused:
        return []
    moved = [(partition.change, source) for partition in refused for source in partition.handed_over_by]
    now = committed_by_order(reader, [each.order for pair in moved for each in pair])
    topics: dict[str, set[str]] = defaultdict(set)
    # The hand-back waits for the members of `groups` anyway.
    for change in (change for change, _ in moved if change.group not in groups):
        topics[change.group].add(change.topic)
    described = reader.describe_groups(sorted(topics))
    live = [
        f"{group} {reason}"
        for group, of_it in topics.items()
        if described[group].exists
        for reason in running(described[group], of_it)
    ]
    # Compared with the offset of the source group now, not with the one at the hand-over, because the source group kept
    # the partition and may have read on.
    ahead = [
        f"{change.group} {change.topic_partition} at {offset_in_words(now[change.order])}, {source.group} at "
        f"{offset_in_words(now[source.order])}"
        for change, source in moved
        if _offset(now[change.order]) > max(_offset(now[source.order]), _offset(change.before))
    ]
    lost = [
        f"{source.group} {source.partition}"
        for change, source in moved
        if change.source_committed is not None and now[source.order] is None
    ]
    found = [
        f"{some(which, most=3)}: {advice}"
        for which, advice in (
            (live, "stop these consumers"),
            (
                ahead,
                "the new group has committed since: compare what both have processed, and set the old group's offset "
                "with apply",
            ),
            (lost, "the committed offset expired or was deleted: set it with rewind and apply"),
        )
        if which
    ]
    name = "not handed over"
    if found:
        return [Check.refused(name, f"of partitions that were refused in the hand-over, {'; '.join(found)}")]
    return [Check.of(name, (), "", f"{counted(len(moved), 'partition')} stayed with the old group", compared=moved)]


def _offset(committed: CommittedOffset | None) -> int:
    return -1 if committed is None else committed.offset


def _other_topics(taken: Iterable[Row], handed_over: Collection[tuple[str, str]]) -> Check:
    """Return a check that warns of target groups' committed offsets on topics that were not handed over.

    taken: the target groups' committed offsets. handed_over: pairs of a target group and a topic that it got.
    """
    stay: dict[str, set[str]] = defaultdict(set)
    for row in taken:
        group = row.group or ""
        if (group, row.topic) not in handed_over and row.offset is not None:
            stay[group].add(row.topic)
    if not stay:
        return Check.passed("other topics", "the new groups have committed nothing on other topics")
    each = [f"{group} keeps its offsets of {named('topic', topics)}" for group, topics in stay.items()]
    return Check.warned("other topics", f"{some(each, most=3)}, which this run did not hand over")
