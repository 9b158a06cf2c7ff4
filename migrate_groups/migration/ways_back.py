"""The two ways back from a hand-over, and the clean-up after it. Each is a plan for the one write path.

Before the new groups have run, `plan_rollback` restores what was there. Once they have, `hand_back` moves the stopped
source group forward to where they are. `delete_source_offsets` is for the day after. Each reads from the receipt what
it may do, and from the brokers whether that is still true.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.survey import permissions_unless_hidden
from migrate_groups.migration.take import take_snapshot
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.checks.permission import Permissions, missing, of_hand_over
from migrate_groups.planning.checks.source import running
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Action, Change, Check, Plan, sorted_changes
from migrate_groups.planning.receipt import Execution, Lane, Order, Receipt
from migrate_groups.planning.run_states import WORKS, State, Step, Verb
from migrate_groups.snapshots.snapshot import Snapshot
from migrate_groups.text import counted, some

_DELETE = frozenset({Operation.DESCRIBE, Operation.DELETE})
_WRITE = frozenset({Operation.DESCRIBE, Operation.READ})


def refuse_by_record(receipt: Receipt, verb: Verb) -> None:
    """Raise `Refused` where the record of the run forbids this verb, naming each state with its partitions."""
    reasons = receipt.refusals(verb)
    if reasons:
        raise Refused(f"{'; '.join(reasons)}; nothing was written")


def plan_rollback(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that restores the pre-image of a run's hand-over and deletes the offsets that it created.

    Where the source group no longer has the committed offset of a partition, that is set again first, from the receipt:
    otherwise the partition would be in no group. The plan refuses where a target has members or has committed since:
    those records would be processed twice. Raises `Refused` where the run wrote nothing; and as `GroupReader`.
    """
    refuse_by_record(receipt, Verb.ROLLBACK)
    lanes = {order: lane for order, lane in receipt.lanes.items() if not lane.takes(Verb.ROLLBACK, Step.NO_OP)}
    # Also those that the run found in place: they are undone once nobody goes on with them.
    undone = {order: lane for order, lane in lanes.items() if lane.takes(Verb.ROLLBACK, *WORKS)}
    wrote = any(lane.entry.change.action is not Action.UNCHANGED for lane in undone.values())
    if not wrote and not receipt.is_done(Verb.ROLLBACK):
        raise Refused(
            "nothing to roll back: this run wrote nothing; the offsets that it found in place were written by another "
            "run, whose receipt can undo them"
        )
    inverses = [lane.entry.change.inverse for lane in undone.values()]
    origins = [(lane, source) for lane in undone.values() for source in lane.sources]
    wanted = _wanted(inverses, written={source for _, source in origins})
    permissions = permissions_unless_hidden(reader, wanted)
    # Also those that the brokers refused: they must not have gone on.
    now = _committed(reader, lanes)
    changes = [structs.replace(inverse, before=now[inverse.order]) for inverse in inverses]
    restored = _restored(reader, origins)
    execution = _last_hand_over(receipt)
    return Plan(
        cluster_id=reader.cluster_id(),
        options=execution.options,
        changes=sorted_changes([*changes, *restored]),
        topic_ids=execution.topic_ids,
        checks=(
            _same_cluster(reader, execution),
            _permitted(reader, wanted, permissions),
            _same_topics(reader, execution, {change.topic for change in changes}),
            _nobody_in(reader, {group for group, *_ in lanes}),
            _not_committed_since(lanes.values(), now),
            _can_be_restored(reader, restored),
            _in_range(reader, restored),
        ),
    )


