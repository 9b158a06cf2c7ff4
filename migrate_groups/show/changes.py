"""Short texts for the changes of a plan, which the terminal and Markdown views share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.plan import Action, Change
from migrate_groups.text import counted


def cells(change: Change) -> tuple[str, str, str]:
    """Return the committed offset before and after (``-``: none), and the action, such as ``move +1,200``.

    If only the leader epoch or the metadata changes, that is the action.
    """
    execution: str = change.action
    if change.action is Action.MOVE and change.before and change.after:
        by = change.after.offset - change.before.offset
        other = "leader epoch" if change.after.leader_epoch != change.before.leader_epoch else "metadata"
        execution = f"move {by:+,}" if by else other
    return _offset(change.before), _offset(change.after), execution


def tally(changes: Iterable[Change]) -> str:
    """Return the number of changes by action, such as ``9 partitions (6 create, 3 unchanged)``."""
    counts = Counter(change.action for change in changes)
    executions = ", ".join(f"{counts[action]:,} {action}" for action in Action if counts[action])
    return f"{counted(counts.total(), 'partition')} ({executions or 'nothing to do'})"


def _offset(committed: CommittedOffset | None) -> str:
    return "-" if committed is None else str(committed.offset)
