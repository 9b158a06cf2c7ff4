"""Compare the intents of two plans, or of a split and a receipt: what goes from which group to which group.

Offsets are not compared, because the source group may still commit between the review and the write.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from msgspec import structs

from migrate_groups.model.topics import is_recreated
from migrate_groups.planning.options import in_words
from migrate_groups.planning.plan import Change, Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State
from migrate_groups.planning.translation import Translation
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import SplitSpec
from migrate_groups.text import some


def intent_differences(approved: Plan, now: Plan) -> list[str]:
    """Compare the intent of the current plan with that of the approved plan, and return a message for each difference.

    The intent is the cluster, the options, and the source and the target group of each partition. The list is empty if
    the intent hashes are equal. A whole topic, for instance a new one that a glob matches, is one difference.
    """
    if approved.intent == now.intent:
        return []
    differences = []
    if approved.cluster_id != now.cluster_id:
        differences.append(f"the cluster was {approved.cluster_id}, this is {now.cluster_id}")
    differences += _source_differences(approved.translation, now.translation)
    chosen = asdict(now.options)
    differences += [
        f"option {name} was {in_words(value)}, is {in_words(chosen[name])}"
        for name, value in asdict(approved.options).items()
        if value != chosen[name]
    ]
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


def _source_differences(before: Translation | None, after: Translation | None) -> list[str]:
    """Return how two plans differ in the source group, in its cluster, or in the names of the copied topics.

    before, after: None if the source group of that plan is on the same cluster as the target groups.
    """
    if before is None or after is None:
        was = "this cluster" if before is None else f"cluster {before.cluster_id}"
        return [] if before is after else [f"the old group was on {was}"]
    was, now = (f"{each.group} on cluster {each.cluster_id}" for each in (before, after))
    differences = [f"the old group was {was}, is {now}"] if was != now else []
    copies = {*before.topics} ^ {*after.topics}
    return [*differences, *(f"topic {topic} has the copy {copy} in one of them" for topic, copy in sorted(copies))]


def resumed_differently(receipt: Receipt, now: Plan) -> list[str]:
    """Compare the intent of a plan with that of the run that it is to resume, and return a message for each difference.

    The intent is the cluster, the options, and the source and the target group of each partition. A topic that was
    deleted and created again since is a difference too, because the run's offsets do not apply to the new topic. The
    list is empty if there is no difference, or if the receipt (the record of the run) has no hand-over to resume. Two
    kinds of partitions are no difference:

    - a partition that was added to one of the run's topics since, even if the source group has committed an offset for
      it
    - a partition that was rolled back or handed back, and is now handed over again
    """
    execution = receipt.hand_over
    if execution is None:
        return []
    origins = execution.origins()
    known = {entry.change.order for entry in execution.entries}
    taken_back = {order for order, lane in receipt.lanes.items() if lane.state in (State.UNDONE, State.HANDED_BACK)}
    changes = tuple(
        _with_source(change, origins.get(change.order[:2], frozenset()))
        for change in now.changes
        if change.order in known or (change.order[:2] not in origins and change.order not in taken_back)
    )
    then = Plan(
        cluster_id=execution.cluster_id,
        options=execution.options,
        changes=tuple(_with_source(entry.change, origins[entry.change.order[:2]]) for entry in execution.entries),
        checks=(),
        translation=execution.translation,
    )
    recreated = [
        f"topic {topic} was deleted and created again"
        for topic in sorted({entry.change.topic for entry in execution.entries})
        if now.cluster_id == execution.cluster_id
        and is_recreated(execution.topic_ids.get(topic), now.topic_ids.get(topic))
    ]
    return intent_differences(then, replace(now, changes=changes)) + recreated


def split_differences(receipt: Receipt, spec: SplitSpec, before: SnapshotTable | None) -> list[str]:
    """Compare a split with the hand-over in the receipt of its run, and return a message for each difference.

    They differ if the split names another source group, or gives a topic to other target groups. The list is empty if
    the receipt has no hand-over. Nothing is read from the cluster, because the source group may no longer exist.

    before: the source group's snapshot from before the hand-over, with the topics that it had then; None if there is
    none, so that only the topics of the hand-over are known. A topic that the source group has got since is no
    difference. With the option ``uncommitted`` "leave", nor is a topic for which it had no committed offset, because
    such a topic is not in the receipt.
    """
    execution = receipt.hand_over
    if execution is None:
        return []
    if execution.source_groups != {spec.source}:
        return [f"the old group was {some(execution.source_groups)}, is {spec.source}"]
    names = {copy: topic for topic, copy in execution.translation.topics} if execution.translation else {}
    handed_over = {(group, names.get(topic, topic)) for group, topic in execution.origins()}
    leaves = execution.options.uncommitted == "leave"
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