def hand_back(reader: GroupReader, receipt: Receipt, clock: Clock) -> tuple[Snapshot, WriteOptions]:
    """Return the targets' committed offsets now, as a hand-over to the groups that they came from, and its options.

    The source group is moved forward only. Raises `Refused` where the record of the run forbids it, names no source
    group, or two targets share one of its partitions, and where a target has no committed offset for a partition any
    more; `GroupNotFound`; and as `GroupReader`.
    """
    refuse_by_record(receipt, Verb.HAND_BACK)
    lanes = {order: lane for order, lane in receipt.lanes.items() if lane.state is not State.NEW}
    # By topic: a target went on also with partitions that were added, or had no commit, at the hand-over.
    origin = {(group, topic): lane.sources for (group, topic, _), lane in lanes.items()}
    if not origin:
        raise Refused("nothing to hand back: this run wrote nothing")
    if not all(len(sources) == 1 for sources in origin.values()):
        raise Refused("the receipt has topics without one source group: there is none to hand them back to")
    groups = sorted({group for group, _ in origin})
    permissions_unless_hidden(
        reader, of_hand_over(groups, set().union(*origin.values()), {topic for _, topic in origin})
    )
    skipped = {order for order, lane in receipt.lanes.items() if lane.takes(Verb.HAND_BACK, Step.SKIP, Step.NO_OP)}
    rows = [
        structs.replace(row, group=next(iter(origin[row.group or "", row.topic])), source_group=row.group)
        for row in take_snapshot(reader, groups, clock).rows()
        if (row.group or "", row.topic) in origin and (row.group or "", row.topic, row.partition) not in skipped
    ]
    shared = {(row.group, row.topic_partition) for row in rows}
    if len(shared) < len(rows):
        raise Refused("several new groups consume the same partition (fan-out): they can't hand back to one group")
    if all(row.offset is None for row in rows):
        raise Refused(f"{some(groups)} committed nothing on the topics that were handed over: nothing to hand back")
    there = {(row.source_group or "", row.topic, row.partition) for row in rows if row.offset is not None}
    lost = [
        f"{group} {topic}-{number}"
        for (group, topic, number), lane in lanes.items()
        if (group, topic, number) not in there | skipped and lane.entry.change.after
    ]
    if lost:
        raise Refused(
            f"no committed offset any more: {some(lost)}: nobody can tell how far the group went; set the offset that "
            "is right with apply, or by rewind, then run hand-back again; nothing was written"
        )
    options = replace(_last_hand_over(receipt).options, on_existing="forward", uncommitted="leave", restore=False)
    return Snapshot.of_rows(rows), options


