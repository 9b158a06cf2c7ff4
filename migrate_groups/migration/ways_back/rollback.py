"""Undo a hand-over whose target groups have not run: restore the committed offsets from before the hand-over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import structs

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.reading.take import committed_by_order
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.ways_back.common import (
    last_hand_over,
    options_of_write,
    permissions_wanted,
    permitted,
    same_cluster,
)
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.checks.source import NOTHING_TO_CHECK, running
from migrate_groups.planning.execution import Execution, Order
from migrate_groups.planning.lanes import Lane
from migrate_groups.planning.plan import Action, Change, Check, Plan, sorted_changes
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, State, Verb
from migrate_groups.text import counted, named, shell_command, some


def plan_rollback(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that sets the target groups' offsets back to those from before the hand-over, or deletes them.

    An offset is deleted if the target group had none before the hand-over. If the source group no longer has its
    committed offset for a partition, the plan first sets it again, from the receipt. Otherwise no group would have a
    committed offset for the partition.

    The plan's checks refuse if a target group has members or has committed since, because the source group would
    process again what the target group has processed.

    In a receipt of deletions without a hand-over, the plan sets the offsets of the last deletion again, with the same
    checks. A warning names earlier deletions that are not undone yet.

    Raises `Refused` if, by the receipt (the record of the run), a hand-back or delete-offsets has begun since the
    hand-over, or the hand-over wrote nothing; `ClusterUnavailable`, `NotAuthorized` and `PendingCommits`.
    """
    refuse_by_record(receipt, Verb.ROLLBACK)
    undoes, lanes = receipt.to_roll_back()
    # Includes partitions whose offset was in place before the run: the rollback does not change it, and records these
    # partitions as undone.
    undone = {order: lane for order, lane in lanes.items() if lane.takes(Verb.ROLLBACK, *WORKS)}
    wrote = any(lane.entry.change.action is not Action.UNCHANGED for lane in undone.values())
    if not wrote and not receipt.is_done(Verb.ROLLBACK):
        why = (
            "the receipt has no deleted offset, for instance because the topic was deleted and created again while the "
            "deletion was interrupted"
            if receipt.is_of_deletion
            else "the last hand-over wrote nothing; if another run wrote the offsets, roll back with its receipt"
        )
        raise Refused(f"nothing to roll back: {why}")
    inverses = [lane.entry.change.inverse for lane in undone.values()]
    # Includes partitions that are undone already or were refused: their source group needs its offset, too.
    origins = [(lane, source) for lane in receipt.lanes.values() for source in lane.sources]
    wanted = permissions_wanted(inverses, written={source for _, source in origins})
    permissions = permissions_unless_hidden(reader, wanted)
    # Includes partitions for which brokers refused the hand-over, because their target group must not have committed
    # since either.
    now = committed_by_order(reader, lanes)
    added = committed_by_order(reader, receipt.added(reader.describe_topics({topic for _, topic, _ in lanes})))
    changes = [structs.replace(inverse, before=now[inverse.order]) for inverse in inverses]
    stopped = _stopped(origins)
    of_sources = committed_by_order(reader, stopped)
    restored = [change for order, change in stopped.items() if of_sources[order] is None]
    execution = undoes or last_hand_over(receipt)
    return Plan(
        cluster_id=reader.cluster_id(),
        options=options_of_write(execution.options, {change.group for change in [*changes, *restored]}),
        changes=sorted_changes([*changes, *restored]),
        topic_ids=execution.topic_ids,
        checks=(
            same_cluster(reader, execution),
            permitted(reader, wanted, permissions),
            _same_topics(reader, execution, {change.topic for change in changes}),
            _nobody_in(reader, {group for group, *_ in lanes}),
            _not_committed_since(execution, lanes.values(), now, added),
            _source_group(reader, execution, stopped, of_sources),
            _in_range(reader, restored, changes, of_sources),
            *_earlier_deletions(receipt, {change.order for change in changes}),
        ),
    )


