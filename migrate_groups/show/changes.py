"""Short texts for the offset changes in a plan, which the terminal and Markdown views share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Action, Change
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.text import counted


def cells(change: Change) -> tuple[str, str, str]:
    """Return three texts: the committed offset before a change, the offset after it, and the action.

    An offset is ``-`` if there is none, and ``unknown`` if a mirror has not delivered its record yet. The action is,
    for instance, ``create``, ``unchanged`` or ``move +1,200``.
    """
    action: str = change.action
    if change.action is Action.MOVE and change.before and change.after:
        by = change.after.offset - change.before.offset
        other = "leader epoch" if change.after.leader_epoch != change.before.leader_epoch else "metadata"
        action = f"move {by:+,}" if by else other
    return (
        _offset(change.before),
        _offset(change.after) if change.action is not Action.NOT_MIRRORED else "unknown",
        action,
    )


def origins(plan: Plan) -> dict[TopicPartition, str]:
    """Return the source partition and offset of each target partition as text, such as ``orders-0 at 500``.

    If the mirror is behind in the partition, the text says by how many records. Empty if the groups are on one cluster.
    """
    partitions = plan.translation.partitions if plan.translation else ()
    return {each.copy: f"{each.source} at {each.offset}" + _lag(each) for each in partitions if each.copy is not None}


def tally(changes: Iterable[Change]) -> str:
    """Return the number of changes by action as text, such as ``9 partitions (6 create, 3 unchanged)``."""
    counts = Counter(change.action for change in changes)
    actions = ", ".join(f"{counts[action]:,} {action}" for action in Action if counts[action])
    return f"{counted(counts.total(), 'partition')} ({actions or 'nothing to do'})"


def _lag(each: TranslatedOffset) -> str:
    return f", mirror {counted(each.behind.records, 'record')} behind" if each.behind and each.behind.records else ""


def _offset(committed: CommittedOffset | None) -> str:
    return "-" if committed is None else str(committed.offset)
