"""What differs between a plan that was reviewed and the one of now: not the offsets, which move meanwhile."""

from __future__ import annotations

from dataclasses import asdict

from migrate_groups.plan.plan import Plan


def intent_differences(approved: Plan, now: Plan) -> list[str]:
    """Return each difference in cluster, options, and which topic partitions go from which group to which.

    Empty where the intent hashes are equal. A whole topic is one difference, for instance one that a glob now catches.
    """
    if approved.intent == now.intent:
        return []
    differences = []
    if approved.cluster_id != now.cluster_id:
        differences.append(f"cluster {approved.cluster_id} was approved, this is {now.cluster_id}")
    chosen = asdict(now.options)
    differences += [
        f"option {name} was approved as {value}, is {chosen[name]}"
        for name, value in asdict(approved.options).items()
        if value != chosen[name]
    ]
    before, after = _moves(approved), _moves(now)
    for key in sorted(before.keys() | after.keys()):
        source, group, topic = key
        move = f"topic {topic} from {source or 'nowhere'} to {group}"
        gone, added = before.get(key, set()) - after.get(key, set()), after.get(key, set()) - before.get(key, set())
        if key not in before:
            differences.append(f"{move} was not approved")
        elif key not in after:
            differences.append(f"{move} was approved and is not moved now")
        else:
            differences += [f"{move}: partition {number} was not approved" for number in sorted(added)]
            differences += [f"{move}: partition {number} was approved and is not moved now" for number in sorted(gone)]
    return differences


def _moves(plan: Plan) -> dict[tuple[str, str, str], set[int]]:
    moves: dict[tuple[str, str, str], set[int]] = {}
    for change in plan.changes:
        moves.setdefault((change.source_group or "", change.group, change.topic), set()).add(change.partition)
    return moves
