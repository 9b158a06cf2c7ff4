"""Undo a hand-over whose target groups have not run: restore the committed offsets from before the hand-over."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import structs

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.ways_back.common import (
    committed_by_order,
    last_hand_over,
    options_of_write,
    permissions_wanted,
    permitted,
    same_cluster,
)
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.checks.source import NOTHING_TO_CHECK, running
from migrate_groups.planning.execution import Execution, Order
from migrate_groups.planning.lanes import Lane
from migrate_groups.planning.plan import Action, Change, Check, Plan, sorted_changes
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, State, Verb
from migrate_groups.text import counted, named, some


def plan_rollback(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that sets the target groups' offsets back to those from before the hand-over, or deletes them.

    An offset is deleted if the target group had none before the hand-over. If the source group no longer has its
    committed offset for a partition, the plan first sets it again, from the receipt. Otherwise no group would have a
    committed offset for the partition.

    The plan's checks refuse if a target group has members or has committed since, because the source group would
    process again what the target group has processed.

    In a receipt of deletions without a hand-over, the plan sets the offsets of the last deletion again, with the same
    checks. A warning names earlier deletions that are not undone yet.

    Raises `Refused` if the receipt forbids a rollback or the last hand-over wrote nothing; `NotAuthorized`; and
    the errors of `GroupReader`.
    """
    refuse_by_record(receipt, Verb.ROLLBACK)
    undoes, lanes = receipt.to_roll_back()
    # Includes partitions whose offset was in place before the run: the rollback does not change it, and records these
    # partitions as undone.
    undone = {order: lane for order, lane in lanes.items() if lane.takes(Verb.ROLLBACK, *WORKS)}
    wrote = any(lane.entry.change.action is not Action.UNCHANGED for lane in undone.values())
    if not wrote and not receipt.is_done(Verb.ROLLBACK):
        raise Refused(
            "nothing to roll back: the last hand-over wrote nothing; if another run wrote the offsets, roll back with "
            "its receipt"
        )
    inverses = [lane.entry.change.inverse for lane in undone.values()]
    origins = [(lane, source) for lane in undone.values() for source in lane.sources]
    wanted = permissions_wanted(inverses, written={source for _, source in origins})
    permissions = permissions_unless_hidden(reader, wanted)
    # Includes partitions for which brokers refused the hand-over, because their target group must not have committed
    # since either.
    now = committed_by_order(reader, lanes)
    changes = [structs.replace(inverse, before=now[inverse.order]) for inverse in inverses]
    restored = _restored(reader, origins)
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
            _not_committed_since(execution, lanes.values(), now),
            _can_be_restored(reader, restored) if origins else Check.passed("source group", NOTHING_TO_CHECK),
            *([_in_range(reader, restored)] if restored else []),
            *_earlier_deletions(receipt, {change.order for change in changes}),
        ),
    )


def _earlier_deletions(receipt: Receipt, undone: set[Order]) -> list[Check]:
    """Return a warning if offsets that earlier executions deleted stay deleted after the rollback; otherwise nothing.

    undone: the partitions whose offsets this rollback sets again.
    """
    left = [change for change in receipt.deleted if change.order not in undone]
    if not left:
        return []
    topics = {change.topic for change in left}
    reason = f"{counted(len(left), 'offset')} of {named('topic', topics)}, deleted before that, stay deleted until the "
    return [Check.warned("earlier deletions", f"{reason}next rollback of this receipt")]


def _restored(reader: GroupReader, origins: Iterable[tuple[Lane, str]]) -> list[Change]:
    """Return the changes that set again the committed offsets that source groups have lost since the hand-over.

    origins: pairs of a target group's partition and a source group that handed over its topic. Each offset is set as it
    was at the hand-over. If the source group had no committed offset then, for instance for a new partition, it gets
    the offset that was written to the target group.
    """
    known = {
        (source, lane.entry.change.topic, lane.entry.change.partition): lane.entry.change for lane, source in origins
    }
    now = committed_by_order(reader, known)
    return [
        Change(
            source_group=change.group,
            group=order[0],
            topic=change.topic,
            partition=change.partition,
            before=None,
            after=change.source_committed or change.after,
        )
        for order, change in known.items()
        if now[order] is None
    ]


def _can_be_restored(reader: GroupReader, restored: Sequence[Change]) -> Check:
    """Check that lost offsets can be set again: brokers accept offsets only for consumer groups without members.

    The check warns if source groups have lost offsets, and refuses if these can't be set.
    """
    lost: dict[str, list[str]] = defaultdict(list)
    for change in restored:
        lost[change.group].append(str(change.topic_partition))
    live = [
        f"{group} no longer has a committed offset for {some(partitions)}, and {reason}"
        for group, partitions in lost.items()
        if (described := reader.describe_group(group)).exists
        for reason in _live(described)
    ]
    if live:
        reason = f"{some(live, most=3)}; stop its members, so that these offsets can be set again"
        return Check.refused("source group", reason)
    if lost:
        found = "; ".join(f"{group} {some(partitions)}" for group, partitions in lost.items())
        reason = f"expired or deleted, set again from the receipt: {found}"
        return Check.warned("source group", reason)
    return Check.passed("source group", "the source group has its committed offsets")


def _live(group: GroupDescription) -> list[str]:
    if not group.is_consumer_group:
        return [f"is not a consumer group: its type is {group.kind}"]
    return running(group, None)


def _in_range(reader: GroupReader, restored: Sequence[Change]) -> Check:
    """Check that the offsets to set again lie within the log; otherwise the check refuses.

    Consumers apply auto.offset.reset to an offset outside the log.
    """
    bounds = reader.log_ranges([change.topic_partition for change in restored])
    out = [
        f"{change.topic_partition} at {change.after.offset}"
        for change in restored
        if change.after is not None
        and ((log := bounds.get(change.topic_partition)) is None or not log.start <= change.after.offset <= log.end)
    ]
    complaint = "outside the log by now: set an offset of the source group there with rewind and apply, and run again"
    return Check.of("in range", out, complaint, f"{counted(len(restored), 'offset')} within the log")


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
    execution: Execution, lanes: Collection[Lane], now: Mapping[Order, CommittedOffset | None]
) -> Check:
    """Check that no group has committed since the run's write: each offset in ``now`` must be one that the run wrote.

    If the run deleted the offset, the group must have none. The offset from before the run passes too, if the new one
    was not read back after the write, or if the write is already undone. The check also refuses if an offset that was
    read back is missing: it has expired or was deleted, and it is not known how far the group had read.

    lanes: the partitions of the write, with what the receipt says about them.
    """
    since: list[str] = []
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
        groups = shlex.join(sorted({lane.entry.change.group for lane in lanes}))
        complaint = (
            "the group has committed since the write, and no old group can take that back: stop it, and delete it with "
            f"migrate-groups delete-group {groups}, or set other offsets with rewind and apply --on-existing overwrite"
        )
        return Check.of("not committed since", since, complaint, "")
    if execution.verb is Verb.HAND_OVER:
        complaint = "the group has committed since the hand-over: use hand-back, which moves the source group forward"
        return Check.of("not committed since", since, complaint, "no target group has committed since the hand-over")
    complaint = "the group has committed since the deletion: set the right offsets with apply"
    return Check.of("not committed since", since, complaint, "the group has not committed since the deletion")
