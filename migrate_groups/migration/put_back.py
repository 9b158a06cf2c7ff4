"""After a deletion of committed offsets, set back those for which another group must have an offset, and has none.

``rollback`` and ``delete-offsets`` may run at once with copies of one run directory. Each reads the other group before
it deletes. Each reads it again afterwards, so the later of the two readings finds what the other command deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.reading.requests import committed_by_order
from migrate_groups.migration.write import Record, write
from migrate_groups.planning.change import Change, Order
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.text import some


def other_groups(receipt: Receipt, verb: Verb) -> Mapping[Order, set[Order]]:
    """Return, for each offset that a command may delete, the offsets of which each must be there then.

    The keys and values are group, topic and partition number. A rollback deletes offsets of target groups, and the
    source groups must have theirs, if they are on the same cluster. ``delete-offsets`` deletes offsets of source
    groups, and the target groups must have theirs. ``delete-offsets --group`` has no other group, and the source group
    of a copy goes on by itself.
    """
    if receipt.is_copy:
        return {}
    found: dict[Order, set[Order]] = defaultdict(set)
    for order, partition in receipt.partition_states.items():
        if partition.state is State.NEW:
            continue
        if verb is Verb.ROLLBACK:
            found[order] |= {(source, *order[1:]) for source in partition.sources}
        elif verb is Verb.DELETE_OFFSETS and partition.change.after is not None:
            for source in partition.handed_over_by:
                found[source.order].add(order)
    return found


def not_yet_known(execution: Execution, others: Mapping[Order, set[Order]]) -> Execution:
    """Return the record of a write as it must be saved before `put_back`: an offset is not known to be deleted rightly.

    A killed process must not leave it as confirmed, because then the same command would not read the other group again.
    others: what `other_groups` returned.
    """
    reason = "deleted; the other group is not read again yet"
    return execution.updated(each.unknown(reason) for each in _deleted(execution, others))


def put_back(clients: Clients, execution: Execution, others: Mapping[Order, set[Order]], record: Record) -> Execution:
    """Set back each deleted offset for which another group has lost its offset, and return the record of the write.

    others: what `other_groups` returned before the write. record: saves the execution.

    An offset that was set back counts as refused. If this is not known, or if the other groups can't be read, the
    outcome is unknown. No error is raised.
    """
    deleted = _deleted(execution, others)
    if not deleted:
        return execution
    reader = clients.elsewhere or clients.writer
    try:
        now = committed_by_order(reader, set().union(*(others[change.order] for change in deleted)))
    except MigrateGroupsError as error:
        reason = f"deleted, but it is not known whether the other group has its committed offset: {error}"
        return _recorded(execution, [each.unknown(reason) for each in deleted], record)
    lost = {
        change.order: some(sorted({order[0] for order in others[change.order] if now[order] is None}))
        for change in deleted
    }
    lonely = [change for change in deleted if lost[change.order]]
    if not lonely:
        return _recorded(execution, (), record)
    why = {order: f"{groups} has no committed offset any more" for order, groups in lost.items()}
    execution = _recorded(execution, [each.unknown(f"deleted, but {why[each.order]}") for each in lonely], record)
    # The verb makes `write` look first, so that it does not replace an offset that another client has just committed.
    undo = replace(execution, verb=Verb.ROLLBACK, changes=tuple(change.inverse for change in lonely))
    undone = {each.order: each for each in write(clients, undo, lambda _: None).changes}
    return _recorded(execution, [_outcome(each, undone[each.order], why[each.order]) for each in lonely], record)


def _deleted(execution: Execution, others: Mapping[Order, set[Order]]) -> list[Change]:
    return [
        change
        for change in (execution.changes if others else ())
        if change.settled and change.before and change.after is None and others.get(change.order)
    ]


def _outcome(change: Change, undone: Change, why: str) -> Change:
    committed = undone.after
    assert committed is not None  # noqa: S101  for mypy: only offsets that were there are set back
    if undone.settled:
        # Not ``sent``, because the group's offset is still the one from before.
        return change.refused(f"deleted, and set back to {committed.offset}, because {why}")
    return change.unknown(f"deleted, but {why}, and offset {committed.offset} can't be set back: {undone.error}")


def _recorded(execution: Execution, changes: Sequence[Change], record: Callable[[Execution], None]) -> Execution:
    execution = execution.updated(changes)
    record(execution)
    return execution
