"""The way back before the target groups have run: restore the committed offsets from before the hand-over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

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
from migrate_groups.planning.execution import Execution, Order
from migrate_groups.planning.plan import Action, Change, Check, Plan, sorted_changes
from migrate_groups.planning.receipt import Lane, Receipt
from migrate_groups.planning.run_states import WORKS, State, Step, Verb
from migrate_groups.text import counted, some


def plan_rollback(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that sets the target groups' offsets back to those from before the hand-over, or deletes them.

    An offset is deleted if the target group had none before the hand-over. If the source group has lost its committed
    offset for a partition, the plan first sets it again, from the receipt, so that the partition is not left without a
    committed offset in all groups. The plan's checks refuse if a target group has members or has committed since,
    because the source group would process again what the target group has processed.

    Raises `Refused` if the receipt forbids a rollback or the run wrote nothing; `NotAuthorized`; and the errors of
    `GroupReader`.
    """
    refuse_by_record(receipt, Verb.ROLLBACK)
    lanes = {order: lane for order, lane in receipt.lanes.items() if not lane.takes(Verb.ROLLBACK, Step.NO_OP)}
    # Includes partitions whose offset was in place before the run: the rollback does not change it, and records these
    # partitions as undone.
    undone = {order: lane for order, lane in lanes.items() if lane.takes(Verb.ROLLBACK, *WORKS)}
    wrote = any(lane.entry.change.action is not Action.UNCHANGED for lane in undone.values())
    if not wrote and not receipt.is_done(Verb.ROLLBACK):
        raise Refused(
            "nothing to roll back: this run wrote nothing; the offsets that it found in place were written by another "
            "run, whose receipt can undo them"
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
    execution = last_hand_over(receipt)
    return Plan(
        cluster_id=reader.cluster_id(),
        options=execution.options,
        changes=sorted_changes([*changes, *restored]),
        topic_ids=execution.topic_ids,
        checks=(
            same_cluster(reader, execution),
            permitted(reader, wanted, permissions),
            _same_topics(reader, execution, {change.topic for change in changes}),
            _nobody_in(reader, {group for group, *_ in lanes}),
            _not_committed_since(lanes.values(), now),
            _can_be_restored(reader, restored),
            _in_range(reader, restored),
        ),
    )


def _restored(reader: GroupReader, origins: Iterable[tuple[Lane, str]]) -> list[Change]:
    """Return the changes that set again the offsets that source groups have lost since the hand-over.

    Each gets its value at the hand-over. If the source group had no committed offset then, for instance for a new
    partition, it gets the offset that was written to the target group.
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
    """Check that lost offsets can be set again: brokers accept offsets only for consumer groups without members."""
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
        reason = f"no longer committed, set again from the receipt: {found}"
        return Check.warned("source group", reason)
    return Check.passed("source group", "it has its committed offsets")


def _live(group: GroupDescription) -> list[str]:
    if not group.is_consumer_group:
        return [f"is a group of type {group.group_type} {group.protocol_type}".rstrip()]
    return running(group, None)


def _in_range(reader: GroupReader, restored: Sequence[Change]) -> Check:
    """Check that the offsets to set again lie within the log: consumers apply auto.offset.reset to any other offset."""
    bounds = reader.log_ranges([change.topic_partition for change in restored])
    out = [
        f"{change.topic_partition} at {change.after.offset}"
        for change in restored
        if change.after is not None
        and ((log := bounds.get(change.topic_partition)) is None or not log.start <= change.after.offset <= log.end)
    ]
    return Check.of("in range", out, "no longer within the log", f"{counted(len(restored), 'offset')} within the log")


def _same_topics(reader: GroupReader, execution: Execution, topics: set[str]) -> Check:
    """Check that no topic was deleted or recreated since the hand-over: a new topic starts at offset 0 (KIP-516)."""
    now = reader.describe_topics(topics)
    recreated = [
        topic
        for topic in sorted(topics)
        if topic not in now or execution.topic_ids.get(topic, now[topic].topic_id) != now[topic].topic_id
    ]
    return Check.of("topics", recreated, "deleted, or created again, since the hand-over", "the same topics")


def _nobody_in(reader: GroupReader, groups: set[str]) -> Check:
    live = [
        f"{group} {reason}"
        for group in sorted(groups)
        if (described := reader.describe_group(group)).exists
        for reason in running(described, None)
    ]
    return Check.of("targets", live, "not stopped", f"{some(groups)} without members" if groups else "nothing to undo")


def _not_committed_since(lanes: Iterable[Lane], now: Mapping[Order, CommittedOffset | None]) -> Check:
    """Check that no target group has committed since: it has the offset that the run wrote.

    The offset from before the run is fine too, if the write was not confirmed or is already undone. If a confirmed
    offset is missing, it has expired or was deleted, and it is not known how far the group had read.
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
        complaint = "no longer committed: it is not known whether the group went on; set the right offset with apply"
        return Check.of("not committed since", gone, complaint, "")
    advice = "; hand-back moves the source group forward instead" if since else ""
    return Check.of("not committed since", since, f"committed since{advice}", "no offset has been committed since")
