"""The two ways back from a migration, and the clean-up after it. Each is a plan for the one write path.

Before the new groups have run, `rollback` restores what was there. Once they have, `hand_back` moves the stopped old
group forward to where they are. `delete_source_offsets` is for the day after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.cluster.ports import CommittedOffset, GroupReader, Operation, Resource, ResourceType
from migrate_groups.errors import Refused
from migrate_groups.migration.survey import permissions_unless_hidden
from migrate_groups.migration.take import take_snapshot
from migrate_groups.offsets.snapshot import Snapshot
from migrate_groups.plan.checks.permission import Permissions, missing, of_hand_over
from migrate_groups.plan.checks.source import running
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Action, Change, Check, Plan, Verdict, sorted_changes
from migrate_groups.plan.receipt import Entry, Receipt
from migrate_groups.text import counted, some


def plan_rollback(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that restores the pre-image of a receipt and deletes the offsets that it created.

    It refuses where a new group has members, or has committed since: those records would be processed twice. Raises
    as `GroupReader`.
    """
    # Also what was never answered for or attempted, as far as the receipt knows: a killed run may have sent it.
    written = [entry for entry in receipt.entries if entry.change.action is not Action.UNCHANGED]
    inverses = [entry.change.inverse for entry in written]
    wanted = _wanted(inverses, {entry.change.source_group for entry in written})
    permissions = permissions_unless_hidden(reader, wanted)
    committed = _committed(reader, [entry.change for entry in written])
    changes = sorted_changes(structs.replace(inverse, before=committed[inverse.order]) for inverse in inverses)
    return Plan(
        cluster_id=reader.cluster_id(),
        options=receipt.options,
        changes=changes,
        checks=(
            _same_cluster(reader, receipt),
            _permitted(reader, wanted, permissions),
            _nobody_in(reader, {change.group for change in changes}),
            _not_committed_since(written, changes),
            _old_group_still_there(reader, written),
        ),
    )


def hand_back(reader: GroupReader, receipt: Receipt, clock: Clock) -> tuple[Snapshot, WriteOptions]:
    """Return the new groups' offsets now, as a hand-over to the groups that they came from, and the options for it.

    The old group is moved forward only. Raises `Refused` where the receipt names no old group or two new groups share
    one of its partitions; `GroupNotFound`; and as `GroupReader`.
    """
    # By topic: the new group went on also with partitions that were added, or had no commit, at the migration.
    origin = receipt.origins()
    if not all(len(sources) == 1 for sources in origin.values()):
        raise Refused("the receipt has topics without one old group: there is none to hand them back to")
    groups = sorted({group for group, _ in origin})
    permissions_unless_hidden(
        reader, of_hand_over(groups, set().union(*origin.values()), {topic for _, topic in origin})
    )
    rows = [
        structs.replace(row, group=next(iter(origin[row.group or "", row.topic])), source_group=row.group)
        for row in take_snapshot(reader, groups, clock).rows()
        if (row.group or "", row.topic) in origin
    ]
    shared = {(row.group, row.topic_partition) for row in rows}
    if len(shared) < len(rows):
        raise Refused("several new groups consume the same partition (fan-out): they can't hand back to one old group")
    if all(row.offset is None for row in rows):
        raise Refused(f"{some(groups)} committed nothing on the topics that were handed over: nothing to hand back")
    options = replace(receipt.options, on_existing="forward", uncommitted="leave", guard=0.0, restore=False)
    return Snapshot.of_rows(rows), options


def delete_source_offsets(reader: GroupReader, receipt: Receipt) -> Plan:
    """Return the plan that deletes the moved partitions' offsets from the old group, so that its lag is true.

    It refuses where a new group stands nowhere or behind what was handed over to it, where the old group moved since,
    and where a member of it still holds the topics. Raises as `GroupReader`.
    """
    moved = [change for change in receipt.handed_over() if change.after]
    as_source = [_of_source(change) for change in moved]
    wanted = _wanted([structs.replace(source, after=None) for source in as_source], {change.group for change in moved})
    permissions = permissions_unless_hidden(reader, wanted)
    now_new = _committed(reader, moved)
    now_old = _committed(reader, as_source)
    behind = [
        f"{change.group} {change.topic_partition}" for change in moved if _stands_behind(now_new[change.order], change)
    ]
    still = {source.order: change for change, source in zip(moved, as_source, strict=True)}
    changed = [
        str(change.topic_partition)
        for order, change in still.items()
        if (now := now_old[order]) and now.offset != change.handed_over_at
    ]
    changes = sorted_changes(
        structs.replace(source, before=now_old[source.order], after=None)
        for source in {source.order: source for source in as_source}.values()
    )
    topics: dict[str, set[str]] = {}
    for change in changes:
        topics.setdefault(change.group, set()).add(change.topic)
    return Plan(
        cluster_id=reader.cluster_id(),
        options=receipt.options,
        changes=changes,
        checks=(
            _same_cluster(reader, receipt),
            _permitted(reader, wanted, permissions),
            _check("taken over", behind, "not taken over yet", "every new group stands at or after what it was handed"),
            _check("not moved", changed, "moved in the old group since", "the old group has not moved since"),
            _nobody_holds(reader, topics),
        ),
    )


