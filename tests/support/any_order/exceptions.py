"""The cases in which a record may be skipped or processed twice, each with the reason why the tool is not to blame.

Every other case is a defect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order.ledger import Processing

# In seconds: the guard reads once a second, and the requests of the guard and of the end of a verb take time.
SLACK = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a command told the operator with exit code 0: these partitions belong to this group.

    - run: the name of the command's run.
    - watched: the time until which the command had to notice other consumers. This is the command's end (with
      ``guard`` 0, its last write), or its start plus ``settle`` and ``guard`` if that is later. For hand-back, and for
      a hand-over that says that it is over, it is always the former. It is 0 if the command read no offsets, because
      the receipt of a killed run said that everything was done.
    - last_read: by partition, the value of `World.moments` when the group's committed offset was last read.
    - uncovered: the partitions that have no committed offset in any group of the command. After a rollback or hand-back
      also the partitions that had none at the hand-over: the receipt lacks them, so the command leaves them alone.
    """

    verb: str
    run: str
    group: str
    groups: tuple[str, ...]
    partitions: frozenset[TopicPartition]
    ended: float
    watched: float
    last_read: dict[TopicPartition, int]
    uncovered: frozenset[TopicPartition]


def missing(world, group: str, partition: TopicPartition) -> str:
    """Return why a group may lack a committed offset when its application starts; empty if it must have one."""
    if world.owner[partition.topic] != group:
        return "a straggler, which the operator did not start, skips to the end, and commits that"
    if (group, partition) in world.left_out:
        return "on_uncommitted = leave: the plan has named what it leaves out, and the receipt does not have it"
    given = [each for each in world.verdicts if partition in each.partitions and each.group == group]
    if given and partition in given[-1].uncovered:
        return "no group had an offset for it when the last verb read it"
    gone = world.gone.get((group, partition))
    if gone is None:
        return "" if given or (group, partition) != ("old", partition) else "it never had one"
    moment, how = gone
    if given and moment <= given[-1].last_read[partition]:
        return ""
    return f"{how} after a verb last read it"


def deleted_after(world, verb, name: str, partition: TopicPartition) -> bool:
    """Return whether another client deleted an offset after ``migrate`` or ``apply`` last read it back.

    name: the name of the command.
    """
    return name in ("migrate", "apply") and any(
        (group, partition) in verb.confirmed and (group, partition) in world.gone for group in verb.groups
    )


def taken_away(world, application, partition: TopicPartition) -> bool:
    """Return whether a running command has altered or deleted the offset from which a straggler would have started.

    A straggler is an application that the operator did not start; the command reports it with exit code 4. The group
    that gets the partition must process the records that the straggler skips.
    """
    wrote = (verb.wrote for verb in world.verbs.values())
    return application.straggles and any((application.group, partition) in places for places in wrote)


def overtaken(world, application) -> None:
    """Allow that records are skipped because a straggler commits, without membership, beyond its group's offset.

    A straggler is an application that the operator did not start. In a target group the tool only mentions such a
    commit, because the consumer may be a new application.
    """
    for partition, position in application.positions.items():
        committed = world.committed_offset(application.group, partition)
        if committed is not None and committed < position:
            skipped = world.ledger.unprocessed(partition, position)
            world.ledger.may_skip(partition, skipped, "a straggler without membership committed beyond it")


def forgotten(world, group: str, partition: TopicPartition) -> None:
    """Allow that records are repeated because a commit is gone that a group made after an interrupted rollback.

    The rollback has deleted the group's offset before. Brokers show the same then and now, so the next rollback warns
    that it does not know of commits in between (the check ``not committed since``).
    """
    if (group, partition) in world.undoing:
        done = range(world.ledger.starts[partition], world.ledger.reached(group, partition))
        world.ledger.may_repeat(partition, done, "a commit after an interrupted rollback is gone, and was not seen")


def repeated(world) -> Iterator[str]:
    """Yield a message for each range of records that were processed twice, unless an exception allows it."""
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
        if first.held_out and first.group == second.group:
            continue  # --hold refused the commit of a consumer without membership that had not stopped; it began again
        taken = [
            each
            for each in world.verdicts
            if partition in each.partitions
            and first.group in each.groups
            and each.group != first.group
            and each.ended <= second.at
            and each.ended >= first.at
        ]
        # The first command that took the partition from the group had to notice the consumer.
        if taken and _unseen(first, taken[0]):
            continue
        return f"by {first}, and by {second}" + (f", after {taken[0].verb} with exit 0" if taken else "")
    return ""


def _straggles_unseen(world, partition: TopicPartition, done: Processing) -> bool:
    """Return whether a group that does not own the partition processed the record, seen by no command."""
    if done.entitled:
        return False
    before = [
        each
        for each in world.verdicts
        if partition in each.partitions and done.group in each.groups and each.ended <= done.at
    ]
    return not before or before[-1].group == done.group or _unseen(done, before[-1])


def _unseen(done: Processing, verdict: Verdict) -> bool:
    """Return whether a command could not see a consumer: brokers never showed it, or only after the last request.

    Brokers show a member when it joins, and a consumer without membership when it commits.
    """
    if done.seen is None:
        return True
    return done.seen > verdict.watched - SLACK
