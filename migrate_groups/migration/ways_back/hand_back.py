"""Give topics back to the source group: move it forward to the target groups' committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.requests import committed_by_order, committed_of, describe_groups
from migrate_groups.migration.reading.survey import permissions_unless_hidden, survey, unread
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.receipt_refusals import check_clusters_named, refuse_by_record
from migrate_groups.planning.change import Change, Order
from migrate_groups.planning.checks.facts import Advice, HandOverFacts
from migrate_groups.planning.checks.permission import of_hand_over
from migrate_groups.planning.checks.registry import planned, read_on
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.checks.target import options_of_write
from migrate_groups.planning.decide import wanted_rows
from migrate_groups.planning.partition_states import PartitionState
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Step, Verb
from migrate_groups.planning.survey import Survey
from migrate_groups.snapshots.row import Row
from migrate_groups.text import named, some

# The snapshot is taken anew each time that the plan is made.
_ADVICE = Advice(read_again="hand-back reads its offsets again")
_SHARED = (
    "several target groups consume the same partition (fan_out), so they can't hand back to one group: choose one "
    "target group, and write its offsets back with snapshot and apply"
)

Takers = Mapping[tuple[str, str], str]
"""By target group and topic, the source group that takes the topic back."""


def plan_hand_back(reader: GroupReader, receipt: Receipt, clock: Clock) -> Plan:
    """Return the plan that moves the source group's offsets forward to the target groups' current committed offsets.

    A check warns of topics that the run did not hand over.

    Raises `Refused` if the receipt (the record of the run) forbids the hand-back, if a partition does not have exactly
    one source group and one target group, or if a target group has no offset to give back; `GroupNotFound`.
    """
    refuse_by_record(receipt, Verb.HAND_BACK)
    hand_over, states = receipt.last_hand_over, receipt.begun_or_done
    if hand_over is None or not states:
        raise Refused("nothing to hand back: this run wrote nothing")
    check_clusters_named(hand_over, is_target_named=False)
    takers = _takers(states, _refused(receipt))
    reader = for_one_phase(reader)
    facts = HandOverFacts(
        survey=unread(reader),
        options=replace(hand_over.options, on_existing="forward", on_uncommitted="leave", restore=False),
        receipt=receipt,
        earlier=hand_over,
        decided=(),
        advice=_ADVICE,
    )
    facts = read_on(Scope.HAND_BACK, facts, lambda known: _read(reader, known, takers, clock))
    return planned(Scope.HAND_BACK, facts)


def _takers(states: Mapping[Order, PartitionState], refused: Sequence[PartitionState]) -> Takers:
    """Return the source group that takes back each topic of each target group.

    states, refused: the partitions that were handed over, and those that brokers refused. Raises `Refused` if there is
    nothing to give back, or if a topic does not have exactly one source group.
    """
    # The source groups by topic, not by partition, because a target group also consumes partitions that were added
    # later or had no commit at the hand-over.
    origin = {(group, topic): partition.sources for (group, topic, _), partition in states.items()}
    if not any(origin.values()):
        raise Refused(
            f"nothing to hand back: no old group handed over to {some({group for group, _ in origin})}; to undo the "
            "write, use rollback before the group commits; after it, delete-group, or rewind and apply"
        )
    if unclear := {topic for (_, topic), sources in origin.items() if len(sources) != 1}:
        raise Refused(
            f"no single source group for {named('topic', unclear)} in the receipt, so no group can take this back: "
            "set the offsets with snapshot and apply"
        )
    given = {source.order for partition in states.values() for source in partition.handed_over_by}
    kept = {source.order for partition in refused for source in partition.handed_over_by}
    if given & kept:
        raise Refused(_SHARED)
    return {place: next(iter(sources)) for place, sources in origin.items()}


def _refused(receipt: Receipt) -> list[PartitionState]:
    """Return the partitions that brokers refused to write in the hand-over, and that have a source group."""
    return [partition for partition in receipt.refused.values() if partition.sources]


def _read(reader: GroupReader, facts: HandOverFacts, takers: Takers, clock: Clock) -> HandOverFacts:
    """Return the facts with what was read of the cluster, and with the changes that follow from it.

    Raises `Refused` if a target group has no offset to give back.
    """
    groups = sorted({group for group, _ in takers})
    permissions_unless_hidden(reader, of_hand_over(groups, takers.values(), {topic for _, topic in takers}))
    rows = [*take_snapshot(reader, groups, clock).rows()]
    wanted = _wanted(rows, takers, facts.receipt, _not_given(reader, facts.receipt))
    options = options_of_write(facts.options, {each.group for each in wanted})
    facts = replace(facts, options=options, decided=wanted, topics=_topics(rows, groups))
    facts = facts.decided_by(survey(reader, wanted))
    return replace(facts, survey=_with_refused(reader, facts.survey, _refused(facts.receipt), groups))


def _not_given(reader: GroupReader, receipt: Receipt) -> frozenset[Order]:
    """Return the partitions of target groups that are not given back: not handed over, or given back already.

    A partition that an interrupted hand-back has given back is given back again if the source group has lost its offset
    since.
    """
    not_given = {
        order: partition
        for order, partition in receipt.partition_states.items()
        if partition.takes(Verb.HAND_BACK, Step.SKIP, Step.NO_OP)
    }
    sources = {
        order: [source.order for source in partition.handed_over_by]
        for order, partition in not_given.items()
        if partition.state is State.HANDED_BACK
    }
    now = committed_by_order(reader, {order for of_it in sources.values() for order in of_it}) if sources else {}
    lost = {order for order, of_it in sources.items() if any(now[source] is None for source in of_it)}
    return frozenset(not_given.keys() - lost)


def _wanted(rows: Sequence[Row], takers: Takers, receipt: Receipt, not_given: Collection[Order]) -> list[Change]:
    """Return what the source groups are to get back.

    rows: the target groups' committed offsets. not_given: the partitions that are not given back. Raises `Refused` if
    two target groups give back the same partition, or if one has no offset to give back, or a lower one than it got.
    """
    wanted = wanted_rows(
        structs.replace(row, group=takers[row.group or "", row.topic], source_group=row.group)
        for row in rows
        if (row.group or "", row.topic) in takers and (row.group or "", row.topic, row.partition) not in not_given
    )
    if len({each.order for each in wanted}) < len(wanted):
        raise Refused(_SHARED)
    given = {(each.source_group or "", each.topic, each.partition): each.committed for each in wanted if each.committed}
    if not given:
        groups = {group for group, _ in takers}
        raise Refused(f"nothing to hand back: {some(groups)} committed nothing on the topics that were handed over")
    handed_over = {
        order: partition.change.after
        for order, partition in receipt.begun_or_done.items()
        if partition.change.after and order not in not_given
    }
    lost = [f"{group} {topic}-{number}" for group, topic, number in sorted(handed_over.keys() - given.keys())]
    set_back = [
        f"{group} {topic}-{number} is at {now.offset}, handed over at {handed_over[group, topic, number].offset}"
        for (group, topic, number), now in sorted(given.items())
        if (group, topic, number) in handed_over and now.offset < handed_over[group, topic, number].offset
    ]
    if lost or set_back:
        found = (
            f"no committed offset any more for {some(lost)}" if lost else f"{some(set_back, 3)}: set back by a reset"
        )
        raise Refused(
            f"{found}, so it is not known how far the group read: set the right offset with rewind and apply, and run "
            "hand-back again; nothing was written"
        )
    return wanted


def _topics(rows: Sequence[Row], groups: Collection[str]) -> dict[str, set[str]]:
    """Return, for each of these groups, the topics for which it has a committed offset."""
    topics: dict[str, set[str]] = {group: set() for group in groups}
    for row in rows:
        if row.offset is not None:
            topics[row.group or ""].add(row.topic)
    return topics


def _with_refused(
    reader: GroupReader, known: Survey, refused: Sequence[PartitionState], groups: Collection[str]
) -> Survey:
    """Return the survey with the offsets of refused partitions, and with the target groups that give back nothing.

    groups: the target groups that give back topics.
    """
    if not refused:
        return known
    sources = (source.order for partition in refused for source in partition.handed_over_by)
    now = committed_of(reader, [*(partition.change.order for partition in refused), *sources])
    others = {partition.change.group for partition in refused} - {*groups}
    return replace(
        known,
        committed={**known.committed, **{group: {**known.committed.get(group, {}), **now[group]} for group in now}},
        groups={**known.groups, **describe_groups(reader, sorted(others))},
    )
