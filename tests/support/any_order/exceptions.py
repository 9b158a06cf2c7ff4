"""Where a record may be skipped or processed twice and the tool has kept its promise: each case with its reason.

Everything that is not here is a finding. The reasons are printed with the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order.ledger import Processing

# The guard looks once a second; its requests, and those at the end of a verb, take time as well.
SLACK = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verb ended with exit 0: these partitions are the group's.

    watched: until when the verb was to watch: its settle and its guard, and to its end at least; 0 where it looked at
    nothing, since the record said that all was done, by a command that was killed afterwards. looks: the last look
    at the group's offset, by partition. uncovered: partitions that it saw in no group of the run.
    """

    verb: str
    group: str
    groups: tuple[str, ...]
    partitions: frozenset[TopicPartition]
    ended: float
    watched: float
    looks: dict[TopicPartition, int]
    uncovered: frozenset[TopicPartition]


def missing(world, group: str, partition: TopicPartition) -> str:
    """Return why a group may have no committed offset when its application starts, empty where it must have one."""
    if world.owner[partition.topic] != group:
        return "a straggler that nobody told to start skips to the end, and commits that"
    if (group, partition) in world.left_out:
        return "uncommitted = leave: the plan has named what it leaves out, and the receipt does not have it"
    given = [each for each in world.verdicts if partition in each.partitions and each.group == group]
    if given and partition in given[-1].uncovered:
        return "no group had an offset for it when the last verb looked"
    gone = world.gone.get((group, partition))
    if gone is None:
        return "" if given or (group, partition) != ("old", partition) else "it never had one"
    moment, how = gone
    if given and moment <= given[-1].looks[partition]:
        return ""
    return f"{how} after the last look of a verb at it"


def deleted_after(world, verb, name: str, partition: TopicPartition) -> bool:
    """Whether others deleted what a hand-over had read back with both clients: then it only takes a snapshot of it."""
    return name in ("migrate", "apply") and any(
        (group, partition) in verb.confirmed and (group, partition) in world.gone for group in verb.groups
    )


def taken_away(world, application, partition: TopicPartition) -> bool:
    """Whether a straggler starts in a target whose offset a way back, which still runs, has taken away already.

    The operator had stopped that group for it, and is told with exit 4 that somebody came. Nothing is excused by this:
    what such a straggler passes over has to be processed all the same, in the group that gets the partition in the end.
    """
    return application.straggles and world.verb is not None and (application.group, partition) in world.verb.wrote


def overtaken(world, application) -> None:
    """Excuse what a straggler without membership skips by committing its own position over what its group was handed.

    In a target the tool tells that as a remark only: it may be a new application that has started.
    """
    for partition, position in application.positions.items():
        stands = world.stands(application.group, partition)
        if stands is not None and stands < position:
            skipped = world.ledger.unprocessed(partition, position)
            world.ledger.may_skip(partition, skipped, "a straggler without membership committed beyond it")


def repeated(world) -> Iterator[str]:
    """Yield what was processed twice and is not excused."""
    for partition, offsets in world.ledger.processed.items():
        found: dict[str, list[int]] = {}
        for offset, all_of_it in offsets.items():
            if len(all_of_it) > 1 and offset not in world.ledger.repeatable[partition]:
                why = _twice(world, partition, all_of_it)
                if why:
                    found.setdefault(why, []).append(offset)
        for why, which in found.items():
            yield f"records processed twice: {partition} {which[0]} to {which[-1]}: {why}"


def _twice(world, partition: TopicPartition, all_of_it: list[Processing]) -> str:
    rest = [each for each in all_of_it if not _straggles_unseen(world, partition, each)]
    for first, second in pairwise(rest):
        taken = [
            each
            for each in world.verdicts
            if partition in each.partitions
            and first.group in each.groups
            and each.group != first.group
            and each.ended <= second.at
            and each.ended >= first.at
        ]
        if taken and _unseen(first, taken[-1]):
            continue
        return f"by {first}, and by {second}" + (f", after {taken[-1].verb} with exit 0" if taken else "")
    return ""


def _straggles_unseen(world, partition: TopicPartition, done: Processing) -> bool:
    """Whether somebody processed for a group that had not got the partition, and no verb that said so could see it."""
    if done.entitled:
        return False
    before = [
        each
        for each in world.verdicts
        if partition in each.partitions and done.group in each.groups and each.ended <= done.at
    ]
    return not before or before[-1].group == done.group or _unseen(done, before[-1])


def _unseen(done: Processing, verdict: Verdict) -> bool:
    """Whether the brokers showed a consumer only after a verb had looked for the last time.

    A member shows itself when it joins, one without membership when it commits. What has not shown itself yet counts
    as unseen: until the end it may still.
    """
    if done.seen is None:
        return True
    return done.seen > verdict.watched - SLACK