def _earlier_deletions(receipt: Receipt, undone: set[Order]) -> list[Check]:
    """Return a warning if offsets that earlier executions deleted stay deleted after the rollback; otherwise nothing.

    undone: group, topic and partition of each offset that this rollback sets again.
    """
    left = [change for change in receipt.deleted if change.order not in undone]
    if not left:
        return []
    topics = {change.topic for change in left}
    reason = f"{counted(len(left), 'offset')} of {named('topic', topics)}, deleted before that, stay deleted until the "
    return [Check.warned("earlier deletions", f"{reason}next rollback of this receipt")]


def _stopped(origins: Iterable[tuple[Lane, str]]) -> dict[Order, Change]:
    """Return, for each partition of a source group, the change that sets its offset again if the group has lost it.

    origins: pairs of a target group's partition and a source group that handed over its topic. The offset is that of
    the hand-over. If the source group had no committed offset then, for instance for a new partition, it is the offset
    that was written to the target group; nothing is set again if that write was refused.
    """
    return {
        (source, change.topic, change.partition): Change(
            source_group=change.group,
            group=source,
            topic=change.topic,
            partition=change.partition,
            before=None,
            after=offset,
        )
        for lane, source in origins
        if (change := lane.entry.change)
        and (offset := change.source_committed or (change.after if lane.state is not State.NEW else None))
    }


def _source_group(
    reader: GroupReader,
    execution: Execution,
    stopped: Mapping[Order, Change],
    now: Mapping[Order, CommittedOffset | None],
) -> Check:
    """Check that the source groups will continue from the offsets at which they stopped.

    If such an offset has expired or was deleted, the rollback sets it again, and the check warns. The check refuses
    instead if the group has members or is not a consumer group, because brokers then don't accept the offset. It also
    warns if a source group has committed since, and if it is on another cluster, because then it is not read.

    stopped: by partition of a source group, the change that sets its offset again. now: the source groups' current
    committed offsets.
    """
    name = "source group"
    if (there := execution.translation) is not None:
        reason = (
            f"{there.group} on cluster {there.cluster_id} is not looked at: see with describe that it has its offsets"
        )
        return Check.warned(name, reason)
    if not stopped:
        return Check.passed(name, NOTHING_TO_CHECK)
    lost: dict[str, list[str]] = defaultdict(list)
    moved: dict[str, list[str]] = defaultdict(list)
    for order, change in stopped.items():
        committed, after = now[order], change.after
        if committed is None:
            lost[change.group].append(str(change.topic_partition))
        elif after is not None and committed.offset != after.offset:
            moved[change.group].append(f"{change.topic_partition} {after.offset} → {committed.offset}")
    live = [
        f"{group} no longer has a committed offset for {some(partitions)}, and {reason}"
        for group, partitions in lost.items()
        if (described := reader.describe_group(group)).exists
        for reason in _live(described)
    ]
    if live:
        reason = f"{some(live, most=3)}; stop its members, so that these offsets can be set again"
        return Check.refused(name, reason)
    found = [
        f"{meaning}: " + "; ".join(f"{group} {some(partitions)}" for group, partitions in of_group.items())
        for meaning, of_group in (
            ("expired or deleted, set again from the receipt", lost),
            ("committed since the hand-over, and left as it is", moved),
        )
        if of_group
    ]
    if found:
        return Check.warned(name, "; ".join(found))
    return Check.passed(name, "the source group has its committed offsets")


def _live(group: GroupDescription) -> list[str]:
    if not group.is_consumer_group:
        return [f"is not a consumer group: its type is {group.kind}"]
    return running(group, None)


def _in_range(
    reader: GroupReader,
    restored: Sequence[Change],
    changes: Sequence[Change],
    now: Mapping[Order, CommittedOffset | None],
) -> Check:
    """Check that the groups start within the log. Consumers apply auto.offset.reset to an offset outside the log.

    The check refuses if a source group's lost offset to set again is outside, and warns about all other offsets.

    restored: the changes that set these offsets. changes: those of the target groups. now: the source groups' current
    committed offsets.
    """
    lost = [(change.group, change.topic_partition, change.after) for change in restored]
    others = [(change.group, change.topic_partition, change.after) for change in changes]
    others += [(group, TopicPartition(topic, number), each) for (group, topic, number), each in now.items()]
    bounds = reader.log_ranges({partition for _, partition, _ in (*lost, *others)})

    def outside(offsets: Iterable[tuple[str, TopicPartition, CommittedOffset | None]]) -> list[str]:
        return [
            f"{group} {partition} at {committed.offset}"
            for group, partition, committed in offsets
            if committed is not None
            and ((log := bounds.get(partition)) is None or not log.start <= committed.offset <= log.end)
        ]

    if out := outside(lost):
        advice = "set an offset of the source group there with rewind and apply, and run again"
        return Check.refused("in range", f"{some(out, 3)}: outside the log by now: {advice}")
    if out := outside(others):
        return Check.warned("in range", f"{some(out, 3)}: outside the log by now, so auto.offset.reset decides there")
    return Check.passed("in range", "the offsets of all groups are within the log")