def _committed(reader: GroupReader, changes: Sequence[Change]) -> dict[tuple[str, str, int], CommittedOffset | None]:
    found = {}
    for group in {change.group for change in changes}:
        of_group = [change for change in changes if change.group == group]
        answers = reader.committed(group, [change.topic_partition for change in of_group])
        found.update({change.order: answers[change.topic_partition] for change in of_group})
    return found


def _of_source(change: Change) -> Change:
    return structs.replace(change, source_group=None, source_offset=None, group=change.source_group or "", before=None)


def _stands_behind(now: CommittedOffset | None, handed_over: Change) -> bool:
    return now is None or (handed_over.after is not None and now.offset < handed_over.after.offset)


def _old_group_still_there(reader: GroupReader, written: Sequence[Entry]) -> Check:
    """The old group has its offsets yet: after delete-offsets a rollback would leave the topics in no group at all."""
    topics: dict[str, set[str]] = {}
    for change in (entry.change for entry in written):
        if change.source_group is not None:
            topics.setdefault(change.source_group, set()).add(change.topic)
    gone = [
        group
        for group, handed_over in topics.items()
        if handed_over.isdisjoint(partition.topic for partition in reader.all_committed(group))
    ]
    return _check("old group", gone, "its offsets were deleted; hand-back sets them anew", "it has its offsets yet")


def _same_cluster(reader: GroupReader, receipt: Receipt) -> Check:
    here = reader.cluster_id()
    return _check(
        "cluster", [] if here == receipt.cluster_id else [receipt.cluster_id], "another cluster", f"this is {here}"
    )


def _wanted(changes: Sequence[Change], looked_at: Iterable[str | None]) -> Mapping[Resource, frozenset[Operation]]:
    """Return what a principal must be allowed to do, to make these changes and to look at these groups."""
    read = (Resource(ResourceType.GROUP, group) for group in looked_at if group is not None)
    wanted = dict.fromkeys(read, frozenset({Operation.DESCRIBE}))
    for change in changes:
        deed = Operation.DELETE if change.after is None else Operation.READ
        group, topic = Resource(ResourceType.GROUP, change.group), Resource(ResourceType.TOPIC, change.topic)
        wanted[group] = wanted.get(group, frozenset()) | {Operation.DESCRIBE, deed}
        wanted[topic] = frozenset({Operation.DESCRIBE, Operation.READ})
    return wanted


def _permitted(reader: GroupReader, wanted: Mapping[Resource, frozenset[Operation]], permissions: Permissions) -> Check:
    lacking = missing(wanted, permissions)
    if not lacking:
        return Check(name="permission", verdict=Verdict.PASS, reason=f"{reader.principal} may do all of it")
    reason = f"{reader.principal} lacks {some(lacking, most=20)}; grant it these permissions"
    return Check(name="permission", verdict=Verdict.REFUSE, reason=reason)


def _nobody_in(reader: GroupReader, groups: set[str]) -> Check:
    live = [
        f"{group} {reason}"
        for group in sorted(groups)
        if (described := reader.describe_group(group)).exists
        for reason in running(described, None)
    ]
    return _check(
        "targets", live, "not stopped", f"{some(groups)} without members" if groups else "nothing was written"
    )


def _nobody_holds(reader: GroupReader, topics: dict[str, set[str]]) -> Check:
    live = [
        f"{group} {reason}"
        for group, held in topics.items()
        if (described := reader.describe_group(group)).exists
        for reason in running(described, held)
    ]
    return _check("stopped", live, "still consumed", "no member holds the moved topics")


def _not_committed_since(written: Sequence[Entry], changes: Sequence[Change]) -> Check:
    now = {change.order: change.before for change in changes}
    since = [
        f"{entry.change.group} {entry.change.topic_partition}"
        for entry in written
        if now[entry.change.order] not in (entry.change.before, *entry.of_its_runs)
    ]
    advice = "; hand-back moves the old group forward instead" if since else ""
    return _check("not committed since", since, f"committed since{advice}", "nobody has committed since")


def _check(name: str, found: Sequence[str], complaint: str, passed: str) -> Check:
    if not found:
        return Check(name=name, verdict=Verdict.PASS, reason=passed)
    return Check(
        name=name, verdict=Verdict.REFUSE, reason=f"{counted(len(found), 'case')}: {some(found, 3)}: {complaint}"
    )
