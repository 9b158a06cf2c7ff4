"""Compare two plans, or a split and the record of a run, in everything except offsets.

A split says which target group gets which topics.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from migrate_groups.model.topics import recreated_topics
from migrate_groups.planning.change import Change, share_groups
from migrate_groups.planning.options import WriteOptions, in_words
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State
from migrate_groups.planning.translation import Translation
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import SplitSpec
from migrate_groups.text import some


def intent_differences(approved: Plan, now: Plan) -> list[str]:
    """Return a message for each difference between an approved plan and the current plan, except in offsets.

    The clusters, the options that change what is written, the names of copied topics, and the source and target group
    of each partition are compared.
    """
    if approved.intent == now.intent:
        return []
    if other := cluster_differences(approved.cluster_id, now.cluster_id):
        # Topics and groups of the same names are others there, so that every further difference would mislead.
        return other
    differences = _source_differences(approved.translation, now.translation)
    chosen = now.options.reviewed
    differences += [
        f"option {name} was {in_words(value)}, is {in_words(chosen[name])}"
        for name, value in approved.options.reviewed.items()
        if value != chosen[name]
    ]
    for group in sorted({*share_groups(approved.changes)} ^ {*share_groups(now.changes)}):
        differences.append(f"group {group} is a share group in one of them")
    before, after = _moves(approved), _moves(now)
    for key in sorted(before.keys() | after.keys()):
        source, group, topic = key
        move = f"topic {topic} from {source or 'no source group'} to {group}"
        gone, added = before.get(key, set()) - after.get(key, set()), after.get(key, set()) - before.get(key, set())
        if key not in before:
            differences.append(f"{move} is new")
        elif key not in after:
            differences.append(f"{move} is missing now")
        else:
            differences += [f"{move}: partition {number} is new" for number in sorted(added)]
            differences += [f"{move}: partition {number} is missing now" for number in sorted(gone)]
    return differences


def cluster_differences(then: str, now: str) -> list[str]:
    """Return a message if this is another cluster. then, now: the ids of the clusters."""
    return [f"the cluster was {then}, this is {now}"] if then != now else []


def _source_differences(before: Translation | None, after: Translation | None) -> list[str]:
    """Return how two plans differ in the source group, in its cluster, or in the names of the copied topics.

    before, after: None if the plan's source group is on the same cluster as its target groups.
    """
    if before is None or after is None:
        was = "this cluster" if before is None else f"cluster {before.cluster_id}"
        return [] if before is after else [f"the old group was on {was}"]
    was, now = (f"{each.group} on cluster {each.cluster_id}" for each in (before, after))
    differences = [f"the old group was {was}, is {now}"] if was != now else []
    copies = {*before.topics} ^ {*after.topics}
    return [*differences, *(f"topic {topic} has the copy {copy} in one of them" for topic, copy in sorted(copies))]


def shorter_settle(name: str, reviewed: WriteOptions, now: WriteOptions) -> str:
    """Return a message if ``settle`` is shorter than in the reviewed plan; otherwise an empty text.

    name: the name of the plan's file.
    """
    if now.settle >= reviewed.settle:
        return ""
    return (
        f"settle is {in_words(now.settle)}, and {name} was reviewed with {in_words(reviewed.settle)}: an old consumer "
        "that commits less often than that is not seen before the write"
    )


def resumed_differently(receipt: Receipt, now: Plan) -> list[str]:
    """Return a message for each difference between a plan and the interrupted run that it is to resume, except offsets.

    A topic that was deleted and created again is a difference. Partitions that were added, rolled back or handed back
    since are no difference. The list is empty if the receipt has no hand-over to resume.
    """
    execution = receipt.hand_over_to_resume
    if execution is None:
        return []
    origins = execution.origins()
    known = {change.order for change in execution.changes}
    taken_back = {
        order
        for order, partition in receipt.partition_states.items()
        if partition.state in (State.UNDONE, State.HANDED_BACK)
    }
    changes = tuple(
        _with_source(change, origins.get(change.order[:2], frozenset()))
        for change in now.changes
        if change.order in known or (change.order[:2] not in origins and change.order not in taken_back)
    )
    then = Plan(
        cluster_id=execution.cluster_id,
        options=execution.options,
        changes=tuple(_with_source(change, origins[change.order[:2]]) for change in execution.changes),
        checks=(),
        translation=execution.translation,
    )
    differences = intent_differences(then, replace(now, changes=changes))
    if now.cluster_id != execution.cluster_id:
        return differences
    recreated = recreated_topics(execution.topic_ids.items(), now.topic_ids) & {each.topic for each in then.changes}
    return differences + [f"topic {topic} was deleted and created again" for topic in sorted(recreated)]


def split_differences(receipt: Receipt, spec: SplitSpec, before: SnapshotTable | None) -> list[str]:
    """Return a message for each topic that a split gives to another target group than the hand-over in the receipt did.

    Another source group is a difference too. before: the source group's snapshot from before the hand-over. The list is
    empty if the receipt has no hand-over.
    """
    execution = receipt.hand_over_to_resume
    if execution is None:
        return []
    if execution.source_groups != {spec.source}:
        return [f"the old group was {some(execution.source_groups)}, is {spec.source}"]
    names = {copy: topic for topic, copy in execution.translation.topics} if execution.translation else {}
    handed_over = {(group, names.get(topic, topic)) for group, topic in execution.origins()}
    leaves = execution.options.on_uncommitted == "leave"
    rows = before.rows() if before else ()
    topics = execution.source_topics | {row.topic for row in rows if row.offset is not None or not leaves}
    wanted = {
        (target.group, topic)
        for target in spec.targets
        for pattern in target.topics
        for topic in pattern.matching(topics) or ([] if leaves else [str(pattern)])
    }
    return [
        f"topic {topic} from {spec.source} to {group} is {'new' if (group, topic) in wanted else 'missing now'}"
        for group, topic in sorted(handed_over ^ wanted)
    ]


def _with_source(change: Change, sources: frozenset[str]) -> Change:
    return structs.replace(change, source_group=min(sources)) if change.source_group is None and sources else change


def _moves(plan: Plan) -> dict[tuple[str, str, str], set[int]]:
    moves: dict[tuple[str, str, str], set[int]] = {}
    for change in plan.changes:
        moves.setdefault((change.source_group or "", change.group, change.topic), set()).add(change.partition)
    return moves