def _same_topics(reader: GroupReader, execution: Execution, topics: set[str]) -> Check:
    """Check that no topic was deleted or recreated since the execution; otherwise the check refuses.

    A recreated topic, which has another topic id (KIP-516), starts at offset 0.
    """
    now = reader.describe_topics(topics)
    recreated = [
        topic
        for topic in sorted(topics)
        if topic not in now or execution.topic_ids.get(topic, now[topic].topic_id) != now[topic].topic_id
    ]
    write = _name_of(execution)
    complaint = f"deleted, or created again, since the {write}: set offsets on the new topic with rewind and apply"
    return Check.of("topics", recreated, complaint, f"the topics are those of the {write}")


def _name_of(execution: Execution) -> str:
    return "hand-over" if execution.verb is Verb.HAND_OVER else "deletion"


def _nobody_in(reader: GroupReader, groups: set[str]) -> Check:
    live = [
        f"{group} {reason}"
        for group in sorted(groups)
        if (described := reader.describe_group(group)).exists
        for reason in running(described, None)
    ]
    passed = f"no members in {some(groups)}" if groups else "nothing to undo"
    return Check.of("targets", live, "stop these members first", passed)


def _not_committed_since(
    execution: Execution,
    lanes: Collection[Lane],
    now: Mapping[Order, CommittedOffset | None],
    added: Mapping[Order, CommittedOffset | None],
) -> Check:
    """Check that no group has committed since the run's write; otherwise the check refuses.

    Each offset in ``now`` must be one that the run wrote; None if the run deleted it. The offset from before the run
    passes too, if the new one was not read back after the write, or if the write is already undone. The check also
    refuses if ``now`` has None although the run read an offset back: it has expired or was deleted, and it is not known
    how far the group had read.

    lanes: the partitions of the write, with what the receipt says about them. now: their committed offsets, by group,
    topic and partition. added: the committed offsets of target groups on partitions that were added since; there must
    be none.
    """
    since = [f"{group} {topic}-{number}" for (group, topic, number), committed in added.items() if committed]
    gone: list[str] = []
    for lane in lanes:
        change, committed = lane.entry.change, now[lane.entry.change.order]
        is_whole = lane.state is State.HANDED_OVER and lane.entry.settled
        if committed in lane.entry.written or (committed == change.before and not (is_whole and lane.entry.written)):
            continue
        (since if committed else gone).append(f"{change.group} {change.topic_partition}")
    if gone and not since:
        complaint = (
            "the committed offset expired or was deleted, so it is not known how far the group read: set it with apply"
        )
        return Check.of("not committed since", gone, complaint, "")
    if execution.translation is not None and since:
        complaint = (
            "the group has committed since the move to this cluster, and a rollback would lose how far it has read: "
            "let it run on here"
        )
        return Check.of("not committed since", since, complaint, "")
    if execution.verb is Verb.HAND_OVER and since and not any(lane.sources for lane in lanes):
        delete = shell_command("delete-group", sorted({lane.entry.change.group for lane in lanes}))
        complaint = (
            "the group has committed since the write, and no old group can take that back: stop it, and delete it with "
            f"migrate-groups {delete}, or set other offsets with rewind and apply --on-existing overwrite"
        )
        return Check.of("not committed since", since, complaint, "")
    if execution.verb is Verb.HAND_OVER:
        complaint = "the group has committed since the hand-over: use hand-back, which moves the source group forward"
        return Check.of("not committed since", since, complaint, "no target group has committed since the hand-over")
    complaint = "the group has committed since the deletion: set the right offsets with apply"
    return Check.of("not committed since", since, complaint, "the group has not committed since the deletion")