def delete_source_offsets(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that deletes the moved partitions' offsets from the source group, so that its lag is true.

    It refuses where a target has no committed offset or a lower one than was handed over to it, where the source group
    moved since, and where a member of it still holds the topics. Raises `Refused` where the record of the run forbids
    it; and as `GroupReader`.
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
    wanted = _wanted(as_source, {change.group for change in moved})
    permissions = permissions_unless_hidden(reader, wanted)
    now_new = _committed(reader, [change.order for change in moved])
    now_old = _committed(reader, [source.order for source in as_source])
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
    execution = _last_hand_over(receipt)
    return Plan(
        cluster_id=reader.cluster_id(),
        options=execution.options,
        changes=changes,
        topic_ids=execution.topic_ids,
        checks=(
            _same_cluster(reader, execution),
            _permitted(reader, wanted, permissions),
            Check.of("taken over", behind, "not taken over yet", "every target is at or after what it was handed"),
            Check.of("not moved", changed, "moved in the source group since", "the source group has not moved since"),
            _nobody_holds(described, topics),
            *gone,
        ),
    )


def _last_hand_over(receipt: Receipt) -> Execution:
    """Return the last hand-over of a run. Raises `Refused` where it has none."""
    executions = [execution for execution in receipt.executions if execution.verb is Verb.HAND_OVER]
    if not executions:
        raise Refused("this run wrote nothing")
    return executions[-1]


def _restored(reader: GroupReader, origins: Iterable[tuple[Lane, str]]) -> list[Change]:
    """Return what the source groups do not have committed: as they had it when it was handed over.

    A partition that they had no offset for then, since it was new for instance, gets the offset that the target got.
    """
    known = {
        (source, lane.entry.change.topic, lane.entry.change.partition): lane.entry.change for lane, source in origins
    }
    now = _committed(reader, known)
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


def _committed(reader: GroupReader, orders: Iterable[Order]) -> dict[Order, CommittedOffset | None]:
    of_group: dict[str, list[TopicPartition]] = defaultdict(list)
    for group, topic, number in orders:
        of_group[group].append(TopicPartition(topic, number))
    return {
        (group, *partition): committed
        for group, partitions in of_group.items()
        for partition, committed in reader.committed(group, partitions).items()
    }


def _of_source(change: Change) -> Change:
    group = change.source_group or ""
    return structs.replace(change, source_group=None, source_committed=None, group=group, before=None, after=None)


def _is_behind(now: CommittedOffset | None, handed_over: Change) -> bool:
    return now is None or (handed_over.after is not None and now.offset < handed_over.after.offset)


def _can_be_restored(reader: GroupReader, restored: Sequence[Change]) -> Check:
    """What the source groups no longer have can be set again: brokers take offsets for groups without members only."""
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
    """What is set again lies within the log: out of it, a consumer would apply auto.offset.reset."""
    bounds = reader.log_ranges([change.topic_partition for change in restored])
    out = [
        f"{change.topic_partition} at {change.after.offset}"
        for change in restored
        if change.after is not None
        and ((log := bounds.get(change.topic_partition)) is None or not log.start <= change.after.offset <= log.end)
    ]
    return Check.of(
        "in range", out, "not within the log any more", f"{counted(len(restored), 'offset')} within the log"
    )


def _same_topics(reader: GroupReader, execution: Execution, topics: set[str]) -> Check:
    """Every topic is the one that was handed over: a recreated one starts again at offset 0 (KIP-516)."""
    now = reader.describe_topics(topics)
    recreated = [
        topic
        for topic in sorted(topics)
        if topic not in now or execution.topic_ids.get(topic, now[topic].topic_id) != now[topic].topic_id
    ]
    return Check.of("topics", recreated, "deleted, or created again, since the hand-over", "the same topics")


def _same_cluster(reader: GroupReader, execution: Execution) -> Check:
    here = reader.cluster_id()
    return Check.of(
        "cluster", [] if here == execution.cluster_id else [execution.cluster_id], "another cluster", f"this is {here}"
    )


def _wanted(
    changes: Sequence[Change], looked_at: Iterable[str] = (), *, written: Iterable[str] = ()
) -> Mapping[Resource, frozenset[Operation]]:
    """Return what a principal must be allowed to do, to make these changes, to look at and to write these groups."""
    wanted = {Resource(ResourceType.GROUP, group): frozenset({Operation.DESCRIBE}) for group in looked_at}
    wanted |= {Resource(ResourceType.GROUP, group): _WRITE for group in written}
    for change in changes:
        group, topic = Resource(ResourceType.GROUP, change.group), Resource(ResourceType.TOPIC, change.topic)
        wanted[group] = wanted.get(group, frozenset()) | (_DELETE if change.after is None else _WRITE)
        wanted[topic] = _WRITE
    return wanted


def _permitted(reader: GroupReader, wanted: Mapping[Resource, frozenset[Operation]], permissions: Permissions) -> Check:
    lacking = missing(wanted, permissions)
    if not lacking:
        return Check.passed("permission", f"{reader.principal} may do all of it")
    reason = f"{reader.principal} lacks {some(lacking, most=20)}; grant it these permissions"
    return Check.refused("permission", reason)


def _nobody_in(reader: GroupReader, groups: set[str]) -> Check:
    live = [
        f"{group} {reason}"
        for group in sorted(groups)
        if (described := reader.describe_group(group)).exists
        for reason in running(described, None)
    ]
    return Check.of("targets", live, "not stopped", f"{some(groups)} without members" if groups else "nothing to undo")


def _nobody_holds(described: Mapping[str, GroupDescription], topics: Mapping[str, set[str]]) -> Check:
    live = [
        f"{group} {reason}"
        for group, held in topics.items()
        if described[group].exists
        for reason in running(described[group], held)
    ]
    return Check.of("stopped", live, "still consumed", "no member holds the moved topics")


def _not_committed_since(lanes: Iterable[Lane], now: Mapping[Order, CommittedOffset | None]) -> Check:
    """Each target has what the run wrote, or, where that was not confirmed or is being undone, what was there before.

    An offset that was confirmed and is gone expired or was deleted: nobody can tell whether its group had gone on.
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
        complaint = "no longer committed: nobody can tell whether the group went on; set what is right with apply"
        return Check.of("not committed since", gone, complaint, "")
    advice = "; hand-back moves the source group forward instead" if since else ""
    return Check.of("not committed since", since, f"committed since{advice}", "nobody has committed since")
