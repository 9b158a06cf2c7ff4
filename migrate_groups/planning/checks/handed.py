"""The facts of the check ``journal`` that follow from a plan and a receipt: what is handed over, or what is undone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from migrate_groups.planning.change import Action, Change, Order, Origin
from migrate_groups.planning.checks.journal import JournalFacts
from migrate_groups.planning.partition_states import PartitionState
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, Step, Verb


class Handed(NamedTuple):
    """The facts, and the changes of the hand-over, by partition of a source group."""

    facts: JournalFacts
    changes: Mapping[Order, Sequence[Change]]


def handed_by(facts: JournalFacts, plan: Plan, receipt: Receipt) -> Handed:
    """Return the facts with what this plan hands over, or which hand-over it undoes."""
    facts = replace(facts, is_copy=plan.options.copy, handed={})
    if (there := plan.translation) is not None:
        targets = tuple(sorted({change.group for change in plan.changes}))
        moved = {(there.group, *each.source): targets for each in there.partitions}
        return Handed(replace(facts, is_move=True, handed=moved), {})
    # Without changes, nothing was read either, for instance because the cluster is another one.
    if not plan.changes or receipt.elsewhere is not None:
        return Handed(facts, {})
    if facts.verb is not Verb.HAND_OVER:
        return undone_by(facts, receipt)
    handed: dict[Order, list[Change]] = defaultdict(list)
    for change in plan.changes:
        if change.source_group not in (None, change.group):
            handed[change.source_group or "", change.topic, change.partition].append(change)
    in_place = {order for order, changes in handed.items() if all(each.action is Action.UNCHANGED for each in changes)}
    restored = {order for order, changes in handed.items() if any(each.origin is Origin.RESTORED for each in changes)}
    resumed = {**_handed_before(receipt, Verb.HAND_OVER, Step.RESUME), **_by_source(receipt.refused.values())}
    facts = replace(
        facts,
        handed=_targets(handed),
        resumed=frozenset(resumed),
        restored=frozenset(restored),
        in_place=frozenset(in_place),
    )
    return Handed(facts, handed)


def undone_by(facts: JournalFacts, receipt: Receipt) -> Handed:
    """Return the facts of a way back with the hand-over of a receipt, and with what is left to undo of it."""
    verb = facts.verb
    # After a rollback or hand-back, the source group is started with the partitions that brokers refused too.
    over = (Step.NO_OP, Step.SKIP) if verb is not Verb.DELETE_OFFSETS else (Step.NO_OP,)
    handed = _handed_before(receipt, verb, *WORKS, *over)
    left = _handed_before(receipt, verb, *WORKS)
    facts = replace(
        facts,
        handed=_targets(handed),
        begun=frozenset(_handed_before(receipt, verb, Step.RESUME, Step.NO_OP)),
        done=frozenset(handed.keys() - left.keys()) if verb is not Verb.DELETE_OFFSETS else frozenset(),
    )
    return Handed(facts, handed)


def _handed_before(receipt: Receipt, verb: Verb, *steps: Step) -> dict[Order, list[Change]]:
    """Return, by partition of a source group, the changes of the run's hand-over for which a verb does such a step.

    The changes that brokers refused in it are included, with the step ``skip``.
    """
    partitions = (receipt.begun_or_done | receipt.refused).values()
    return _by_source(partition for partition in partitions if partition.takes(verb, *steps))


def _by_source(partitions: Iterable[PartitionState]) -> dict[Order, list[Change]]:
    """Return the changes of target groups' partitions, by partition of a source group that handed them over."""
    handed: dict[Order, list[Change]] = defaultdict(list)
    for partition in partitions:
        for source in partition.handed_over_by:
            handed[source.order].append(partition.change)
    return handed


def _targets(handed: Mapping[Order, Sequence[Change]]) -> dict[Order, tuple[str, ...]]:
    """Return the target groups of each partition of a source group, sorted."""
    return {order: tuple(sorted({each.group for each in changes})) for order, changes in handed.items()}
