"""The facts of the check ``journal`` that follow from a plan and a receipt: what is handed over, or what is undone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from migrate_groups.planning.change import Action, Origin
from migrate_groups.planning.checks.journal import GroupAt, JournalFacts, Place
from migrate_groups.planning.execution import Source
from migrate_groups.planning.partition_states import PartitionState
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, Step, Verb

_group_at = lru_cache(maxsize=1024)(GroupAt)
"""Returns a `GroupAt`. Most partitions have the same groups, and to make one takes longer than to look it up."""


def handed_by(facts: JournalFacts, plan: Plan, receipt: Receipt) -> JournalFacts:
    """Return the facts with what this plan hands over, or which hand-over it undoes."""
    facts = replace(facts, is_copy=plan.options.copy, handed={}, stopped_at={})
    # Without changes, nothing was read either, for instance because the cluster is another one.
    if not plan.changes:
        return facts
    if facts.verb is not Verb.HAND_OVER:
        return undone_by(facts, receipt)
    handed: dict[Place, list[Place]] = defaultdict(list)
    targets: dict[GroupAt, set[str]] = defaultdict(set)
    stopped_at: dict[Place, int] = {}
    restored: set[Place] = set()
    written: set[Place] = set()
    unsourced: set[Place] = set()
    stopped: int | None
    elsewhere = plan.cluster_id if plan.translation else ""
    copies = {each.copy: each for each in plan.translation.partitions} if plan.translation else {}
    for change in plan.changes:
        partition = change.topic_partition
        if plan.translation is not None and (of := copies.get(partition)) is not None:
            source, stopped = (_group_at(plan.translation.group), of.source), of.stopped_at
        elif change.source_group not in (None, change.group):
            source, stopped = (_group_at(change.source_group or ""), partition), change.handed_over_at
        else:
            # A group's own offsets may be set again, for instance after a wrong deletion.
            if change.source_group is None and change.action is not Action.UNCHANGED and not plan.options.restore:
                unsourced.add((_group_at(change.group, elsewhere), partition))
            continue
        if stopped is not None:
            stopped_at[source] = stopped
        handed[source].append((_group_at(change.group, elsewhere), partition))
        targets[source[0]].add(change.group)
        if change.origin is Origin.RESTORED:
            restored.add(source)
        if change.action is not Action.UNCHANGED:
            written.add(source)
    return replace(
        facts,
        handed=handed,
        targets=targets,
        unsourced=frozenset(unsourced),
        stopped_at=stopped_at,
        elsewhere=elsewhere,
        here=plan.translation.cluster_id if plan.translation else plan.cluster_id,
        resumed=_resumed(receipt, is_move=plan.translation is not None),
        restored=frozenset(restored),
        in_place=frozenset(handed.keys() - written),
    )


def undone_by(facts: JournalFacts, receipt: Receipt) -> JournalFacts:
    """Return the facts of a way back with the hand-over of a receipt, and with what is left to undo of it.

    Also those of the same hand-over again, if nothing is left to write.
    """
    verb = facts.verb
    # After a rollback or hand-back, the source group is started with the partitions that brokers refused too.
    over = (Step.NO_OP, Step.SKIP) if verb is not Verb.DELETE_OFFSETS else (Step.NO_OP,)
    hand_over, move = receipt.last_hand_over, receipt.elsewhere
    cluster = hand_over.cluster_id if hand_over else ""
    elsewhere = cluster if move else ""
    handed = _handed_before(receipt, verb, *WORKS, *over, cluster=elsewhere)
    left = _handed_before(receipt, verb, *WORKS)
    stopped_at = {
        _place(source): source.stopped_at
        for partition in receipt.partition_states.values()
        for source in partition.handed_over_by
        if source.stopped_at is not None
    }
    return replace(
        facts,
        handed=handed,
        stopped_at={place: stopped_at[place] for place in handed if place in stopped_at},
        elsewhere=elsewhere,
        here=move.cluster_id if move else cluster,
        begun=frozenset(_handed_before(receipt, verb, Step.RESUME, Step.NO_OP)),
        resumed=_resumed(receipt, is_move=move is not None) if verb is Verb.HAND_OVER else frozenset(),
        in_place=frozenset(handed) if verb is Verb.HAND_OVER else frozenset(),
        done=frozenset(handed.keys() - left.keys()) if verb is not Verb.DELETE_OFFSETS else frozenset(),
    )


def _resumed(receipt: Receipt, *, is_move: bool) -> frozenset[Place]:
    # A rollback on another cluster does not release the claims, so that a run that it has undone still has them.
    again = (Step.RESUME, Step.START) if is_move else (Step.RESUME,)
    return frozenset({*_handed_before(receipt, Verb.HAND_OVER, *again), *_by_source(receipt.refused.values())})


def _place(source: Source) -> Place:
    return _group_at(source.group), source.partition


def _handed_before(receipt: Receipt, verb: Verb, *steps: Step, cluster: str = "") -> dict[Place, list[Place]]:
    """Return, by partition of a source group, where the run's hand-over put it, if a verb does such a step for it.

    The partitions that brokers refused in it are included, with the step ``skip``. cluster: as in `_by_source`.
    """
    partitions = (receipt.begun_or_done | receipt.refused).values()
    return _by_source((partition for partition in partitions if partition.takes(verb, *steps)), cluster)


def _by_source(partitions: Iterable[PartitionState], cluster: str = "") -> dict[Place, list[Place]]:
    """Return target groups with their partitions, by partition of a source group that handed them over.

    cluster: the id of the target groups' cluster; empty if it is that of the source groups.
    """
    handed: dict[Place, list[Place]] = defaultdict(list)
    for partition in partitions:
        target = _group_at(partition.change.group, cluster), partition.change.topic_partition
        for source in partition.handed_over_by:
            handed[_place(source)].append(target)
    return handed
